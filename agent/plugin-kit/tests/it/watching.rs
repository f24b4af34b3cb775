//! What a person saves is heard of, and what tools make is not.

use std::fs;

use latido_plugin_kit::Watcher;

#[test]
fn what_is_saved_is_told_and_what_is_built_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("cases")).unwrap();
    fs::create_dir(path("build")).unwrap();
    let watcher = Watcher::new(&[folder.path().to_owned()]).unwrap();
    fs::write(path("build/mine.wasm"), "built").unwrap();
    fs::write(path("cases/a.golden.json"), "{}").unwrap();
    fs::write(path("cases/a.toml"), "about = \"a\"").unwrap();
    assert_eq!(watcher.changed().unwrap(), path("cases/a.toml"));
    fs::write(path("plugin.c"), "int x;").unwrap();
    assert_eq!(watcher.changed().unwrap(), path("plugin.c"));
    let watcher = Watcher::new(&[path("build/mine.wasm")]).unwrap();
    fs::write(path("build/mine.wasm"), "built again").unwrap();
    assert_eq!(watcher.changed().unwrap(), path("build/mine.wasm"));
    let error = Watcher::new(&[path("nowhere/at/all")]).map(drop).unwrap_err().to_string();
    assert!(error.contains("nowhere/at"), "{error}");
}
