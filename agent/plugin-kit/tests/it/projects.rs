//! Tools and projects for the tests.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use latido_plugin_kit::{BuildError, Built, Language, NewProject, Project, Toolbox, build, create};

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The tools that `cargo xtask test` gets, and those of the machine.
pub(crate) fn toolbox() -> Toolbox {
    let own = [root().join("target/tools/python/bin"), root().join("target/tools/js/node_modules/.bin")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = own.into_iter().chain(std::env::split_paths(&path)).collect();
    Toolbox::of_folders(folders.iter().map(PathBuf::as_path))
}

/// Builds a project; none where its tool is not there, which is said.
pub(crate) fn built(project: &Project) -> Option<Built> {
    match build(project, &toolbox()) {
        Ok(built) => Some(built),
        Err(error @ BuildError::NoTool { .. }) => {
            skipped(project, &error);
            None
        }
        Err(error) => panic!("cannot {error}\n{}", error.next()),
    }
}

/// Says that a language is not tested, past the test runner, which shows nothing of a test that passes.
pub(crate) fn skipped(project: &Project, error: &BuildError) {
    let (language, next) = (project.language().name(), error.next());
    let text = format!("\n!! SKIPPED: {language} is NOT TESTED: cannot {error}; {next}\n");
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

/// A new project in a folder whose path has a space.
pub(crate) fn project(folder: &Path, language: Language, kind: latido_plugin_host::Kind) -> Project {
    let parent = folder.join("a folder");
    std::fs::create_dir_all(&parent).unwrap();
    let name = format!("my-{}-{}", kind.name(), language.name());
    create(&parent, &NewProject { name: &name, language, kind }).unwrap()
}
