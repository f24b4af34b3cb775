//! Processes found by what they are called.

use std::process::{Child, Stdio};
use std::time::Duration;

use latido_process::find::{self, Called};
use latido_process::identity;

use crate::support::{command, wait_until};

/// A process that ends with the test.
struct Sleeper(Child);

impl Sleeper {
    fn new(mark: &str) -> Self {
        // The shell waits for a line that never comes, and for nothing else that could outlive it.
        let mut shell = command("sh");
        shell.args(["-c", "read line", mark]).stdin(Stdio::piped());
        let child = shell.spawn().unwrap();
        // The kernel lets the starter go on before the new program's name and arguments can be seen.
        let words = format!("/proc/{}/cmdline", child.id());
        wait_until("the shell", || std::fs::read_to_string(&words).is_ok_and(|words| words.contains("read line")));
        Self(child)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_is_found_by_a_text_of_its_command_line_and_only_while_it_lives() {
    let mark = format!("found-{}", std::process::id());
    let sleeper = Sleeper::new(&mark);
    let found = find::called(&Called::Command(mark.clone())).unwrap();
    assert_eq!(found, [identity::of(sleeper.0.id()).unwrap().unwrap()]);
    drop(sleeper);
    assert_eq!(find::called(&Called::Command(mark)).unwrap(), []);
}

#[test]
fn a_process_is_found_by_its_name_the_oldest_first() {
    let (one, other) = (Sleeper::new("one"), Sleeper::new("other"));
    let found = find::called(&Called::Name("sh".to_owned())).unwrap();
    let place = |child: &Child| found.iter().position(|identity| identity.pid == child.id()).unwrap();
    assert!(place(&one.0) < place(&other.0));
    assert!(find::called(&Called::Name("no-such-program".to_owned())).unwrap().is_empty());
}

#[test]
fn the_age_of_a_process_is_the_time_since_its_start() {
    let own = identity::own().unwrap();
    let first = find::age(&own).unwrap();
    assert!(first < Duration::from_secs(3600), "this test began less than an hour ago: {first:?}");
    assert!(find::age(&own).unwrap() >= first);
    assert!(find::age(&identity::of(1).unwrap().unwrap()).unwrap() >= first);
}
