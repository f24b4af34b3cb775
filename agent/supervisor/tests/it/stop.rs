use std::time::Duration;

use latido_process::lock::Lock;
use latido_protocol::attempt::{Advice, Answer, Beat, Ground, Request, StopReason};
use latido_protocol::{Class, OutcomeKind, Span};

use crate::support::{Job, is_gone, untested, wait_until};

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_commanded_stop_keeps_the_signal_and_is_stopped() {
    let attempt = Job::shell("exec sleep 1000").start();
    assert_eq!(attempt.stop(LONG), Answer::Stopping);
    let end = attempt.end();
    assert_eq!(
        (end.outcome.kind, end.outcome.signal, end.outcome.class),
        (OutcomeKind::Signaled, Some(15), Class::Stopped)
    );
    assert!(end.outcome.detail.contains("stopped by a test"), "{}", end.outcome.detail);
}

#[test]
fn each_reason_has_its_class() {
    let classes = [
        (StopReason::Commanded, Class::Stopped),
        (StopReason::Stale, Class::Lost),
        (StopReason::Hung, Class::Lost),
        (StopReason::Superseded, Class::Lost),
        (StopReason::Limit, Class::Limit),
    ];
    for (because, class) in classes {
        let attempt = Job::shell("trap 'exit 0' TERM; echo > ready; while :; do sleep 0.01; done").start();
        attempt.said("ready");
        let request = Request::Stop { ground: None, grace: None, force: false, because, by: "a test".into() };
        attempt.connect().ask(&request);
        let end = attempt.end();
        assert_eq!((end.outcome.code, end.outcome.class), (Some(0), class), "{because:?}");
    }
}

/// A handler of SIGTERM saves what is to be saved with programs of its own: they have the grace too.
#[test]
fn what_a_job_starts_to_clean_up_with_is_not_terminated() {
    let script = "trap 'sleep 0.2 && sh -c \"sleep 0.2 && setsid -w sleep 0.1 && echo saved > saved\"; exit 0' TERM; \
                  echo > ready; while :; do sleep 0.02; done";
    let attempt = Job::shell(script).start();
    attempt.said("ready");
    attempt.stop(LONG);
    assert_eq!(attempt.end().outcome.code, Some(0));
    assert_eq!(attempt.said("saved"), "saved");
}

// F1bonacc1/process-compose#520
#[test]
fn c124_a_leader_that_ends_does_not_save_a_child_that_ignores_sigterm() {
    let attempt = Job::shell("(trap '' TERM; sh -c 'echo $$ > child; exec sleep 1000') & wait").start();
    let child = attempt.identity_in("child");
    attempt.stop(SHORT);
    assert_eq!(attempt.end().outcome.class, Class::Stopped);
    assert!(is_gone(&child));
}

// Nukesor/pueue#347 (also #33)
#[test]
fn c125_a_program_two_shells_down_is_ended() {
    let attempt = Job::shell("sh -c 'sh -c \"echo \\$\\$ > child; sleep 1000; :\"; :'; :").start();
    let child = attempt.identity_in("child");
    attempt.stop(LONG);
    attempt.end();
    assert!(is_gone(&child));
}

// Supervisor/supervisor#1158
#[test]
fn c127_what_left_the_session_is_ended_too() {
    let script = "setsid sh -c 'echo $$ > a; exec sleep 1000' & \
                  setsid sh -c '(setsid env -i sh -c \"echo \\$\\$ > b; exec sleep 1000\" &)'; echo > ready; wait";
    let attempt = Job::shell(script).start();
    let escaped = [attempt.identity_in("a"), attempt.identity_in("b")];
    attempt.stop(LONG);
    let end = attempt.end();
    assert!(escaped.iter().all(is_gone), "{}", end.proof);
    // By a scan, or, where their end came before it, by the supervisor's having no other child.
    let is_told =
        ["no process of the attempt is left", "has no other child"].iter().any(|text| end.proof.contains(text));
    assert!(is_told, "{}", end.proof);
}

// vybestack/llxprt-code#2791
#[test]
fn c128_a_job_that_ignores_sigterm_is_killed_when_the_grace_is_over() {
    let attempt = Job::shell("trap '' TERM; echo > ready; while :; do sleep 0.05; done").start();
    attempt.said("ready");
    attempt.stop(SHORT);
    let end = attempt.end();
    assert_eq!((end.outcome.signal, end.outcome.class), (Some(9), Class::Stopped));
}

// vellum-ai/vellum-assistant PR #41688
#[test]
fn c130_the_kill_reaches_the_whole_group() {
    let script = "trap '' TERM; for i in 1 2 3; do sh -c \"echo \\$\\$ > $i; exec sleep 1000\" & done; wait; \
                  while :; do sleep 0.05; done";
    let attempt = Job::shell(script).start();
    let children = ["1", "2", "3"].map(|name| attempt.identity_in(name));
    attempt.stop(SHORT);
    attempt.end();
    assert!(children.iter().all(is_gone));
}

// F1bonacc1/process-compose#49
#[test]
fn c131_a_job_that_forks_while_it_is_stopped_leaves_nothing() {
    let script = "trap 'while :; do setsid sleep 1000 & sleep 1000 & sleep 0.05; done' TERM; echo > ready; \
                  while :; do sleep 0.02; done";
    let attempt = Job::shell(script).start();
    attempt.said("ready");
    let tree = attempt.tree();
    attempt.stop(SHORT);
    let end = attempt.end();
    assert_eq!(latido_process::tree::find(&tree).unwrap().processes, [], "{}", end.proof);
}

