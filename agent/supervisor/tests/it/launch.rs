use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use latido_process::lock::{Lock, holders};
use latido_process::start::collect;
use latido_protocol::attempt::Report;
use latido_protocol::disk;
use latido_protocol::files::{Beats, Busy, End, Start};
use latido_protocol::{Class, OutcomeKind};

use crate::support::{Attempt, Job, hear, hold, start, wait_until};

#[test]
fn a_started_attempt_is_on_the_disk_with_its_identities() {
    let attempt = Job::shell("exec sleep 1000").start();
    let start = attempt.start();
    let process = attempt.process();
    assert_eq!(attempt.report, Report::Started { pid: process.pid });
    assert_eq!(start.supervisor.as_ref().unwrap().pid, attempt.supervisor);
    assert!(start.started_at.is_some());
    let busy: Busy = disk::read(&attempt.job_dir().busy()).unwrap().unwrap();
    assert_eq!((busy.attempt, busy.epoch, Some(busy.supervisor)), (1, 7, start.supervisor));
    assert_eq!(attempt.status().epoch, 7);
    for (path, mode) in [("sockets", 0o700), ("sockets/control", 0o600), ("sockets/notify", 0o600)] {
        let found = attempt.folder.path().join(path).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{path}");
    }
    let mut held = holders(&attempt.job_dir().lock());
    held.sort_unstable();
    let mut both = [attempt.supervisor, process.pid];
    both.sort_unstable();
    assert_eq!(held, both, "supervisor and job hold the lock");
}

/// The record that a held supervisor waits for appears after it was started, as where a starter waits for the disk.
#[test]
fn a_held_supervisor_starts_its_job_once_the_attempt_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let dir = Job::shell("exec sleep 1000").lay_out(folder.path());
    let lock = dir.job().unwrap().lock();
    let aside = folder.path().join("not-yet");
    std::fs::rename(dir.start(), &aside).unwrap();
    let held = hold(&dir, Lock::take(&lock).unwrap().unwrap());
    wait_until("it holds the lock", || holders(&lock).iter().any(|pid| *pid != std::process::id()));
    std::fs::rename(&aside, dir.start()).unwrap();
    let starting = held.go();
    let supervisor = starting.pid;
    let Report::Started { pid } = hear(starting) else { panic!("it did not start its job") };
    let recorded: Start = disk::read(&dir.start()).unwrap().unwrap();
    assert_eq!(recorded.process.map(|process| process.pid), Some(pid));
    assert_eq!(recorded.supervisor.map(|process| process.pid), Some(supervisor));
    drop(Attempt { folder, dir, report: Report::Started { pid }, supervisor });
}

#[test]
fn a_held_supervisor_that_is_dismissed_or_loses_its_starter_does_nothing_and_frees_the_lock() {
    for is_dismissed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let dir = Job::shell("touch ran; exec sleep 1000").lay_out(folder.path());
        let lock = dir.job().unwrap().lock();
        let before = std::fs::read(dir.start()).unwrap();
        let held = hold(&dir, Lock::take(&lock).unwrap().unwrap());
        let mut said = String::new();
        if is_dismissed {
            held.dismiss().report.read_to_string(&mut said).unwrap();
        } else {
            drop(held); // as the kernel does it for a starter that was killed
        }
        assert_eq!(said, "");
        wait_until("the lock is free", || Lock::take(&lock).unwrap().is_some());
        assert_eq!(std::fs::read(dir.start()).unwrap(), before);
        assert!(!folder.path().join("ran").exists() && !folder.path().join("sockets").exists());
    }
}

#[test]
fn the_job_is_told_who_it_is_and_nothing_of_the_supervisor() {
    let attempt = Job::shell("env > env; ls -l /proc/$$/fd; echo > done; exec sleep 1000").start();
    attempt.said("done");
    let environment = attempt.said("env");
    let value =
        |name: &str| environment.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned);
    let sockets = attempt.folder.path().join("sockets");
    assert_eq!(value("LATIDO_JOB").as_deref(), Some("job"));
    assert_eq!(value("LATIDO_ATTEMPT").as_deref(), Some("1"));
    assert_eq!(value("LATIDO_EPOCH").as_deref(), Some("7"));
    assert_eq!(value("LATIDO_CHECKPOINT").as_deref(), Some("from before"));
    assert_eq!(value("LATIDO_DIR").as_deref(), attempt.dir.path().to_str());
    assert_eq!(value("LATIDO_SOCKET").as_deref(), sockets.join("control").to_str());
    assert_eq!(value("NOTIFY_SOCKET").as_deref(), sockets.join("notify").to_str());
    assert_eq!(value("WATCHDOG_USEC").as_deref(), Some("180000000"));
    assert_eq!(value("LATIDO_TOKEN").unwrap().len(), 32);
    for absent in ["WATCHDOG_PID", "LATIDO_SUPERVISES"] {
        assert_eq!(value(absent), None, "{absent}");
    }
    let token = value("LATIDO_TOKEN").unwrap();
    for file in [attempt.dir.start(), attempt.dir.status(), attempt.job_dir().job(), attempt.job_dir().busy()] {
        assert!(!std::fs::read_to_string(file).unwrap().contains(&token), "the token is in no file");
    }
    let mut fd = String::new();
    wait_until("the descriptors are listed", || {
        fd = String::from_utf8(attempt.output()).unwrap();
        !fd.is_empty()
    });
    assert!(fd.contains("0 -> /dev/null"), "{fd}");
    assert!(!fd.contains("socket:") && !fd.contains("anon_inode"), "{fd}");
    // 0, 1, 2, the lock and the pipe's reading end.
    assert_eq!(fd.lines().filter(|line| line.contains("->")).count(), 5, "{fd}");
}

