use std::time::Duration;

use latido_process::Signal;
use latido_process::lock::Lock;
use latido_process::tree::{end, find, signal};
use latido_protocol::attempt::{Advice, Answer, Beat, Request};
use latido_protocol::files::LedgerLine;
use latido_protocol::{Class, OutcomeKind, Progress, Span, disk};

use crate::support::{Job, is_gone, wait_for, wait_until};

#[test]
fn a_completed_job_is_recorded_with_its_output_and_usage() {
    let attempt = Job::shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo out; echo err >&2").start();
    let end = attempt.end();
    assert_eq!(
        (end.outcome.kind, end.outcome.code, end.outcome.class),
        (OutcomeKind::Exited, Some(0), Class::Completed)
    );
    assert_eq!(attempt.output(), b"out\nerr\n");
    let usage = end.rusage.unwrap();
    assert!(usage.max_rss_kib > 0 && usage.user_s.0 + usage.system_s.0 > Duration::ZERO, "{usage:?}");
    assert_eq!(end.recorded_by, "supervisor");
    assert!(end.proof.contains("collected by its supervisor"), "{}", end.proof);
    assert!(!attempt.job_dir().busy().exists() && !attempt.folder.path().join("sockets").exists());
    assert!(!Lock::is_held(&attempt.job_dir().lock()).unwrap());
    let ledger = attempt.ledger();
    assert_eq!(ledger.len(), 1);
    assert_eq!((ledger[0].class, ledger[0].because.as_str()), (Class::Completed, "first attempt"));
}

#[test]
fn a_kill_from_outside_is_lost() {
    let attempt = Job::shell("exec sleep 1000").start();
    assert_eq!(signal(&[attempt.process()], Signal::KILL), 1);
    let end = attempt.end();
    assert_eq!(
        (end.outcome.kind, end.outcome.signal, end.outcome.class),
        (OutcomeKind::Signaled, Some(9), Class::Lost)
    );
    assert_eq!(end.outcome.detail, "SIGKILL from outside");
    assert_eq!(attempt.ledger()[0].class, Class::Lost);
}

// Blackwellboy/model-serving-minefield PR #28
#[test]
fn c163_exit_status_137_signal_9_and_a_killed_child_are_three_endings() {
    let end = Job::shell("exit 137").start().end();
    assert_eq!((end.outcome.code, end.outcome.signal, end.outcome.class), (Some(137), None, Class::Failed));
    let end = Job::shell("kill -9 $$").start().end();
    assert_eq!((end.outcome.code, end.outcome.signal, end.outcome.class), (None, Some(9), Class::Lost));
    let end = Job::shell("sh -c 'kill -9 $$'; exit $?").start().end();
    assert_eq!((end.outcome.code, end.outcome.signal, end.outcome.class), (Some(137), None, Class::Failed));
    let end = Job::shell("kill -SEGV $$").start().end();
    assert_eq!((end.outcome.signal, end.outcome.class), (Some(11), Class::Failed));
}

#[test]
fn a_supervisor_that_is_killed_leaves_the_job_alive_and_locked_and_it_can_be_ended() {
    let attempt = Job::shell("i=0; while :; do i=$((i+1)); echo line $i; echo $i > count; sleep 0.01; done").start();
    attempt.said("count");
    let job = attempt.process();
    attempt.kill_supervisor();
    let counted = || attempt.said("count").parse::<u32>().unwrap_or(0);
    let before = counted();
    // It goes on printing into a pipe that nobody empties, and gets no SIGPIPE.
    wait_until("the job goes on", || counted() > before + 50);
    assert!(!is_gone(&job));
    assert!(Lock::is_held(&attempt.job_dir().lock()).unwrap());
    assert!(Lock::take(&attempt.job_dir().lock()).unwrap().is_none());
    assert!(!attempt.dir.end().exists());
    let living = find(&attempt.tree()).unwrap();
    assert!(living.processes.contains(&job) && living.supervisors.is_empty(), "{living:?}");
    let ended = end(&attempt.tree(), Duration::from_secs(10)).unwrap();
    assert_eq!(ended.survivors, []);
    assert!(is_gone(&job));
    wait_until("the kernel frees the lock", || !Lock::is_held(&attempt.job_dir().lock()).unwrap());
}

#[test]
fn an_orphan_is_found_by_its_mark_when_its_identity_was_never_written() {
    let attempt = Job::shell("exec sleep 1000").start();
    let job = attempt.process();
    attempt.kill_supervisor();
    let mut tree = attempt.tree();
    (tree.process, tree.supervisor) = (None, None);
    assert_eq!(find(&tree).unwrap().processes, [job]);
}