// Supervisor/supervisor#1073
#[test]
fn c133_force_kills_at_once_in_the_middle_of_a_long_grace() {
    let attempt = Job::shell("trap '' TERM; echo > ready; while :; do sleep 0.05; done").start();
    attempt.said("ready");
    attempt.stop(LONG);
    wait_until("the stop shows", || attempt.status().stopping);
    assert!(!is_gone(&attempt.process()));
    let force =
        Request::Stop { ground: None, grace: None, force: true, because: StopReason::Commanded, by: "a test".into() };
    assert_eq!(attempt.connect().ask(&force), Answer::Stopping);
    assert_eq!(attempt.end().outcome.signal, Some(9));
}

#[test]
fn a_stopped_job_is_continued_so_that_it_hears() {
    let attempt = Job::shell("trap 'exit 5' TERM; echo > ready; kill -STOP $$; while :; do sleep 0.01; done").start();
    attempt.said("ready");
    attempt.stop(LONG);
    assert_eq!(attempt.end().outcome.code, Some(5));
}

#[test]
fn beats_during_a_stop_are_advised_to_stop() {
    let attempt = Job::shell("trap '' TERM; echo > ready; while :; do sleep 0.05; done").start();
    attempt.said("ready");
    let mut client = attempt.connect();
    assert_eq!(client.beat(Beat::default()), Answer::Advice { advice: Advice::GoOn });
    attempt.stop(LONG);
    assert_eq!(client.beat(Beat::default()), Answer::Advice { advice: Advice::Stop });
    // A commanded stop outranks the one that runs, a weaker one does not.
    let weaker =
        Request::Stop { ground: None, grace: None, force: true, because: StopReason::Stale, by: "the agent".into() };
    client.ask(&weaker);
    assert_eq!(attempt.end().outcome.class, Class::Stopped);
}

#[test]
fn an_order_to_end_is_void_where_what_it_rests_on_is_not_so() {
    let attempt = Job::shell("exec sleep 1000").start();
    let mut client = attempt.connect();
    client.beat(Beat::default());
    client.beat(Beat::default());
    let order = |because, ground| Request::Stop {
        grace: None,
        force: true,
        ground: Some(ground),
        because,
        by: "the agent".into(),
    };
    let hour = Span(Duration::from_secs(3600));
    for (because, ground) in [
        (StopReason::Stale, Ground::Silent { for_s: hour }),
        (StopReason::Hung, Ground::Still { for_s: hour }),
        (StopReason::Hung, Ground::Repeating { beats: 1 }),
        (StopReason::Hung, Ground::Broken),
    ] {
        assert!(matches!(client.ask(&order(because, ground)), Answer::Error { .. }), "{ground:?}");
    }
    assert!(!is_gone(&attempt.process()));
    let silent = Ground::Silent { for_s: Span(Duration::from_nanos(1)) };
    assert!(matches!(client.ask(&order(StopReason::Stale, silent)), Answer::Stopping));
    let end = attempt.end();
    assert_eq!((end.outcome.class, end.stopped_for), (Class::Lost, Some(StopReason::Stale)));
}

/// A cgroup of version 1 whose processes are frozen, and hear SIGKILL only when they are thawed: what a dead disk does.
struct Frozen(std::path::PathBuf);

impl Frozen {
    fn new(process: u32) -> Option<Self> {
        let path = std::path::PathBuf::from(format!("/sys/fs/cgroup/freezer/latido-test-{process}"));
        let frozen = Self(path.clone());
        let put = |file: &str, text: &str| std::fs::write(path.join(file), text);
        let made = std::fs::create_dir(&path)
            .and_then(|()| put("cgroup.procs", &process.to_string()))
            .and_then(|()| put("freezer.state", "FROZEN"));
        if let Err(error) = made {
            untested(&format!("this host has no freezer of version 1 to make a process unkillable: {error}"));
            return None;
        }
        wait_until("it is frozen", || {
            std::fs::read_to_string(path.join("freezer.state")).is_ok_and(|state| state.trim() == "FROZEN")
        });
        Some(frozen)
    }

    fn thaw(&self) {
        std::fs::write(self.0.join("freezer.state"), "THAWED").unwrap();
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.join("freezer.state"), "THAWED");
        wait_until("it is empty", || std::fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}

// systemd/systemd#13288, google/fleetspeak execution.go
#[test]
fn c136_c139_what_sigkill_does_not_end_is_named_after_a_bounded_time_and_the_lock_stays_held() {
    let attempt = Job::shell("exec sleep 1000").start();
    let process = attempt.process();
    let Some(frozen) = Frozen::new(process.pid) else { return };
    attempt.stop(Duration::ZERO);
    wait_until("it is named", || attempt.status().survivors == [process.clone()]);
    assert!(Lock::is_held(&attempt.job_dir().lock()).unwrap() && !attempt.dir.end().exists());
    assert!(matches!(attempt.connect().ask(&Request::Status), Answer::Status { .. }), "the loop goes on");
    frozen.thaw();
    assert_eq!(attempt.end().outcome.class, Class::Stopped, "what ends late is recorded all the same");
}
