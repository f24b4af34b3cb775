//! A folder is a project, or says what it lacks.

use std::fs;

use latido_plugin_host::Kind;
use latido_plugin_kit::{Language, Project};

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
