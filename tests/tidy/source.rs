//! The repository's text files.

use std::path::{Path, PathBuf};

/// One text file; its path is relative to the repository's root, with `/`.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Folders that hold what is built, not what is written.
const NOT_OURS: [&str; 3] = [".git", "target", "node_modules"];

/// Endings of the files that people write.
const TEXT: [&str; 9] = ["rs", "md", "toml", "wit", "sql", "json", "service", "sh", "txt"];

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Reads every text file of the repository, in the order of their paths.
pub(crate) fn all() -> Vec<Source> {
    let root = root();
    let ours = |entry: &walkdir::DirEntry| !NOT_OURS.iter().any(|folder| entry.file_name() == *folder);
    walkdir::WalkDir::new(&root)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(ours)
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.is_file() && is_text(path))
        .map(|path| Source {
            text: std::fs::read_to_string(&path).unwrap(),
            path: path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(),
        })
        .collect()
}

/// Reads every Rust file of the repository.
pub(crate) fn rust() -> Vec<Source> {
    all().into_iter().filter(|source| source.path.ends_with(".rs")).collect()
}

fn is_text(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    // `.ci/run` has no ending and is the one script of the repository.
    ending.map_or_else(|| path.ends_with(".ci/run"), |ending| TEXT.contains(&ending))
}

/// A source for the tests of the rules.
pub(crate) fn sample(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn the_walk_finds_what_is_written_and_not_what_is_built() {
    let paths: Vec<String> = all().into_iter().map(|source| source.path).collect();
    for expected in ["tests/tidy/source.rs", "Cargo.toml", ".ci/run", "wit/latido.wit"] {
        assert!(paths.iter().any(|path| path == expected), "{expected} was not found");
    }
    assert!(!paths.iter().any(|path| path.starts_with("target/")));
}
