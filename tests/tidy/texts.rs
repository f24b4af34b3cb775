//! What no text of the repository holds.

use crate::assert_none;
use crate::source::{self, Source, sample};

/// Marks of unfinished work, put together so that this file does not hold them.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Paths of one machine.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Words of a comment that makes sense only beside the change that brought it.
const HISTORY: [&str; 5] = ["previously", "for now", "formerly", "anymore", "used to be"];

fn unfinished(source: &Source) -> Vec<String> {
    lines(source, |line| {
        let is_word = |word: &str| line.split(|letter: char| !letter.is_alphanumeric()).any(|part| part == word);
        UNFINISHED.iter().find(|word| is_word(word)).map(|word| (*word).to_owned())
    })
}

fn machine_paths(source: &Source) -> Vec<String> {
    lines(source, |line| MACHINE_PATHS.iter().find(|path| starts_in(line, path)).map(|path| (*path).to_owned()))
}

/// Tells whether `path` begins somewhere in the line, and is not the middle of a longer path.
fn starts_in(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|letter| !letter.is_alphanumeric() && !matches!(letter, '.' | '_' | '-' | '}' | '*' | '~'))
    })
}

fn history(source: &Source) -> Vec<String> {
    lines(source, |line| {
        let comment = line.trim_start().strip_prefix("//")?.to_lowercase();
        HISTORY.iter().find(|word| comment.contains(*word)).map(|word| (*word).to_owned())
    })
}

/// Applies `find` to each line and says where it found what.
fn lines(source: &Source, find: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let numbered = source.text.lines().enumerate();
    numbered
        .filter_map(|(index, line)| find(line).map(|what| format!("{}:{} holds `{what}`", source.path, index + 1)))
        .collect()
}

#[test]
fn nothing_is_left_unfinished() {
    let findings: Vec<String> = source::all().iter().flat_map(unfinished).collect();
    assert_none(&findings, "finish it, or file it where work is tracked");
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    let findings: Vec<String> = source::all().iter().flat_map(machine_paths).collect();
    assert_none(&findings, "use a folder of the test's own, or a path relative to the repository");
}

#[test]
fn comments_tell_no_history() {
    let findings: Vec<String> = source::rust().iter().flat_map(history).collect();
    assert_none(&findings, "say what is and why; the history is in the commits");
}

#[test]
fn each_rule_finds_what_it_is_for() {
    assert_eq!(unfinished(&sample("a.rs", &format!("// {}: later", UNFINISHED[0]))).len(), 1);
    assert_eq!(unfinished(&sample("a.rs", &format!("let {}S = 1;", UNFINISHED[0]))), [""; 0]);
    assert_eq!(machine_paths(&sample("a.md", &format!("see `{}x`", MACHINE_PATHS[0]))).len(), 1);
    assert_eq!(machine_paths(&sample("a.md", &format!("chroot{}x", MACHINE_PATHS[0]))), [""; 0]);
    assert_eq!(history(&sample("a.rs", "fn a() {}\n    /// It was previously used.")), ["a.rs:2 holds `previously`"]);
    assert_eq!(history(&sample("a.rs", "let text = \"previously\";")), [""; 0]);
}
