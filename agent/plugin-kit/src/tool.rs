//! Finds and runs the tools that languages bring: compilers and componentizers.
//!
//! A tool is looked for where its variable says, in the project's own environment (`.venv`, `node_modules/.bin`), in the
//! active virtual environment, and in `PATH`, in this order.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A tool that a language needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// How it is called in messages.
    pub(crate) name: &'static str,
    /// The variable that names its program.
    pub(crate) variable: &'static str,
    /// What its program may be called.
    pub(crate) programs: &'static [&'static str],
}

/// Where tools are looked for.
#[derive(Clone, Debug, Default)]
pub struct Toolbox {
    path: OsString,
    virtual_environment: Option<PathBuf>,
    named: Vec<(&'static str, PathBuf)>,
}

/// The variables that name programs.
const VARIABLES: [&str; 6] =
    ["LATIDO_CARGO", "LATIDO_COMPONENTIZE_PY", "LATIDO_COMPONENTIZE_QJS", "LATIDO_ZIG", "LATIDO_CLANG", "LATIDO_GO"];

impl Toolbox {
    /// What this process's environment says.
    pub fn of_environment() -> Self {
        let set = |name: &'static str| env::var_os(name).filter(|value| !value.is_empty());
        Self {
            path: set("PATH").unwrap_or_default(),
            virtual_environment: set("VIRTUAL_ENV").map(PathBuf::from),
            named: VARIABLES.iter().filter_map(|name| Some((*name, PathBuf::from(set(name)?)))).collect(),
        }
    }

    /// Only what lies in these folders.
    pub fn of_folders<'a>(folders: impl IntoIterator<Item = &'a Path>) -> Self {
        Self { path: env::join_paths(folders).unwrap_or_default(), ..Self::default() }
    }

    /// Finds a tool for a project.
    pub(crate) fn find(&self, project: &Path, wanted: &Wanted) -> Option<Tool> {
        if let Some((_, program)) = self.named.iter().find(|(variable, _)| *variable == wanted.variable) {
            return Some(Tool::new(absolute(program.clone())));
        }
        let own = [project.join(".venv/bin"), project.join("node_modules/.bin")];
        let active = self.virtual_environment.iter().map(|folder| folder.join("bin"));
        let all = own.into_iter().chain(active).chain(env::split_paths(&self.path));
        let folders: Vec<PathBuf> = all.map(absolute).collect();
        let found = wanted
            .programs
            .iter()
            .find_map(|program| folders.iter().map(|folder| folder.join(program)).find(|program| program.is_file()))?;
        // Componentizers look into the environment that they come from for the modules beside them.
        let environment = found.parent().and_then(Path::parent).filter(|folder| folder.join("pyvenv.cfg").is_file());
        Some(Tool { virtual_environment: environment.map(Path::to_owned), ..Tool::new(found) })
    }
}

/// The same place, whatever folder a tool is run in.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// A tool that was found.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    /// Its program.
    pub(crate) program: PathBuf,
    virtual_environment: Option<PathBuf>,
}

/// What a tool said.
#[derive(Debug)]
pub(crate) struct Said {
    /// Whether it ended with 0.
    pub(crate) is_success: bool,
    /// How it ended, in words.
    pub(crate) ended: String,
    /// What it wrote to stdout.
    pub(crate) stdout: String,
    /// What it wrote to stderr.
    pub(crate) stderr: String,
}

impl Said {
    /// Everything that it said, stderr first.
    pub(crate) fn text(&self) -> String {
        format!("{}\n{}", self.stderr.trim_end(), self.stdout.trim_end()).trim().to_owned()
    }
}

impl Tool {
    /// A program by its path.
    pub(crate) fn new(program: PathBuf) -> Self {
        Self { program, virtual_environment: None }
    }

    /// Runs it in a folder, with nothing to read.
    pub(crate) fn run<S: AsRef<OsStr>>(
        &self,
        folder: &Path,
        arguments: &[S],
        environment: &[(&str, &OsStr)],
    ) -> io::Result<Said> {
        #[expect(clippy::disallowed_methods, reason = "the author's tools, which this file alone starts")]
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        // Meant for the programs of whoever runs latido: tools would show backtraces of their own.
        command.env_remove("RUST_BACKTRACE").env_remove("RUST_LOG");
        if let Some(folder) = &self.virtual_environment {
            command.env("VIRTUAL_ENV", folder);
        }
        command.envs(environment.iter().copied());
        let output = command.output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Said {
            is_success: output.status.success(),
            ended: output.status.to_string(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }
}

/// The first version number in a text: `go version go1.27.3 linux/amd64` has 1.27.3.
pub(crate) fn version_in(text: &str) -> Option<Version> {
    text.split(|character: char| !(character.is_ascii_digit() || character == '.')).find_map(|word| {
        let mut numbers = word.split('.').map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => {
                Some(Version(major, minor, numbers.next().and_then(Result::ok).unwrap_or(0)))
            }
            _ => None,
        }
    })
}

/// A tool's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32, pub(crate) u32);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_a_tool_says() {
        for (said, version) in [
            ("go version go1.27.3 linux/amd64", Some(Version(1, 27, 3))),
            ("componentize-py 0.25.1", Some(Version(0, 25, 1))),
            ("0.17.1\n", Some(Version(0, 17, 1))),
            ("Debian clang version 19.1.7 (3)", Some(Version(19, 1, 7))),
            ("clang 19.1", Some(Version(19, 1, 0))),
            ("none", None),
        ] {
            assert_eq!(version_in(said), version, "{said}");
        }
    }
}
