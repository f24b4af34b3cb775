//! What each crate may touch: the table of ARCHITECTURE.md, compared with what cargo knows.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::assert_none;
use crate::source;

/// The heading under which ARCHITECTURE.md has the table.
const HEADING: &str = "What each crate may touch";

/// The last column: the crates of ours that a crate depends on.
const EDGES: &str = "depends on";

/// Columns that a dependency gives away, and the dependency. The others are kept by bans and by review.
const COLUMNS: [(&str, &[&str]); 5] = [
    ("database", &["rusqlite"]),
    ("wasmtime", &["wasmtime", "wasmtime-wasi"]),
    ("tokio", &["tokio"]),
    ("tracing", &["tracing"]),
    ("serde", &["serde", "serde_json", "toml"]),
];

/// A row of the table: cell by column.
type Row = BTreeMap<String, String>;

/// Reads the table under the heading: row by the name in its first column.
fn table(document: &str) -> BTreeMap<String, Row> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut heading = None::<String>;
    let (mut wanted, mut in_cell) = (false, false);
    for event in Parser::new_ext(document, Options::ENABLE_TABLES) {
        if let Event::Start(Tag::Heading { .. }) = event {
            heading = Some(String::new());
        } else if let Event::End(TagEnd::Heading(_)) = event {
            wanted = heading.take().is_some_and(|text| text == HEADING);
        } else if let Event::Start(Tag::TableHead | Tag::TableRow) = event {
            rows.extend(wanted.then(Vec::new));
        } else if let Event::Start(Tag::TableCell) = event {
            in_cell = wanted;
            rows.last_mut().filter(|_| wanted).into_iter().for_each(|row| row.push(String::new()));
        } else if let Event::End(TagEnd::TableCell) = event {
            in_cell = false;
        } else if let Event::Text(text) | Event::Code(text) = event {
            if let Some(heading) = &mut heading {
                heading.push_str(&text);
            } else if let Some(cell) = rows.last_mut().and_then(|row| row.last_mut()).filter(|_| in_cell) {
                cell.push_str(&text);
            }
        }
    }
    let mut rows = rows.into_iter();
    let columns = rows.next().unwrap_or_default();
    rows.map(|cells| (cells[0].clone(), columns.iter().cloned().zip(cells).collect())).collect()
}

/// Names of a cell such as `latido-policy, latido-store`.
fn names(cell: &str) -> BTreeSet<String> {
    cell.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "–").map(str::to_owned).collect()
}

/// Direct dependencies of one kind, by crate. The command line of the workspace's own tools is not part of the product.
fn dependencies(metadata: &Metadata) -> BTreeMap<String, BTreeSet<String>> {
    let direct = |package: &Package| {
        let normal = package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
        normal.map(|dependency| dependency.name.clone()).collect()
    };
    metadata.workspace_packages().into_iter().map(|package| (package.name.to_string(), direct(package))).collect()
}

/// Where table and crates differ.
fn differences(table: &BTreeMap<String, Row>, crates: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut findings = Vec::new();
    for name in table.keys().filter(|name| !crates.contains_key(*name)) {
        findings.push(format!("the table has {name}, the workspace has not"));
    }
    for (name, dependencies) in crates {
        let Some(row) = table.get(name) else {
            findings.push(format!("{name} has no row in the table"));
            continue;
        };
        let cell = |column: &str| row.get(column).map_or("–", String::as_str);
        let ours: BTreeSet<String> = dependencies.iter().filter(|name| crates.contains_key(*name)).cloned().collect();
        let allowed = names(cell(EDGES));
        findings.extend(
            ours.difference(&allowed).map(|other| format!("{name} depends on {other}, the table does not say so")),
        );
        findings.extend(
            allowed.difference(&ours).map(|other| format!("the table lets {name} depend on {other}, it does not")),
        );
        for (column, libraries) in COLUMNS {
            let found = libraries.iter().find(|library| dependencies.contains(**library));
            if let (Some(library), "–") = (found, cell(column)) {
                findings.push(format!("{name} depends on {library}, its column `{column}` says –"));
            }
        }
    }
    findings
}

/// Every package that a package is built with: normal dependencies only, all the way down.
fn tree(metadata: &Metadata, name: &str) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().unwrap();
    let names: BTreeMap<&PackageId, String> =
        metadata.packages.iter().map(|package| (&package.id, package.name.to_string())).collect();
    let mut open: Vec<&PackageId> = metadata.packages.iter().filter(|p| *p.name == name).map(|p| &p.id).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            let node = resolve.nodes.iter().find(|node| &node.id == id).unwrap();
            let normal = |dependency: &&cargo_metadata::NodeDep| {
                dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal)
            };
            open.extend(node.deps.iter().filter(normal).map(|dependency| &dependency.pkg));
        }
    }
    seen.into_iter().map(|id| names[id].clone()).collect()
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(source::root().join("Cargo.toml"))
        .other_options(["--locked".to_owned()])
        .exec()
        .unwrap()
}

#[test]
fn crates_touch_what_the_table_lets_them() {
    let document = std::fs::read_to_string(source::root().join("ARCHITECTURE.md")).unwrap();
    let findings = differences(&table(&document), &dependencies(&metadata()));
    assert_none(&findings, "change the code, or the table of ARCHITECTURE.md with the reason");
}

#[test]
fn the_policy_is_built_from_nothing() {
    let metadata = metadata();
    assert_eq!(tree(&metadata, "latido-policy"), BTreeSet::from(["latido-policy".to_owned()]));
    let library = std::fs::read_to_string(source::root().join("agent/policy/src/lib.rs")).unwrap();
    assert!(library.contains("\n#![cfg_attr(not(test), no_std)]\n"), "the policy is not no_std");
}

#[test]
fn a_supervisor_carries_neither_runtime_nor_engine() {
    let tree = tree(&metadata(), "latido-supervisor");
    assert!(tree.contains("latido-protocol") && tree.contains("serde"), "{tree:?}");
    for heavy in ["tokio", "wasmtime", "rusqlite", "clap", "latido", "latido-driver", "latido-plugin-host"] {
        assert!(!tree.contains(heavy), "latido-supervisor is built with {heavy}");
    }
}

#[test]
fn a_difference_between_table_and_crates_is_found() {
    let document = format!(
        "## Other\n\n| x |\n|---|\n| y |\n\n## {HEADING}\n\n| crate | tokio | {EDGES} |\n|---|---|---|\n\
         | `a` | – | `b` |\n| `b` | yes | – |\n| `gone` | – | – |\n"
    );
    let table = table(&document);
    assert_eq!(table["a"][EDGES], "b");
    let crates = |list: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
        list.iter().map(|(name, on)| ((*name).to_owned(), on.iter().map(|on| (*on).to_owned()).collect())).collect()
    };
    let findings = differences(&table, &crates(&[("a", &["tokio"]), ("b", &["a", "tokio"]), ("new", &[])]));
    let expected = [
        "the table has gone, the workspace has not",
        "the table lets a depend on b, it does not",
        "a depends on tokio, its column `tokio` says –",
        "b depends on a, the table does not say so",
        "new has no row in the table",
    ];
    assert_eq!(findings, expected);
    let gone = &table["gone"];
    let whole = BTreeMap::from([("a".to_owned(), table["a"].clone()), ("b".to_owned(), gone.clone())]);
    assert_eq!(differences(&whole, &crates(&[("a", &["b"]), ("b", &[])])), [""; 0]);
}
