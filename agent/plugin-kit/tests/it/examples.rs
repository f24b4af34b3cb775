//! The examples: the same rule in five languages, which is what `latido plugin new` makes, a sink, and a strategy.

use std::fs;
use std::path::Path;

use latido_plugin_host::Kind;
use latido_plugin_kit::{Language, NewProject, Plan, Plugin, Project, WIT, create, test};

use crate::projects::{built, root};
use crate::support::Ground;

/// The files below a folder, by their path in it.
fn files(folder: &Path, below: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join(below)).unwrap().flatten() {
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        if ["build", "bindings", "target", "node_modules", "Cargo.lock"].contains(&name.as_str()) {
            continue;
        }
        if entry.path().is_dir() { found.extend(files(folder, &format!("{name}/"))) } else { found.push(name) }
    }
    found.sort();
    found
}

#[test]
fn the_rule_in_five_languages_is_what_a_new_project_holds() {
    let folder = tempfile::tempdir().unwrap();
    for language in Language::ALL {
        let name = format!("silence-{}", language.name());
        let made = create(folder.path(), &NewProject { name: &name, language, kind: Kind::Rule }).unwrap();
        let example = root().join("examples/plugins").join(&name);
        let paths = files(made.root(), "");
        assert_eq!(files(&example, ""), paths, "{name}");
        for path in paths {
            let (made, kept) = (fs::read_to_string(made.root().join(&path)), fs::read_to_string(example.join(&path)));
            assert_eq!(kept.unwrap(), made.unwrap(), "{name}/{path}");
        }
    }
}

/// Builds an example in a folder of its own, and tests it.
fn passes(name: &str, kind: Kind, cases: usize) {
    let ground = Ground::new();
    let example = root().join("examples/plugins").join(name);
    assert_eq!(fs::read_to_string(example.join("wit/latido.wit")).unwrap(), WIT);
    let place = ground.folder.path().join(name);
    for path in files(&example, "") {
        fs::create_dir_all(place.join(&path).parent().unwrap()).unwrap();
        fs::copy(example.join(&path), place.join(&path)).unwrap();
    }
    let project = Project::open(&place).unwrap();
    assert_eq!((project.kind(), project.name()), (kind, name));
    if built(&project).is_none() {
        return;
    }
    let plan = Plan { cases: Some(project.cases()), conformance: true, ..Plan::default() };
    let outcome = test(&ground.workshop, &Plugin::of(&project).unwrap(), &plan).unwrap();
    assert_eq!(outcome.cases.len(), cases);
    let faults: Vec<String> = outcome
        .reports()
        .filter(|(_, report)| !report.passes())
        .map(|(suite, report)| format!("{suite} {}: {:#?}\n{:#?}", report.name, report.faults, report.logs))
        .collect();
    assert!(outcome.passes(), "{}", faults.join("\n"));
}

#[test]
fn the_sink_in_python_passes() {
    passes("csv-python", Kind::Sink, 2);
}

#[test]
fn the_strategy_in_javascript_passes() {
    passes("patience-js", Kind::Strategy, 2);
}
