//! `latido status`, `why`, `wait`: verdicts without an agent, and exit statuses.

use std::process::Stdio;

use latido_protocol::status::{Phase, Verdict};

use crate::support::{World, wait_until};

#[test]
fn status_ends_with_1_if_anything_is_not_well() {
    let world = World::new();
    world.latido(&["status"]).ends_with(0);
    world.detach("good", &[], "exit 0");
    world.detach("runs", &[], "sleep 100");
    world.end("good", 1);
    world.latido(&["status"]).ends_with(0);
    world.detach("bad", &[], "exit 3");
    world.end("bad", 1);
    let ran = world.latido(&["status"]).ends_with(1);
    assert!(ran.stdout.contains("exit status 3"), "{ran:?}");
    world.latido(&["status", "good", "runs"]).ends_with(0);
    world.latido(&["why", "bad"]).ends_with(1);
    world.latido(&["why", "runs"]).ends_with(0);
}

#[test]
fn own_beats_are_judged_by_their_lease() {
    let world = World::new();
    let options = ["--interval", "100ms", "--ttl", "1s", "--start-within", "60s"];
    world.detach("a", &options, "while ! test -e go; do sleep 0.05; done; latido beat; sleep 100");
    assert_eq!(world.status("a").verdict, Verdict::Waiting);
    std::fs::write(world.home().join("go"), "").unwrap();
    wait_until("late", || world.status("a").verdict == Verdict::Late);
    wait_until("stale", || world.status("a").verdict == Verdict::Stale);
    world.latido(&["status"]).ends_with(1);
    let why = world.latido(&["why", "a"]).ends_with(1).stdout;
    for fact in ["verdict     stale", "last beat", "changed", "silence", "stale after 1s", "attempt 1"] {
        assert!(why.contains(fact), "{fact} is not in\n{why}");
    }
    // Nobody ended it: silence alone ends nothing.
    assert_ne!(world.living("a", 1), []);
}

#[test]
fn a_first_beat_that_does_not_come_is_missing_and_not_stale() {
    let world = World::new();
    world.detach("a", &["--ttl", "100s", "--start-within", "200ms"], "sleep 100");
    wait_until("missing", || world.status("a").verdict == Verdict::Missing);
}

#[test]
fn wait_ends_with_the_jobs() {
    let world = World::new();
    world.detach("good", &[], "while ! test -e go; do sleep 0.05; done");
    world.detach("bad", &[], "exit 3");
    world.latido(&["wait", "good", "--for", "100ms"]).ends_with(1);
    let waiting = world.spawn(&["wait", "good"]);
    std::fs::write(world.home().join("go"), "").unwrap();
    world.finish(waiting).ends_with(0);
    world.latido(&["wait", "bad"]).ends_with(1);
    world.latido(&["wait", "good", "bad"]).ends_with(1);
}

/// Field case C144 (contember/okena PR #166): a process that has ended and is not collected does not run.
#[test]
fn c144_a_zombie_supervisor_is_gone() {
    let world = World::new();
    // The launcher stays the supervisor's parent and never waits for it.
    let script = format!(
        "{} run --detach --name a --state-dir {} -- sleep 100; sleep 100",
        env!("CARGO_BIN_EXE_latido"),
        world.state().path().display()
    );
    let mut shell = world.command("sh").args(["-c", &script]).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the job", || world.attempt("a", 1).status().exists() && world.start("a", 1).process.is_some());
    world.kill(world.start("a", 1).supervisor.unwrap().pid, "KILL");
    wait_until("the orphan", || world.status("a").verdict == Verdict::Orphaned);
    assert_eq!(world.status("a").phase, Phase::Held);
    shell.kill().unwrap();
    shell.wait().unwrap();
}

#[test]
fn a_stopped_or_stopping_job_says_so() {
    let world = World::new();
    world.detach("a", &[], "trap '' TERM; echo up; while :; do sleep 0.1; done");
    wait_until("the job", || world.latido(&["logs", "a"]).stdout == "up\n");
    let stop = world.spawn(&["stop", "a", "--grace", "600s"]);
    wait_until("draining", || world.status("a").phase == Phase::Draining);
    world.latido(&["stop", "a", "--force"]).ends_with(0);
    world.finish(stop).ends_with(0);
    world.latido(&["status", "a"]).ends_with(0);
}
