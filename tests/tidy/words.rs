//! One word, one meaning: the glossary's other words name nothing of ours.

use proc_macro2::Span;
use syn::Ident;
use syn::visit::{self, Visit};

use crate::assert_none;
use crate::source::{self, Source, sample};

/// Words that no identifier of ours contains, with the word to use.
const FORBIDDEN: [(&str, &str); 12] = [
    ("entity", "subject: what is watched"),
    ("keepalive", "beat: one word for one heartbeat"),
    ("health", "verdict: a judgement has a reason, health has none"),
    ("healthy", "alive: what a verdict says"),
    ("utils", "the noun of the one concept inside"),
    ("util", "the noun of the one concept inside"),
    ("common", "the noun of the one concept inside"),
    ("misc", "the noun of the one concept inside"),
    ("helper", "what it does"),
    ("helpers", "what they do"),
    ("manager", "what it does: a driver steps, a store stores"),
    ("quiesce", "drain: take nothing new, then end"),
];

/// Beginnings of function names that say nothing.
const FORBIDDEN_PREFIXES: [(&str, &str); 2] =
    [("get_", "the noun alone: `epoch()`, not `get_epoch()`"), ("do_", "the verb alone")];

/// Every name that this file gives to something.
struct Names<'a> {
    path: &'a str,
    findings: Vec<String>,
}

impl Names<'_> {
    fn name(&mut self, ident: &Ident) {
        for part in parts(&ident.to_string()) {
            if let Some((word, instead)) = FORBIDDEN.iter().find(|(word, _)| *word == part) {
                self.report(ident.span(), ident, word, instead);
            }
        }
    }

    fn function(&mut self, ident: &Ident) {
        self.name(ident);
        let name = ident.to_string();
        if let Some((prefix, instead)) = FORBIDDEN_PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)) {
            self.report(ident.span(), ident, prefix, instead);
        }
    }

    fn report(&mut self, span: Span, ident: &Ident, word: &str, instead: &str) {
        self.findings.push(format!("{}:{} `{ident}` holds `{word}`; {instead}", self.path, span.start().line));
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig.ident);
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // The functions of a trait that is not ours have the names that the trait gives them.
        if item.trait_.is_none() {
            for inner in &item.items {
                if let syn::ImplItem::Fn(function) = inner {
                    self.function(&function.sig.ident);
                }
            }
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.function(&item.sig.ident);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.name(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.name(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_variant(&mut self, item: &'ast syn::Variant) {
        self.name(&item.ident);
        visit::visit_variant(self, item);
    }

    fn visit_field(&mut self, item: &'ast syn::Field) {
        item.ident.iter().for_each(|ident| self.name(ident));
        visit::visit_field(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.name(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.name(&item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.name(&item.ident);
        visit::visit_item_mod(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.name(&item.ident);
        visit::visit_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.name(&item.ident);
        visit::visit_item_static(self, item);
    }

    fn visit_pat_ident(&mut self, item: &'ast syn::PatIdent) {
        self.name(&item.ident);
        visit::visit_pat_ident(self, item);
    }
}

/// Splits `FaultDetector`, `fault_detector` and `FAULT_MAX` into lower-case words.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_lower = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && after_lower) {
            parts.push(String::new());
        }
        if let (Some(last), true) = (parts.last_mut(), letter != '_') {
            last.extend(letter.to_lowercase());
        }
        after_lower = letter.is_lowercase() || letter.is_ascii_digit();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn forbidden(source: &Source) -> Vec<String> {
    let parsed = syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.path));
    let mut names = Names { path: &source.path, findings: Vec::new() };
    names.visit_file(&parsed);
    names.findings
}

#[test]
fn names_come_from_the_glossary() {
    let findings: Vec<String> = source::rust().iter().flat_map(forbidden).collect();
    assert_none(&findings, "rename them");
}

#[test]
fn forbidden_words_are_found_in_every_kind_of_name() {
    let findings = forbidden(&sample(
        "a.rs",
        "mod utils {} struct JobManager { health_ms: u32 } enum E { Entity } const KEEPALIVE_MAX: u8 = 1;
         trait T { fn get_epoch(&self); } impl X { fn do_work() { let common = 1; } } type Misc = u8;",
    ));
    assert_eq!(findings.len(), 9, "{findings:#?}");
}

#[test]
fn words_inside_words_and_names_of_foreign_traits_are_left_alone() {
    let text = "struct Identity; fn commonly() {} fn budget_left() {} impl Host for X { fn get_arguments() {} }";
    assert_eq!(forbidden(&sample("a.rs", text)), [""; 0]);
}

#[test]
fn names_are_split_into_words() {
    assert_eq!(parts("FaultDetector"), ["fault", "detector"]);
    assert_eq!(parts("FAULT_MAX2"), ["fault", "max2"]);
    assert_eq!(parts("_fault_detector"), ["fault", "detector"]);
}
