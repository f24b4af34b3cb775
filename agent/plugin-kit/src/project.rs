//! The folder that a plugin is made in: what says what it is, the source in one of five languages, and cases beside it.
//!
//! ```text
//! plugin.toml      what it is and asks for
//! wit/             the package's text, for the language's tools and for editors
//! cases/*.toml     what it is called with, and what it has to answer
//! build/NAME.wasm  the component; build/ holds nothing that has to be kept
//! Cargo.toml, plugin.py, plugin.js, plugin.c or go.mod: the source, by which the language is known
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use latido_plugin_host::{Kind, Manifest};

/// The file that says what a plugin is and asks for.
const MANIFEST: &str = "plugin.toml";

/// Why a folder is no project.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectError {
    /// A file of it cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// the file
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// Its manifest is wrong.
    #[error("take {}: {message}", path.display())]
    Manifest {
        /// the manifest
        path: PathBuf,
        /// what is wrong, with the line
        message: String,
    },
    /// It has none of the files by which a language is known.
    #[error("tell its language: {} has none of {}", folder.display(), known())]
    NoLanguage {
        /// the project's folder
        folder: PathBuf,
    },
}

/// A language that plugins are built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust, by cargo.
    Rust,
    /// Python, by componentize-py.
    Python,
    /// JavaScript, by componentize-qjs.
    JavaScript,
    /// C, by zig or clang.
    C,
    /// Go, by its own compiler.
    Go,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Rust, Self::Python, Self::JavaScript, Self::C, Self::Go];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::C => "c",
            Self::Go => "go",
        }
    }

    /// The file by which a project of it is known.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "plugin.py",
            Self::JavaScript => "plugin.js",
            Self::C => "plugin.c",
            Self::Go => "go.mod",
        }
    }
}

fn known() -> String {
    Language::ALL.map(Language::mark).join(", ")
}

/// A plugin's folder.
#[derive(Clone, Debug)]
pub struct Project {
    root: PathBuf,
    manifest: Manifest,
    kind: Kind,
    language: Language,
}

impl Project {
    /// Reads what a folder says of itself.
    ///
    /// # Errors
    ///
    /// Names the file that is missing or wrong, and what was expected of it.
    pub fn open(root: &Path) -> Result<Self, ProjectError> {
        let path = root.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(|source| ProjectError::Read { path: path.clone(), source })?;
        let wrong = |message: String| ProjectError::Manifest { path: path.clone(), message };
        let manifest = Manifest::parse(&text).map_err(wrong)?;
        let kind = match manifest.plugin.kind.as_deref() {
            Some("sink") => Kind::Sink,
            Some("rule") => Kind::Rule,
            Some("strategy") => Kind::Strategy,
            Some(other) => return Err(wrong(format!("`kind` is \"{other}\"; it is sink, rule or strategy"))),
            None => return Err(wrong("`kind` is missing under [plugin]; it is sink, rule or strategy".to_owned())),
        };
        if !is_name(&manifest.plugin.name) {
            return Err(wrong(format!("`name` is \"{}\"; {NAME_RULE}", manifest.plugin.name)));
        }
        let language = Language::ALL.into_iter().find(|language| root.join(language.mark()).is_file());
        let language = language.ok_or_else(|| ProjectError::NoLanguage { folder: root.to_owned() })?;
        Ok(Self { root: root.to_owned(), manifest, kind, language })
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.manifest.plugin.name
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Where its component lies once it is built.
    pub fn component(&self) -> PathBuf {
        self.root.join("build").join(format!("{}.wasm", self.name()))
    }

    /// Where its cases lie.
    pub fn cases(&self) -> PathBuf {
        self.root.join("cases")
    }
}

/// What a plugin may be called, in words.
pub const NAME_RULE: &str = "a name begins with a letter a-z and has letters a-z, digits and hyphens, at most 40";

/// Whether a plugin may be called so: the name is a folder's, a file's, a crate's and a module's.
pub fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_lowercase())
        && name.len() <= 40
        && !name.ends_with('-')
        && characters.all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-')
}
