//! Links between documents lead somewhere.
#![expect(clippy::wildcard_enum_match_arm, reason = "the parser has events for all of Markdown, and links need few")]

use std::collections::BTreeSet;
use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::assert_none;
use crate::source::{self, Source, sample};

/// The links of a document that lead nowhere; `read` returns the text of a file, or nothing where there is none.
fn broken(source: &Source, read: impl Fn(&Path) -> Option<String>) -> Vec<String> {
    let folder = Path::new(&source.path).parent().unwrap_or(Path::new(""));
    let links = Parser::new_ext(&source.text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.into_string()),
        _ => None,
    });
    links
        .filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
        .filter_map(|link| {
            let (path, anchor) =
                link.split_once('#').map_or((link.as_str(), None), |(path, anchor)| (path, Some(anchor)));
            let target = if path.is_empty() { Some(source.text.clone()) } else { read(&folder.join(path)) };
            let Some(target) = target else { return Some(format!("{}: {link}: no such file", source.path)) };
            let anchor = anchor?;
            (!anchors(&target).contains(anchor)).then(|| format!("{}: {link}: no such heading", source.path))
        })
        .collect()
}

/// The anchors that headings get: lower case, words joined by hyphens, other signs left out.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|heading| slug(&heading))),
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    let documents = source::all().into_iter().filter(|source| source.path.ends_with(".md"));
    let read = |path: &Path| {
        let path = source::root().join(path);
        if path.is_dir() { Some(String::new()) } else { std::fs::read_to_string(path).ok() }
    };
    let findings: Vec<String> = documents.flat_map(|document| broken(&document, read)).collect();
    assert_none(&findings, "mend the links");
}

#[test]
fn broken_links_are_found() {
    let document =
        sample("docs/a.md", "# One, two!\n[a](b.md) [b](#one-two) [c](#three) [d](c.md#x) [e](https://x.org/y)");
    let read = |path: &Path| (path == Path::new("docs/c.md")).then(|| "# y".to_owned());
    let findings = broken(&document, read);
    let expected =
        ["docs/a.md: b.md: no such file", "docs/a.md: #three: no such heading", "docs/a.md: c.md#x: no such heading"];
    assert_eq!(findings, expected);
}