#[test]
fn a_job_that_counts_by_presence_gets_no_watchdog() {
    let attempt = Job::shell("env > env; echo > done; exec sleep 1000").with(|s| s.beats = Beats::Presence).start();
    attempt.said("done");
    assert!(!attempt.said("env").contains("WATCHDOG"));
}

// Supervisor/supervisor#1321, bobmatnyc/trusty-tools#5661
#[test]
fn c185_c188_a_failed_launch_is_reported_and_recorded() {
    let missing = Job { directory: Some("/no/such/folder".into()), ..Job::of(&["true"]) };
    for (job, message) in [(Job::of(&["no-such-program"]), "in PATH"), (missing, "no such directory")] {
        let attempt = job.start();
        let Report::LaunchFailed { detail } = &attempt.report else { panic!("{:?}", attempt.report) };
        assert!(detail.contains(message), "{detail}");
        let end = attempt.end();
        assert_eq!((end.outcome.kind, end.outcome.class), (OutcomeKind::LaunchFailed, Class::Failed));
        assert_eq!(&end.outcome.detail, detail);
        assert_eq!(attempt.ledger().len(), 1);
        assert!(!attempt.job_dir().busy().exists() && !attempt.folder.path().join("sockets").exists());
        assert!(!Lock::is_held(&attempt.job_dir().lock()).unwrap());
    }
}

#[test]
fn without_the_lock_nothing_is_started_or_written() {
    let folder = tempfile::tempdir().unwrap();
    let dir = Job::shell("echo > ran").lay_out(folder.path());
    let before = std::fs::read(dir.start()).unwrap();
    let held = Lock::take(&dir.job().unwrap().lock()).unwrap().unwrap();
    let other = Lock::take(&folder.path().join("other")).unwrap().unwrap();
    let starting = start(&dir, other);
    let pid = starting.pid;
    let report = hear(starting);
    assert!(matches!(&report, Report::Refused { detail } if detail.contains("lock")), "{report:?}");
    wait_until("it ends", || collect(pid));
    assert_eq!(std::fs::read(dir.start()).unwrap(), before);
    assert!(!dir.end().exists() && !dir.job().unwrap().busy().exists() && !folder.path().join("ran").exists());
    drop(held);
}

#[test]
fn two_starters_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let dir = Job::shell("echo $$ >> ran; exec sleep 1000").lay_out(folder.path());
    let lock = dir.job().unwrap().lock();
    let first = Lock::take(&lock).unwrap().unwrap();
    assert!(Lock::take(&lock).unwrap().is_none());
    let starting = start(&dir, first);
    let supervisor = starting.pid;
    let report = hear(starting);
    let attempt = Attempt { folder, dir, report, supervisor };
    attempt.said("ran");
    assert!(Lock::take(&lock).unwrap().is_none());
    assert_eq!(attempt.said("ran").lines().count(), 1);
}

#[test]
fn rubbish_in_the_files_is_refused_by_name() {
    for (file, content) in [("start.json", &b""[..]), ("start.json", b"{\"version\":99}"), ("job.json", &[0; 100])] {
        let folder = tempfile::tempdir().unwrap();
        let dir = Job::shell("echo > ran").lay_out(folder.path());
        let path = if file == "job.json" { dir.job().unwrap().job() } else { dir.start() };
        std::fs::write(path, content).unwrap();
        let lock = Lock::take(&dir.job().unwrap().lock()).unwrap().unwrap();
        let starting = start(&dir, lock);
        let pid = starting.pid;
        let report = hear(starting);
        assert!(matches!(&report, Report::Refused { detail } if detail.contains(file)), "{report:?}");
        wait_until("it ends", || collect(pid));
        assert!(disk::read::<End>(&dir.end()).unwrap().is_none() && !folder.path().join("ran").exists());
    }
}

#[test]
fn a_socket_path_that_is_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = Job::shell("echo > ran").lay_out(folder.path());
    let mut file: Start = disk::read(&dir.start()).unwrap().unwrap();
    file.sockets = folder.path().join("x".repeat(120));
    disk::replace(&dir.start(), &file).unwrap();
    let lock = Lock::take(&dir.job().unwrap().lock()).unwrap().unwrap();
    let starting = start(&dir, lock);
    let pid = starting.pid;
    let report = hear(starting);
    assert!(matches!(&report, Report::Refused { detail } if detail.contains("sockets")), "{report:?}");
    wait_until("it ends", || collect(pid));
}

// anthropics/claude-code#79175
#[test]
fn c167_standard_input_is_at_its_end_at_once() {
    let attempt = Job::of(&["cat"]).start();
    assert_eq!(attempt.end().outcome.class, Class::Completed);
    let attempt = Job::shell("read answer || exit 3").start();
    assert_eq!(attempt.end().outcome.code, Some(3));
}

// frankbria/ralph-claude-code PR #170, kahliburke/Kaimon.jl#85
#[test]
fn c168_there_is_no_terminal_to_wait_for() {
    let attempt = Job::shell("exec 2> /dev/null; (: < /dev/tty) && exit 1; exit 0").start();
    assert_eq!(attempt.end().outcome.class, Class::Completed);
}

#[test]
fn run_for_ends_the_job_with_the_class_limit() {
    let limit = latido_protocol::Limit::After(Duration::from_millis(300));
    let attempt = Job::shell("exec sleep 1000").with(|s| s.run_for = limit).start();
    let end = attempt.end();
    assert_eq!(
        (end.outcome.kind, end.outcome.signal, end.outcome.class),
        (OutcomeKind::Signaled, Some(15), Class::Limit)
    );
    assert!(end.outcome.detail.contains("run_for of 300ms"), "{}", end.outcome.detail);
}