// python/cpython#76116 (also #82388)
#[test]
fn c164_a_grandchild_that_holds_the_pipe_does_not_hold_the_ending() {
    let attempt = Job::shell("sleep 1000 & echo $! > child; echo started").start();
    let child = attempt.said("child");
    let end = attempt.end();
    assert_eq!(end.outcome.class, Class::Completed);
    assert_eq!(attempt.output(), b"started\n");
    assert!(!std::path::Path::new("/proc").join(child).join("exe").exists());
}

#[test]
fn a_stranger_that_holds_the_pipe_holds_the_ending_for_a_bounded_time_only() {
    // The fifo's reader is not of the attempt: it gets the pipe's writing end and keeps it.
    let attempt = Job::shell("echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; echo last").start();
    let pid = attempt.said("pid");
    let held = std::fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/fd/1")).unwrap();
    std::fs::write(attempt.folder.path().join("go"), "").unwrap();
    assert_eq!(attempt.end().outcome.class, Class::Completed);
    assert_eq!(attempt.output(), b"last\n");
    drop(held);
}

#[test]
fn what_the_job_left_is_ended_and_no_zombie_stays() {
    let attempt = Job::shell("(trap '' TERM; exec sleep 1000) & echo $! > child; (exit 0) & (exit 1) & exit 4").start();
    let child = attempt.identity_in("child");
    let end = attempt.end();
    assert_eq!((end.outcome.code, end.outcome.class), (Some(4), Class::Failed));
    assert!(is_gone(&child));
}

/// A child that asks for more time: it ends by itself a little after SIGTERM, and says that it did.
const ENDS_LATER: &str = "(trap 'sleep 1 && echo >> done; exit' TERM; echo > ready; while :; do sleep 0.05; done) & while [ ! -e ready ]; do sleep 0.05; done";

#[test]
fn what_the_job_left_is_killed_at_once_where_it_may_not_linger() {
    let mut job = Job::shell(ENDS_LATER);
    job.settings.linger = Span(Duration::ZERO);
    let attempt = job.start();
    assert_eq!(attempt.end().outcome.class, Class::Completed);
    assert!(!attempt.folder.path().join("done").exists(), "it had no time to end by itself");
}

#[test]
fn what_the_job_left_has_five_seconds_to_end_by_itself_unless_something_else_is_said() {
    let attempt = Job::shell(ENDS_LATER).start();
    assert_eq!(attempt.end().outcome.class, Class::Completed);
    assert!(attempt.folder.path().join("done").exists(), "the end of the attempt waits for it");
}

#[test]
fn a_stop_hurries_what_lingers() {
    let mut job =
        Job::shell("(trap '' TERM; echo > ready; exec sleep 1000) & while [ ! -e ready ]; do sleep 0.05; done");
    job.settings.linger = Span(Duration::from_secs(600));
    let attempt = job.start();
    attempt.said("ready");
    wait_until("the job's own end", || is_gone(&attempt.process()));
    attempt.stop(Duration::ZERO);
    assert_eq!(attempt.end().outcome.class, Class::Completed, "it had ended by itself before");
}

#[test]
fn orphans_are_collected_while_the_job_runs() {
    let attempt = Job::shell("sh -c 'sh -c \"echo \\$\\$ > orphan; exec sleep 0.05\" &'; exec sleep 1000").start();
    let pid = attempt.said("orphan");
    wait_until("the orphan is collected", || !std::path::Path::new("/proc").join(&pid).exists());
}

#[test]
fn sigterm_to_the_supervisor_ends_the_job_and_is_lost() {
    let attempt = Job::shell("exec sleep 1000").start();
    signal(&[attempt.start().supervisor.unwrap()], Signal::TERM);
    let end = attempt.end();
    assert_eq!((end.outcome.signal, end.outcome.class), (Some(15), Class::Lost));
    assert!(end.outcome.detail.contains("SIGTERM to the supervisor from outside"), "{}", end.outcome.detail);
}

#[test]
fn hangup_and_interrupt_do_not_reach_the_job() {
    let attempt = Job::shell("exec sleep 1000").start();
    let supervisor = attempt.start().supervisor.unwrap();
    for ignored in [Signal::HUP, Signal::INT] {
        assert_eq!(signal(std::slice::from_ref(&supervisor), ignored), 1);
    }
    assert!(matches!(attempt.connect().ask(&Request::Status), Answer::Status { .. }));
    assert!(!is_gone(&attempt.process()));
}

