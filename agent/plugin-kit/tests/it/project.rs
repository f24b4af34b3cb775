//! A folder is a project, or says what it lacks.

use std::fs;

use latido_plugin_host::Kind;
use latido_plugin_kit::{Language, NewProject, Project, create};

#[test]
fn a_folder_that_is_no_project_says_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let error = || Project::open(folder.path()).unwrap_err().to_string();
    assert!(error().contains("plugin.toml"), "{}", error());
    for (manifest, expected) in [
        ("[plugin]\nname = \"a\"\n", "`kind` is missing"),
        ("[plugin]\nname = \"a\"\nkind = \"sinc\"\n", "`kind` is \"sinc\""),
        ("[plugin]\nname = \"../a\"\nkind = \"sink\"\n", "`name` is \"../a\""),
        ("[plugin]\nname = \"a\"\nkind = \"sink\"\n[requires]\nsqk = []\n", "unknown field `sqk`"),
        ("[plugin]\nname = \"a\"\nkind = \"sink\"\n", "none of Cargo.toml, plugin.py"),
    ] {
        fs::write(folder.path().join("plugin.toml"), manifest).unwrap();
        assert!(error().contains(expected), "{} lacks {expected}", error());
    }
    fs::write(folder.path().join("plugin.c"), "").unwrap();
    let project = Project::open(folder.path()).unwrap();
    assert_eq!((project.kind(), project.language()), (Kind::Sink, Language::C));
    assert_eq!(project.component(), folder.path().join("build/a.wasm"));
}

#[test]
fn a_project_is_made_once_and_never_over_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let new = NewProject { name: "night", language: Language::Python, kind: Kind::Rule };
    let project = create(folder.path(), &new).unwrap();
    assert_eq!((project.name(), project.language(), project.kind()), ("night", Language::Python, Kind::Rule));
    let source = project.root().join("plugin.py");
    fs::write(&source, "mine").unwrap();
    let error = create(folder.path(), &new).unwrap_err().to_string();
    assert!(error.contains("is there already"), "{error}");
    assert_eq!(fs::read_to_string(source).unwrap(), "mine");
}

#[test]
fn a_project_cannot_be_called_by_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let long = "a".repeat(41);
    for name in ["", ".", "..", "../a", "a/b", "/a", "A", "a b", "-a", "a-", "1a", "a\0b", "é", "a_b", &long] {
        let error = create(folder.path(), &NewProject { name, language: Language::C, kind: Kind::Sink }).unwrap_err();
        assert!(error.to_string().contains("a name begins with a letter"), "{name}: {error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn no_template_keeps_a_mark_that_should_have_been_filled() {
    let folder = tempfile::tempdir().unwrap();
    for language in Language::ALL {
        for kind in [Kind::Sink, Kind::Rule, Kind::Strategy] {
            let name = format!("a-{}-{}", language.name(), kind.name());
            let project = create(folder.path(), &NewProject { name: &name, language, kind }).unwrap();
            for file in ["README.md", "plugin.toml", "cases/first.toml", language.mark(), ".gitignore"] {
                let text = fs::read_to_string(project.root().join(file)).unwrap();
                let left = text
                    .split('@')
                    .skip(1)
                    .any(|part| part.len() > 3 && part.bytes().take(3).all(|byte| byte.is_ascii_uppercase()));
                assert!(!left, "{name}/{file}:\n{text}");
            }
        }
    }
}

#[test]
fn editors_know_the_interface_before_the_first_build() {
    let folder = tempfile::tempdir().unwrap();
    for (language, file, holds) in [
        (Language::Rust, "bindings/storage_sink.rs", "pub struct Acknowledgement"),
        (Language::JavaScript, "bindings/latido.d.ts", "export function write(batch: Batch): Acknowledgement;"),
        (Language::C, "bindings/storage_sink.h", "exports_latido_plugin_sink_write("),
        (Language::Go, "bindings/latido_plugin_sink/wit_bindings.go", "type Acknowledgement struct"),
    ] {
        let project = create(folder.path(), &NewProject { name: language.name(), language, kind: Kind::Sink }).unwrap();
        let text = fs::read_to_string(project.root().join(file)).unwrap();
        assert!(text.contains(holds), "{file}:\n{text}");
    }
    let declared = fs::read_to_string(folder.path().join("js/bindings/latido.d.ts")).unwrap();
    for line in [
        "declare module \"latido:plugin/rule@0.2.0\" {",
        "  export type Severity = \"info\" | \"warning\" | \"critical\";",
        "    costUsd: number | null;",
        "  export type EnvironmentValue = { tag: \"plain\"; val: string } | { tag: \"withheld\" } | { tag: \"secret\"; val: string };",
        "  export type Subject = import(\"latido:plugin/types@0.2.0\").Subject;",
        "  export function get(key: string): Uint8Array | null;",
    ] {
        assert!(declared.contains(line), "{line} is not in\n{declared}");
    }
}
