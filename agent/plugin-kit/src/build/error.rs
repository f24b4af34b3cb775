//! Why there is no component, and what its author does next.

use std::io;
use std::path::PathBuf;

use latido_plugin_host::{Kind, PACKAGE_VERSIONS};

/// Why a component was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The language's tool is nowhere.
    #[error("find {tool}: it is neither in the project, nor in an active virtual environment, nor in PATH")]
    NoTool {
        /// what is missing
        tool: &'static str,
        /// the variable that may name it
        variable: &'static str,
        /// how it is had
        get: String,
    },
    /// The tool is there in another version.
    #[error("use {tool} ({}): it says {found}, expected {expected}", program.display())]
    ToolVersion {
        /// which
        tool: &'static str,
        /// where it lies
        program: PathBuf,
        /// what it says of itself
        found: String,
        /// what is needed
        expected: String,
        /// how it is had
        get: String,
    },
    /// The tool cannot be started.
    #[error("start {tool} ({})", program.display())]
    Start {
        /// which
        tool: &'static str,
        /// where it lies
        program: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// The tool does not accept the source.
    #[error("compile the source: {tool} ended with {ended}\n{said}")]
    Source {
        /// which tool
        tool: &'static str,
        /// how it ended
        ended: String,
        /// what it said, with file and line
        said: String,
        /// where the source lies
        file: &'static str,
    },
    /// The tool ended well and left nothing.
    #[error("find what {tool} made, {}", path.display())]
    NoOutput {
        /// which tool
        tool: &'static str,
        /// what was expected
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// The project's copy of the package's text cannot be read.
    #[error("read the interface in {}: {message}", path.display())]
    Wit {
        /// the folder or file
        path: PathBuf,
        /// what is wrong
        message: String,
    },
    /// The project's copy of the package is of a version that this latido does not speak.
    #[error(
        "use {}: it is `{found}`, this latido speaks `latido:plugin` {}",
        path.display(),
        PACKAGE_VERSIONS.join(" and ")
    )]
    OldPackage {
        /// the folder
        path: PathBuf,
        /// package and version
        found: String,
    },
    /// The package's text lacks the world of the plugin's kind, or that world lacks an export.
    #[error("use {}: it has no world `{world}` that exports {exports}", path.display())]
    WrongWorld {
        /// the folder
        path: PathBuf,
        /// the world's name
        world: &'static str,
        /// what it has to export
        exports: String,
    },
    /// The source does not have a function that its kind has to have.
    #[error("make a {kind} of it: it lacks {}", missing.join(", "))]
    MissingExport {
        /// what it is to be
        kind: Kind,
        /// the functions, as the language has them
        missing: Vec<String>,
        /// what to write, in a few words
        hint: &'static str,
    },
    /// It imports what no plugin of its kind is given.
    #[error("make a {kind} of it: it imports {}, which a {kind} is not given", imports.join(", "))]
    ForeignImports {
        /// what it is to be
        kind: Kind,
        /// what is foreign
        imports: Vec<String>,
        /// what it may import
        offered: Vec<String>,
    },
    /// The module cannot be made a component.
    #[error("make a component of the module: {message}")]
    Encode {
        /// the encoder's words
        message: String,
    },
    /// It holds a manifest that is not the project's.
    #[error("embed plugin.toml: the component holds another manifest already")]
    OtherManifest,
    /// Bindings cannot be generated.
    #[error("write bindings for {language}: {message}")]
    Bindings {
        /// for which language
        language: &'static str,
        /// the generator's words
        message: String,
    },
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// which
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("write {}", path.display())]
    Write {
        /// which
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
}

impl BuildError {
    /// What the author can do.
    pub fn next(&self) -> String {
        match self {
            Self::NoTool { variable, get, .. } => {
                format!("get it with `{get}`, or say where it is in {variable}; then build again")
            }
            Self::ToolVersion { get, .. } => format!("get that version with `{get}`, then build again"),
            Self::Start { .. } => "check that it can be run by hand".to_owned(),
            Self::Source { file, .. } => format!("mend {file} at the lines that are named, then build again"),
            Self::NoOutput { .. } => "remove build/ and build again".to_owned(),
            Self::Wit { path, .. } => {
                format!("{} is a copy of the package's text: take it from a project that `latido plugin new` makes", {
                    path.display()
                })
            }
            Self::OldPackage { .. } => "take wit/latido.wit from a project that `latido plugin new` makes, then mend \
                                        what the compiler names"
                .to_owned(),
            Self::WrongWorld { .. } => {
                "check `kind` in plugin.toml, and take wit/latido.wit from a project that `latido plugin new` makes"
                    .to_owned()
            }
            Self::MissingExport { hint, .. } => format!("{hint}; check `kind` in plugin.toml"),
            Self::ForeignImports { offered, .. } => format!("use only {}", offered.join(", ")),
            Self::Encode { .. } => "build a project that `latido plugin new` makes, and compare".to_owned(),
            Self::OtherManifest => {
                "leave the section `latido:manifest` to this command, or make both the same".to_owned()
            }
            Self::Bindings { .. } => "take wit/latido.wit from a project that `latido plugin new` makes".to_owned(),
            Self::Read { .. } | Self::Write { .. } => "check the file's path, its rights and the space left".to_owned(),
        }
    }

    /// Whether it is the source or the interface that is wrong, rather than the machine.
    pub fn is_of_source(&self) -> bool {
        matches!(
            self,
            Self::Source { .. }
                | Self::MissingExport { .. }
                | Self::ForeignImports { .. }
                | Self::Encode { .. }
                | Self::OtherManifest
                | Self::OldPackage { .. }
                | Self::WrongWorld { .. }
                | Self::Wit { .. }
                | Self::Bindings { .. }
        )
    }
}