#[test]
fn the_ledger_has_one_line_for_an_attempt_whoever_wrote_it() {
    let attempt = Job::shell("while [ ! -e go ]; do sleep 0.01; done").start();
    let path = attempt.folder.path().join("state/ledger.jsonl");
    // A torn line of somebody else, and the ending and the line of this very attempt by whoever was faster.
    std::fs::write(attempt.dir.end(), "{\"first\":true}").unwrap();
    std::fs::write(&path, "{\"torn\":").unwrap();
    let outcome = latido_protocol::Outcome::lost("written before");
    let line = LedgerLine {
        job: "job".parse().unwrap(),
        attempt: 1,
        epoch: 7,
        started_at: None,
        ended_at: attempt.status().at,
        class: Class::Lost,
        outcome,
        because: "test".into(),
        checkpoint: None,
    };
    disk::append_line(&path, &line, true).unwrap();
    std::fs::write(attempt.folder.path().join("go"), "").unwrap();
    wait_until("the supervisor ends", || latido_process::start::collect(attempt.supervisor));
    let lines = disk::read_lines::<LedgerLine>(&path).unwrap();
    assert_eq!((lines.records.len(), lines.damaged), (1, vec![1]));
}

#[test]
fn an_ending_that_is_recorded_is_never_changed() {
    let attempt = Job::shell("while [ ! -e go ]; do sleep 0.01; done").start();
    std::fs::write(attempt.dir.end(), "{\"first\":true}").unwrap();
    std::fs::write(attempt.folder.path().join("go"), "").unwrap();
    wait_until("the supervisor ends", || latido_process::start::collect(attempt.supervisor));
    assert_eq!(std::fs::read_to_string(attempt.dir.end()).unwrap(), "{\"first\":true}");
}

fn limit_file_size(attempt: &crate::support::Attempt, bytes: Option<u64>) {
    let pid = rustix::process::Pid::from_raw(attempt.supervisor.cast_signed());
    let maximum = rustix::process::getrlimit(rustix::process::Resource::Fsize).maximum;
    let limit = rustix::process::Rlimit { current: bytes.or(maximum), maximum };
    rustix::process::prlimit(pid, rustix::process::Resource::Fsize, limit).unwrap();
}

// anomalyco/opencode#7607, Velocidex/velociraptor#2885. The supervisor alone may write no byte to a file: what a full
// disk does, without a mount.
#[test]
fn c235_on_a_full_disk_nothing_waits_and_the_ending_is_recorded_once_there_is_space() {
    let script = "while [ ! -e go ]; do sleep 0.01; done; head -c 100000 /dev/zero; echo > printed; exec sleep 1000";
    let attempt = Job::shell(script).start();
    let mut client = attempt.connect();
    let before = attempt.status();
    limit_file_size(&attempt, Some(0));
    let checkpoint = Progress { checkpoint: Some("5".into()), ..Progress::default() };
    let answer = client.beat(Beat { progress: checkpoint, ..Beat::default() });
    assert!(matches!(answer, Answer::Error { .. }), "a checkpoint that is not kept is not acknowledged: {answer:?}");
    assert_eq!(client.beat(Beat::default()), Answer::Advice { advice: Advice::GoOn });
    std::fs::write(attempt.folder.path().join("go"), "").unwrap();
    attempt.said("printed");
    signal(&[attempt.process()], Signal::KILL);
    wait_until("the end has been seen", || is_gone(&attempt.process()));
    let told = wait_for("word of the end", || {
        let Answer::Status { status } = client.ask(&Request::Status) else { panic!("the loop goes on") };
        status.trouble.unrecorded
    });
    assert_eq!((told.outcome.class, told.outcome.signal), (Class::Lost, Some(9)));
    assert!(told.because.contains("record the ending"), "{told:?}");
    assert_eq!(attempt.status(), before, "the old content is whole");
    assert!(!attempt.dir.end().exists() && attempt.ledger().is_empty());
    assert!(Lock::is_held(&attempt.job_dir().lock()).unwrap() && attempt.job_dir().busy().exists());

    limit_file_size(&attempt, None);
    let end = attempt.end();
    assert_eq!(end.outcome.class, Class::Lost);
    assert_eq!(end.progress.unwrap().checkpoint.as_deref(), Some("5"));
    assert!(end.proof.contains("100000 bytes of output were lost"), "{}", end.proof);
    assert_eq!(attempt.ledger().len(), 1);
}
