//! Files and functions stay short enough to be read at once.

use syn::visit::Visit;

use crate::assert_none;
use crate::source::{self, Source, sample};

const FILE_AIM: usize = 400;
const FILE_MAX: usize = 800;
const FUNCTION_AIM: usize = 60;
const FUNCTION_MAX: usize = 100;

/// Files over the aim. Lower it when it falls: numbers only go down.
const FILES_OVER_AIM: usize = 4;

/// Functions over the aim. Lower it when it falls: numbers only go down.
const FUNCTIONS_OVER_AIM: usize = 4;

/// A length with the name of what has it.
struct Length {
    what: String,
    lines: usize,
}

fn file(source: &Source) -> Length {
    Length { what: source.path.clone(), lines: source.text.lines().count() }
}

fn functions(source: &Source) -> Vec<Length> {
    let parsed = syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.path));
    let mut found = Functions { path: &source.path, lengths: Vec::new() };
    found.visit_file(&parsed);
    found.lengths
}

struct Functions<'a> {
    path: &'a str,
    lengths: Vec<Length>,
}

impl Functions<'_> {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        let what = format!("{}:{first} fn {}", self.path, signature.ident);
        self.lengths.push(Length { what, lines: last - first + 1 });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

/// What is over the limit, and a line where the number of those over the aim is not the one written down.
fn judge(lengths: &[Length], aim: usize, max: usize, over_aim: usize, name: &str) -> Vec<String> {
    let show = |length: &Length| format!("{} has {} lines", length.what, length.lines);
    let mut findings: Vec<String> = lengths.iter().filter(|length| length.lines > max).map(show).collect();
    let over: Vec<String> = lengths.iter().filter(|length| length.lines > aim).map(show).collect();
    if over.len() > over_aim {
        findings.push(format!("{} are over the aim of {aim}, {name} allows {over_aim}:", over.len()));
        findings.extend(over.iter().map(|line| format!("  {line}")));
    } else if over.len() < over_aim {
        findings.push(format!("well done: lower {name} from {over_aim} to {}", over.len()));
    }
    findings
}

#[test]
fn files_are_short() {
    let lengths: Vec<Length> = source::rust().iter().map(file).collect();
    assert_none(&judge(&lengths, FILE_AIM, FILE_MAX, FILES_OVER_AIM, "FILES_OVER_AIM"), "split what is long");
}

#[test]
fn functions_are_short() {
    let lengths: Vec<Length> = source::rust().iter().flat_map(functions).collect();
    let findings = judge(&lengths, FUNCTION_AIM, FUNCTION_MAX, FUNCTIONS_OVER_AIM, "FUNCTIONS_OVER_AIM");
    assert_none(&findings, "split what is long");
}

#[test]
fn a_long_function_is_found_wherever_it_stands() {
    let body = "    let _ = 1;\n".repeat(99);
    let text =
        format!("fn a() {{\n{body}}}\nimpl X {{ fn b() {{\n{body}}} }}\ntrait T {{ fn c() {{\n{body}}} fn d(); }}");
    let lengths = functions(&sample("a.rs", &text));
    assert_eq!(lengths.iter().map(|length| length.lines).collect::<Vec<_>>(), [101, 101, 101]);
    let findings = judge(&lengths, FUNCTION_AIM, FUNCTION_MAX, 3, "N");
    assert_eq!(findings[0], "a.rs:1 fn a has 101 lines");
    assert_eq!(findings.len(), 3);
}

#[test]
fn the_ratchet_turns_one_way() {
    let two = [file(&sample("a.rs", "1\n2\n3\n")), file(&sample("b.rs", "1\n"))];
    assert_eq!(judge(&two, 2, 9, 1, "N"), [""; 0]);
    assert_eq!(judge(&two, 2, 9, 2, "N"), ["well done: lower N from 2 to 1"]);
    assert_eq!(judge(&two, 0, 9, 1, "N").len(), 3);
    assert_eq!(judge(&two, 2, 2, 1, "N"), ["a.rs has 3 lines"]);
}
