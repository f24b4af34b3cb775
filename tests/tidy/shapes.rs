//! Shapes that code and settings have everywhere.

use syn::visit::{self, Visit};

use crate::assert_none;
use crate::source::{self, Source, sample};

/// Files that may read a clock, sleep, start a process or end this one: each is the one owner of that right in its crate.
const OWNERS: [&str; 24] = [
    "agent/daemon/clock.rs",
    "agent/daemon/jobs/clock.rs",
    "agent/plugin-host/src/clock.rs",
    "agent/plugin-host/src/engine.rs",
    "agent/plugin-host/tests/it/limits.rs",
    "agent/plugin-kit/src/clock.rs",
    "agent/plugin-kit/src/tool.rs",
    "agent/plugin-kit/tests/it/openssl.rs",
    "agent/process/src/sys/linux.rs",
    "agent/plugin-host/tests/it/killed.rs",
    "agent/process/tests/it/support.rs",
    "agent/protocol/src/disk.rs",
    "agent/store/tests/it/killed.rs",
    "agent/supervisor/tests/it/support.rs",
    "examples/catalogue/src/pace.rs",
    "examples/catalogue/tests/killed.rs",
    "tests/benches/figures/place.rs",
    "tests/cli/transcript.rs",
    "tests/fuzz/src/clock.rs",
    "tests/support/mount.rs",
    "tests/support/world.rs",
    "tests/xtask/src/clock.rs",
    "tests/xtask/src/shell.rs",
    "tests/xtask/tests/commands.rs",
];

/// The only places with `unsafe` code: system calls that have no safe form, compiled components taken from the private
/// cache, the exports that every component has, and the allocator that counts what a parser takes.
const UNSAFE: [&str; 5] = [
    "agent/process/src/sys/",
    "agent/plugin-host/src/cache.rs",
    "plugins/",
    "tests/fuzz/src/memory.rs",
    "tests/guests/",
];

/// Attributes, put together so that this file does not hold them.
const ALLOW: [&str; 2] = [concat!("#[al", "low("), concat!("#![al", "low(")];
const EXPECT_BANNED: &str = concat!("expect(clippy::dis", "allowed_methods");
const EXPECT_UNSAFE: &str = concat!("expect(un", "safe_code");

fn holds(source: &Source, what: &str) -> Vec<String> {
    let numbered = source.text.lines().enumerate().filter(|(_, line)| line.contains(what));
    numbered.map(|(index, _)| format!("{}:{} holds `{what}`", source.path, index + 1)).collect()
}

/// Bans that do not say why.
fn bans_without_reason(settings: &str) -> Vec<String> {
    let settings: toml::Table = settings.parse().unwrap();
    let lists = settings.values().filter_map(toml::Value::as_array);
    let reason =
        |ban: &&toml::Value| ban.get("reason").and_then(toml::Value::as_str).is_some_and(|why| !why.is_empty());
    lists.flatten().filter(|ban| !reason(ban)).map(ToString::to_string).collect()
}

/// Errors that print their cause (it is joined once, where the chain is printed) or take it without saying what failed.
struct Errors<'a> {
    path: &'a str,
    findings: Vec<String>,
}

impl Errors<'_> {
    fn attributes(&mut self, attributes: &[syn::Attribute], what: &syn::Ident) {
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("error")) {
            if let Ok(text) = attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
                let text: Option<syn::LitStr> = input.parse()?;
                input.parse::<proc_macro2::TokenStream>()?;
                Ok(text.map(|text| text.value()).unwrap_or_default())
            }) && ["{source", "{0:#}"].iter().any(|shown| text.contains(shown))
            {
                self.findings.push(format!("{}: {what} prints its source", self.path));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Errors<'_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.attributes(&item.attrs, &item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.attributes(&variant.attrs, &variant.ident);
        for field in &variant.fields {
            let last = |path: &syn::TypePath| path.path.segments.last().is_some_and(|last| last.ident == "Error");
            let is_io = matches!(&field.ty, syn::Type::Path(path) if last(path));
            if is_io && field.attrs.iter().any(|attribute| attribute.path().is_ident("from")) {
                self.findings
                    .push(format!("{}: {} takes any error without saying what failed", self.path, variant.ident));
            }
        }
        visit::visit_variant(self, variant);
    }
}

