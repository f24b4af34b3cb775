//! `latido completions`.

use super::transcript::{LATIDO, command};

fn completions(shell: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = command(LATIDO, home.path()).args(["completions", shell]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Has the shell itself read the text without running it; false where the shell is not installed.
fn parses(shell: &str, text: &str) -> bool {
    if !["/usr/bin", "/bin"].iter().any(|folder| std::path::Path::new(folder).join(shell).exists()) {
        return false;
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("completions"), text).unwrap();
    let output = command(shell, home.path()).args(["-n", "completions"]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {output:?}");
    true
}

#[test]
fn every_shell_knows_the_commands_and_reads_its_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let text = completions(shell);
        for word in ["run", "status", "orphans", "max-attempts", "resume-on", "presence", "config"] {
            assert!(text.contains(word), "{shell} does not know {word}");
        }
        let read = parses(shell, &text);
        assert!(read || shell != "bash", "bash is needed for this test");
    }
}

#[test]
fn bash_completes_a_command() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("completions"), completions("bash")).unwrap();
    let script = "source ./completions; COMP_WORDS=(latido sta); COMP_CWORD=1; _latido latido sta latido; echo \"${COMPREPLY[@]}\"";
    let output = command("bash", home.path()).args(["-c", script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "status\n", "{output:?}");
}
