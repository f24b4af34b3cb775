//! Commands in, a transcript out, compared with a committed file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program under test.
pub(crate) const LATIDO: &str = env!("CARGO_BIN_EXE_latido");

/// A command that sees nothing of the person who runs the tests: no home, no config, no terminal.
#[expect(clippy::disallowed_methods, reason = "tests of the command line run the program and the shells it serves")]
pub(crate) fn command(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", home).env("LC_ALL", "C.UTF-8");
    command.env("XDG_RUNTIME_DIR", home).current_dir(home).stdin(Stdio::null());
    command
}

/// What was typed and what came, in a folder of its own that is also the home.
pub(crate) struct Transcript {
    home: tempfile::TempDir,
    text: String,
}

impl Transcript {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), text: String::new() }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file below the home, and shows it.
    pub(crate) fn file(&mut self, path: &str, text: &str) -> &mut Self {
        let full = self.home().join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, text).unwrap();
        self.text.push_str(&format!("--- {path}\n{text}---\n"));
        self
    }

    /// Runs `latido` with these words.
    pub(crate) fn latido(&mut self, words: &str) -> &mut Self {
        self.latido_with(words, &[])
    }

    /// The same, with variables set.
    pub(crate) fn latido_with(&mut self, words: &str, variables: &[(&str, &str)]) -> &mut Self {
        let output = command(LATIDO, self.home())
            .args(words.split_whitespace())
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let set: String = variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        self.text.push_str(&format!("$ {set}latido {words}\n{}", self.told(&output)));
        self
    }

    /// Output, messages marked with `!`, and the exit status where it is not 0.
    fn told(&self, output: &Output) -> String {
        let clean =
            |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().replace(self.home().to_str().unwrap(), "HOME");
        let mut text = clean(&output.stdout);
        for line in clean(&output.stderr).lines() {
            text.push_str(format!("! {line}").trim_end());
            text.push('\n');
        }
        match output.status.code() {
            Some(0) => {}
            Some(code) => text.push_str(&format!("(exit {code})\n")),
            None => text.push_str("(killed)\n"),
        }
        text
    }

    /// Compares with `tests/cli/expected/NAME.txt`; `UPDATE_EXPECTED=1` writes it.
    #[track_caller]
    pub(crate) fn expect(&self, name: &str) {
        expect(name, &self.text);
    }
}

/// Compares a text with `tests/cli/expected/NAME.txt`; `UPDATE_EXPECTED=1` writes it.
#[track_caller]
pub(crate) fn expect(name: &str, text: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/expected").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == text,
        "{} differs; UPDATE_EXPECTED=1 writes it.\n--- expected\n{expected}\n--- came\n{text}",
        path.display()
    );
}
