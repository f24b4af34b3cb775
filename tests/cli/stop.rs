//! `latido stop`: the whole tree, its survivors named, and nothing done to what is not the job.

use latido_protocol::{Class, OutcomeKind};

use crate::support::{World, wait_until};

/// Runs a script that writes `up` when it is ready, and waits for that.
#[track_caller]
fn up(world: &World, name: &str, script: &str) {
    world.detach(name, &[], script);
    wait_until("the job", || world.latido(&["logs", name]).stdout.contains("up\n"));
}

/// Field case C125 (Nukesor/pueue#347): shells below shells.
#[test]
fn c125_all_levels_of_a_tree_end() {
    let world = World::new();
    up(&world, "a", "sh -c 'sh -c \"echo up; sleep 1000; :\"; :'; :");
    assert!(world.living("a", 1).len() >= 3);
    world.latido(&["stop", "a"]).ends_with(0);
    assert_eq!(world.living("a", 1), []);
    let end = world.end("a", 1);
    assert_eq!(end.outcome.class, Class::Stopped);
    assert!(end.outcome.detail.contains("latido stop"), "{end:?}");
}

/// Field case C124 (F1bonacc1/process-compose#520): the leader goes at SIGTERM, its child does not.
#[test]
fn c124_a_child_that_ignores_sigterm_is_killed_after_the_grace() {
    let world = World::new();
    up(
        &world,
        "a",
        "(trap '' TERM; while :; do sleep 0.1; done) & trap 'exit 0' TERM; echo up; while :; do sleep 0.1; done",
    );
    world.latido(&["stop", "a", "--grace", "500ms"]).ends_with(0);
    assert_eq!(world.living("a", 1), []);
}

/// Field case C128 (vybestack/llxprt-code#2791): SIGKILL follows when the grace is over.
#[test]
fn c128_a_job_that_ignores_sigterm_is_killed_and_that_is_recorded() {
    let world = World::new();
    up(&world, "a", "trap '' TERM; echo up; while :; do sleep 0.1; done");
    world.latido(&["stop", "a", "--grace", "300ms"]).ends_with(0);
    let outcome = world.end("a", 1).outcome;
    assert_eq!((outcome.kind, outcome.signal, outcome.class), (OutcomeKind::Signaled, Some(9), Class::Stopped));
}

/// Field case C127 (Supervisor/supervisor#1158): a child in a session of its own is found by its mark.
#[test]
fn c127_an_escape_into_another_session_is_found() {
    let world = World::new();
    up(&world, "a", "setsid sleep 1000 & setsid sh -c 'sleep 1000 & exit' ; echo up; wait; sleep 1000");
    world.latido(&["stop", "a", "--grace", "500ms"]).ends_with(0);
    assert_eq!(world.living("a", 1), []);
}

/// Field case C131 (F1bonacc1/process-compose#49): new children while it is stopped.
#[test]
fn c131_a_job_that_forks_while_it_is_stopped_is_stopped() {
    let world = World::new();
    up(&world, "a", "trap '' TERM; echo up; while :; do (trap '' TERM; sleep 1000) & sleep 0.05; done");
    world.latido(&["stop", "a", "--grace", "300ms"]).ends_with(0);
    assert_eq!(world.living("a", 1), []);
}

/// Field case C133 (Supervisor/supervisor#1073): the second command escalates, and both return.
#[test]
fn c133_a_second_stop_with_force_escalates_at_once() {
    let world = World::new();
    up(&world, "a", "trap '' TERM; echo up; while :; do sleep 0.1; done");
    let first = world.spawn(&["stop", "a", "--grace", "600s"]);
    wait_until("the stop", || world.status("a").phase == latido_protocol::status::Phase::Draining);
    world.latido(&["stop", "a", "--force"]).ends_with(0);
    world.finish(first).ends_with(0);
    assert_eq!(world.living("a", 1), []);
}

#[test]
fn stopping_what_has_ended_changes_nothing() {
    let world = World::new();
    world.detach("a", &[], "exit 3");
    let end = world.end("a", 1);
    world.latido(&["stop", "a"]).ends_with(0);
    world.latido(&["stop", "a", "--force"]).ends_with(0);
    assert_eq!(world.end("a", 1), end);
    assert_eq!(world.latido(&["ledger"]).stdout.lines().count(), 2);
}

/// A supervisor that is stopped by SIGSTOP cannot answer: that is said, with the way out, and nothing is claimed.
#[test]
fn a_supervisor_that_cannot_answer_is_named() {
    let world = World::new();
    world.detach("a", &[], "sleep 100");
    let supervisor = world.start("a", 1).supervisor.unwrap();
    world.kill(supervisor.pid, "STOP");
    let ran = world.latido(&["stop", "a"]).ends_with(3);
    assert!(ran.stderr.contains(&format!("kill -CONT {}", supervisor.pid)), "{ran:?}");
    assert_ne!(world.living("a", 1), []);
    world.kill(supervisor.pid, "CONT");
    world.latido(&["stop", "a"]).ends_with(0);

    world.detach("b", &[], "sleep 100");
    world.kill(world.start("b", 1).supervisor.unwrap().pid, "STOP");
    world.latido(&["stop", "b", "--force"]).ends_with(0);
    assert_eq!(world.living("b", 1), []);
    assert_eq!(world.end("b", 1).outcome.class, Class::Stopped);
}

/// What asks for more time after its leader's end has it, as long as was said.
#[test]
fn what_an_attempt_leaves_running_may_linger_as_long_as_was_said() {
    let world = World::new();
    let leaves = "(trap 'sleep 1; echo >> $LATIDO_JOB.done; exit' TERM; echo > $LATIDO_JOB.ready; while :; do sleep 0.05; done) & \
        while [ ! -e $LATIDO_JOB.ready ]; do sleep 0.05; done";
    world.detach("long", &["--linger", "1m"], leaves);
    world.detach("usual", &[], leaves);
    world.detach("none", &["--linger", "0s"], leaves);
    for (job, is_done) in [("long", true), ("usual", true), ("none", false)] {
        assert_eq!(world.end(job, 1).outcome.class, Class::Completed);
        assert_eq!(world.home().join(format!("{job}.done")).exists(), is_done, "{job}");
        assert!(world.living(job, 1).is_empty());
    }
    world.latido(&["run", "--linger", "5", "--", "true"]).ends_with(2);
}

/// What names its sockets is lost: a supervisor also ends its job when it is terminated itself.
#[test]
fn a_job_whose_start_is_empty_can_be_stopped() {
    let world = World::new();
    up(&world, "a", "echo up; exec sleep 1000");
    let path = world.attempt("a", 1).start();
    let start = world.start("a", 1);
    std::fs::write(&path, "").unwrap();
    world.latido(&["stop", "a"]);
    let process = start.process.unwrap();
    wait_until("its end", || {
        matches!(latido_process::identity::look(&process), latido_process::identity::Look::Gone { .. })
    });
    wait_until("the ending", || world.attempt("a", 1).end().exists());
}