fn errors(source: &Source) -> Vec<String> {
    let parsed = syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.path));
    let mut errors = Errors { path: &source.path, findings: Vec::new() };
    errors.visit_file(&parsed);
    errors.findings
}

/// Crate roots that do not begin with what the crate is for.
fn roots_without_purpose(source: &Source) -> Vec<String> {
    let is_root = ["/src/lib.rs", "/src/main.rs", "agent/daemon/lib.rs", "agent/cli/main.rs", "tests/main.rs"]
        .iter()
        .any(|root| source.path.ends_with(root));
    let first = source.text.lines().next().unwrap_or_default();
    let findings =
        (is_root && !first.starts_with("//! ")).then(|| format!("{} does not begin with `//!`", source.path));
    findings.into_iter().collect()
}

#[test]
fn lints_are_expected_with_a_reason_and_never_allowed() {
    let findings: Vec<String> = source::rust().iter().flat_map(|s| ALLOW.map(|what| holds(s, what)).concat()).collect();
    assert_none(&findings, "write `#[expect(…, reason = \"…\")]`");
}

#[test]
fn every_ban_has_its_reason() {
    let settings = std::fs::read_to_string(source::root().join(".clippy.toml")).unwrap();
    assert_none(&bans_without_reason(&settings), "say why");
}

#[test]
fn clocks_sleeps_and_commands_have_one_owner_each() {
    let sources = source::rust();
    let others = sources.iter().filter(|source| !OWNERS.contains(&source.path.as_str()));
    let findings: Vec<String> = others.flat_map(|source| holds(source, EXPECT_BANNED)).collect();
    assert_none(&findings, "go through the owner, or name a new one in OWNERS");
    for owner in OWNERS {
        let source = sources.iter().find(|source| source.path == owner);
        assert!(source.is_some_and(|source| !holds(source, EXPECT_BANNED).is_empty()), "{owner} needs no exception");
    }
}

#[test]
fn unsafe_code_stays_in_one_folder() {
    let sources = source::rust();
    let others = sources.iter().filter(|source| !UNSAFE.iter().any(|place| source.path.starts_with(place)));
    let findings: Vec<String> = others.flat_map(|source| holds(source, EXPECT_UNSAFE)).collect();
    assert_none(&findings, "move it to the folder whose business it is");
}

#[test]
fn errors_leave_their_cause_to_the_chain() {
    let findings: Vec<String> = source::rust().iter().flat_map(errors).collect();
    assert_none(&findings, "say what could not be done; keep the cause in `source`");
}

#[test]
fn crates_begin_with_their_purpose() {
    let findings: Vec<String> = source::rust().iter().flat_map(roots_without_purpose).collect();
    assert_none(&findings, "say in one sentence what the crate is for");
}

#[test]
fn each_rule_finds_what_it_is_for() {
    assert_eq!(holds(&sample("a.rs", &format!("x\n{}dead_code)]", ALLOW[0])), ALLOW[0]).len(), 1);
    assert_eq!(bans_without_reason("a = [{ path = \"x\" }, { path = \"y\", reason = \"z\" }]\nb = true").len(), 1);
    assert_eq!(roots_without_purpose(&sample("agent/x/src/lib.rs", "use x;")).len(), 1);
    assert_eq!(roots_without_purpose(&sample("agent/x/src/other.rs", "use x;")), [""; 0]);
    let bad = "enum E { #[error(\"open {path}: {source}\")] Open { source: io::Error }, #[error(\"x\")] Io(#[from] io::Error) }";
    assert_eq!(errors(&sample("a.rs", bad)).len(), 2);
    let good =
        "enum E { #[error(\"open {path}\")] Open { source: io::Error }, #[error(transparent)] Other(#[from] Fault) }";
    assert_eq!(errors(&sample("a.rs", good)), [""; 0]);
}
