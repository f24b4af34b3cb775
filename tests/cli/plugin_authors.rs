//! Plugins made and built from the command line, and the authors' guide, whose commands are run as they stand.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use super::transcript::{LATIDO, Transcript, command};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A shell that finds this latido, the tools that `cargo xtask test` gets, and those of the machine.
fn bash(home: &Path, script: &str) -> Output {
    let own = [
        Path::new(LATIDO).parent().unwrap().to_owned(),
        root().join("target/tools/js/node_modules/.bin"),
        root().join("target/tools/python/bin"),
    ];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = own.into_iter().chain(std::env::split_paths(&path)).collect();
    let mut bash = command("/bin/bash", home);
    bash.env("PATH", std::env::join_paths(folders).unwrap()).args(["-c", script]).output().unwrap()
}

/// A command of the guide, whether it has to fail, and lines that it has to print.
struct Step {
    command: String,
    status: i32,
    prints: Vec<String>,
}

/// The commands of the guide's blocks for a terminal.
fn steps(guide: &str) -> Vec<Step> {
    let blocks = guide.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut steps: Vec<Step> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        if let Some(command) = line.strip_prefix("$ ") {
            let status = i32::from(command.ends_with("# ends with 1"));
            steps.push(Step { command: command.to_owned(), status, prints: Vec::new() });
        } else {
            steps.last_mut().unwrap().prints.push(line.trim().to_owned());
        }
    }
    steps
}

#[test]
fn the_tutorial_of_the_guide_works_as_it_stands() {
    let home = tempfile::tempdir().unwrap();
    if !bash(home.path(), "command -v node && command -v componentize-qjs").status.success() {
        let why =
            "\n!! SKIPPED: the tutorial is NOT TESTED: there is no componentize-qjs; `cargo xtask test` gets it\n";
        std::io::stderr().write_all(why.as_bytes()).unwrap();
        return;
    }
    let steps = steps(&fs::read_to_string(root().join("examples/plugins/README.md")).unwrap());
    assert!(steps.len() > 8, "the guide has {} commands", steps.len());
    let mut place = home.path().to_owned();
    for Step { command, status, prints } in steps {
        if let Some(folder) = command.strip_prefix("cd ") {
            place = place.join(folder);
            continue;
        }
        let output = bash(home.path(), &format!("cd '{}' && {command}", place.display()));
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert_eq!(output.status.code(), Some(status), "{command}\n{said}");
        for line in prints {
            assert!(said.contains(&line), "{command} does not print `{line}`:\n{said}");
        }
    }
}

#[test]
fn wrong_use_of_new_and_build_is_told_in_three_parts() {
    let mut transcript = Transcript::new();
    transcript.file("taken/notes.txt", "");
    for words in [
        "plugin new --lang perl --kind sink a",
        "plugin new --lang rust a",
        "plugin new --lang rust --kind sink ../a",
        "plugin new --lang rust --kind sink UPPER",
        "plugin new --lang rust --kind sink taken",
        "plugin build",
        "plugin build nowhere",
        "plugin new --lang c --kind rule made",
    ] {
        transcript.latido(words);
    }
    transcript.latido_with("plugin build made", &[("PATH", "/nowhere")]);
    transcript.file("made/plugin.toml", "[plugin]\nname = \"made\"\nkind = \"ruel\"\n").latido("plugin build made");
    transcript.file("made/plugin.toml", "[plugin]\nname = \"made\"\nkind = \"rule\"\n");
    transcript
        .file("made/wit/latido.wit", "package latido:plugin@0.0.9;\n")
        .latido("plugin build made")
        .latido("plugin test made");
    transcript.expect("plugin/authors");
}

#[test]
fn a_tool_in_the_project_is_found_from_any_folder() {
    let home = tempfile::tempdir().unwrap();
    let script = "latido plugin new --lang c --kind rule made && mkdir -p made/.venv/bin && cd made/.venv/bin && \
                  printf '#!/bin/sh\necho 0.9.1\n' > zig && chmod +x zig && cd ../../..";
    let made = bash(home.path(), script);
    assert!(made.status.success(), "{made:?}");
    for command in [
        "latido plugin build made",
        "cd made && latido plugin build",
        "LATIDO_ZIG=made/.venv/bin/zig latido plugin build made",
    ] {
        let output = bash(home.path(), command);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("it says 0.9.1, expected 0.14 or later"), "{command}\n{said}");
        assert!(said.contains("next:  get that version with `python3 -m pip install ziglang==0.17.1`"), "{said}");
        assert_eq!(output.status.code(), Some(2));
    }
}
