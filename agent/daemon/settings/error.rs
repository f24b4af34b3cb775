//! What is wrong with a config, and where.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::policy::Complaint;

/// One fault of a config, or one thing in it that is worth a second look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// the file
    pub file: PathBuf,
    /// line and column, counted from 1; `None` where the fault has no single place
    pub place: Option<(usize, usize)>,
    /// the setting, as a path (`policy.default.ttl`)
    pub key: String,
    /// what is wrong
    pub what: String,
    /// what was probably meant
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("read the config {file}", file = file.display())]
    Read {
        /// which
        file: PathBuf,
        /// why
        source: io::Error,
    },
    /// The file does not check out.
    #[error("use the config {file}", file = file.display())]
    Faults {
        /// which
        file: PathBuf,
        /// every fault that was found
        problems: Vec<Problem>,
    },
    /// No policy or strategy has this name.
    #[error("find the {kind} `{name}`")]
    Unknown {
        /// `policy` or `strategy`
        kind: &'static str,
        /// the name
        name: String,
        /// the known name it was probably meant to be
        nearest: Option<String>,
        /// all names there are
        known: Vec<String>,
    },
    /// The values that were given contradict each other.
    #[error("use these settings")]
    Contradiction {
        /// each contradiction
        complaints: Vec<Complaint>,
    },
    /// Neither `--state-dir` nor the config nor the environment names a state directory.
    #[error("name a state directory")]
    NoStateDirectory,
}

impl SettingsError {
    pub(super) fn unknown<T: AsRef<str>>(
        kind: &'static str,
        name: &str,
        nearest: Option<String>,
        known: impl IntoIterator<Item = T>,
    ) -> Self {
        let known = known.into_iter().map(|name| name.as_ref().to_owned()).collect();
        Self::Unknown { kind, name: name.to_owned(), nearest, known }
    }

    /// Every cause, one line each, for the person who reads it.
    pub fn causes(&self) -> Vec<String> {
        match self {
            Self::Read { source, .. } => vec![source.to_string()],
            Self::Faults { problems, .. } => problems.iter().map(Problem::to_string).collect(),
            Self::Unknown { kind, known, .. } if known.is_empty() => vec![format!("the config has no {kind} at all")],
            Self::Unknown { kind, known, .. } => vec![format!("the config has no such {kind}; it has {}", list(known))],
            Self::Contradiction { complaints } => complaints.iter().map(|complaint| complaint.why.clone()).collect(),
            Self::NoStateDirectory => vec!["neither XDG_STATE_HOME nor HOME is an absolute path".to_owned()],
        }
    }

    /// What the reader can do.
    pub fn next(&self) -> String {
        match self {
            Self::Read { file, .. } => {
                format!("make {} readable, or name another file with --config", file.display())
            }
            Self::Faults { file, .. } => {
                format!(
                    "mend it and run `latido config check {}`; `latido config schema` describes every key",
                    file.display()
                )
            }
            Self::Unknown { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
            Self::Unknown { kind, name, .. } => {
                format!("add the {kind} `{name}` to the config, or name another; `latido config show` lists them")
            }
            Self::Contradiction { .. } => {
                "change one of the values; `latido config show` has the policy's own".to_owned()
            }
            Self::NoStateDirectory => "give --state-dir DIR, or set HOME".to_owned(),
        }
    }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
