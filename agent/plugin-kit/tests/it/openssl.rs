//! Other people's programs: they read what the kit writes, and the other way round.

use std::process::Command;

/// What a program prints.
pub(crate) fn output(program: &str, words: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "tests run the programs that formats are shared with")]
    let ran = Command::new(program).args(words).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(ran.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}
