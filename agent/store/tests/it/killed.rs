//! A real process that commits is killed with SIGKILL in the middle, again and again.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support;
use latido_store::{Batch, SqliteStore, Store, SubjectRow};

/// Names the store for the process that commits.
const STORE: &str = "LATIDO_TEST_STORE";

/// How often the process is killed. Most kills hit a commit, since it does nothing else.
const KILLS: u64 = 20;

#[test]
fn what_was_acknowledged_outlives_kill_9_without_holes_or_doubles() {
    let (_directory, path) = support::place();
    let mut acknowledged = 0;
    for kill in 0..KILLS {
        let mut child = process("killed::process_that_commits_until_it_is_killed", STORE, &path);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        // What stands in the pipe after the kill was acknowledged too, so it is read to its end.
        for line in lines.map_while(Result::ok) {
            let Some((_, number)) = line.split_once("acknowledged ") else { continue };
            acknowledged = number.parse().unwrap();
            seen += 1;
            if seen == 1 + kill * 3 % 17 {
                child.kill().unwrap();
            }
        }
        assert!(seen > 0, "the process committed");
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "it was killed: {status}");

        let store = SqliteStore::open(&path).unwrap();
        let last = support::check_whole(&store);
        assert!(last >= acknowledged, "kill {kill}: {acknowledged} acknowledged, {last} there");
        let rows = store.subjects().unwrap();
        assert_eq!(rows[0].sequence, last, "a batch's row and entries are one transaction");
        assert_eq!(store.alerts().unwrap(), []);
        store.examine().unwrap();
    }
}

/// Not a test of its own: what the process does that the test above starts and kills.
#[test]
fn process_that_commits_until_it_is_killed() {
    let Some(path) = env::var_os(STORE) else { return };
    let mut store = SqliteStore::open(Path::new(&path)).unwrap();
    let mut last = store.last_sequence().unwrap();
    let mut out = std::io::stdout();
    for round in 1_u64.. {
        let count = 1 + round * 7 % 40;
        let row = SubjectRow { name: "a".to_owned(), sequence: last + count, ..SubjectRow::default() };
        let batch = Batch { subjects: vec![row], ..support::numbered(last + 1, count, 200) };
        let committed = if round % 4 == 0 { store.commit_quick(&batch) } else { store.commit(&batch) }.unwrap();
        last = committed.last_sequence;
        writeln!(out, "acknowledged {last}").unwrap();
        out.flush().unwrap();
        if round % 10 == 0 {
            store.checkpoint().unwrap();
        }
    }
}

/// Starts a test of this program as a process of its own, with the store's path in a variable.
#[expect(clippy::disallowed_methods, reason = "the test needs a process of its own to kill")]
pub(crate) fn process(test: &str, variable: &str, path: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}
