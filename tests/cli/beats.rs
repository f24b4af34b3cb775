//! `latido beat` and `latido fence`, from inside an attempt and from outside.

use std::fs;

use latido_protocol::status::Verdict;

use crate::support::{World, wait_until};

/// Field case C203 (systemd/systemd#25961): beats from children and from scripts below them count.
#[test]
fn c203_a_beat_from_any_depth_of_the_job_counts() {
    let world = World::new();
    let script = "latido beat --progress 10%; sh -c 'sh -c \"latido beat --done 3 --total 4 --step three\"'; \
                  latido beat --checkpoint c3 --state busy --errors 2 --answer; echo \"status $?\"; sleep 100";
    world.detach("a", &[], script);
    wait_until("the beats", || world.latido(&["logs", "a"]).stdout == "go-on\nstatus 0\n");
    let status = world.status("a");
    let progress = status.progress.unwrap();
    assert_eq!((progress.fraction, progress.done, progress.total), (Some(0.75), Some(3), Some(4)));
    assert_eq!((progress.step.as_deref(), progress.checkpoint.as_deref()), (Some("three"), Some("c3")));
    assert_eq!((status.state.as_deref(), status.errors, status.verdict), (Some("busy"), 2, Verdict::Alive));
    assert!(status.last_beat.is_some());
    // The checkpoint is what the next attempt gets.
    world.latido(&["stop", "a"]).ends_with(0);
    world.latido(&["resume", "a"]).ends_with(0);
    assert_eq!(world.start("a", 2).checkpoint, "c3");
}

#[test]
fn a_beat_with_an_old_epoch_is_refused_and_said() {
    let world = World::new();
    let script = "LATIDO_EPOCH=0 latido beat --step old; echo \"beat $?\"; \
                  LATIDO_EPOCH=0 latido beat --answer; echo \"answer $?\"; \
                  LATIDO_EPOCH=0 latido fence; echo \"fence $?\"; latido fence; echo \"own $?\"; sleep 100";
    world.detach("a", &[], script);
    wait_until("the answers", || world.latido(&["logs", "a"]).stdout.contains("own"));
    let log = world.latido(&["logs", "a"]).stdout;
    assert!(log.contains("superseded\nanswer 12\n"), "{log}");
    assert!(log.contains("fence 12\n") && log.contains("own 0\n") && log.contains("beat 0\n"), "{log}");
    assert!(log.contains("warning: "), "{log}");
    assert_eq!(world.status("a").progress, None);
}

#[test]
fn a_stop_is_heard_by_the_next_beat() {
    let world = World::new();
    let script = "trap '' TERM; echo up; while sleep 0.05; do latido beat --answer >answer; code=$?; \
                  test $code -eq 0 || { echo \"told $(cat answer) $code\"; exit 0; }; done";
    world.detach("a", &[], script);
    wait_until("the job", || world.latido(&["logs", "a"]).stdout.contains("up"));
    world.latido(&["stop", "a", "--grace", "20s"]).ends_with(0);
    assert_eq!(world.latido(&["logs", "a"]).stdout, "up\ntold stop 11\n");
}

#[test]
fn an_operator_beats_for_a_job_by_name() {
    let world = World::new();
    world.detach("a", &[], "sleep 100");
    world.latido(&["beat", "a", "--progress", "0.5", "--answer"]).ends_with(0);
    assert_eq!(world.status("a").progress.unwrap().fraction, Some(0.5));
    world.latido(&["stop", "a"]).ends_with(0);
    let ran = world.latido(&["beat", "a"]).ends_with(0);
    assert!(ran.stderr.contains("not delivered") && ran.stderr.contains("has ended"), "{ran:?}");
    world.latido(&["beat", "a", "--answer"]).ends_with(3);
}

/// Field case C032 of the kind: a beat that nobody takes never fails the job, and does not hold it for long.
#[test]
fn a_beat_without_a_supervisor_warns_and_a_fence_says_that_nobody_answers() {
    let world = World::new();
    let script = "echo up; while ! test -e go; do sleep 0.05; done; latido beat; echo \"beat $?\"; latido fence; \
                  echo \"fence $?\"; latido beat --answer; echo \"answer $?\"; touch over; sleep 100";
    world.detach("a", &[], &format!("({script}) > said 2>&1"));
    wait_until("the job", || world.read("said").contains("up"));
    world.kill(world.start("a", 1).supervisor.unwrap().pid, "KILL");
    fs::write(world.home().join("go"), "").unwrap();
    wait_until("the answers", || world.home().join("over").exists());
    let said = world.read("said");
    assert!(said.contains("beat 0\n") && said.contains("fence 3\n") && said.contains("answer 3\n"), "{said}");
    assert!(said.contains("warning: the beat was not delivered"), "{said}");
}

/// Nobody answers, but the job has been launched again with a higher epoch: that is proof enough.
#[test]
fn a_fence_is_answered_by_the_files_where_the_supervisor_is_gone() {
    let world = World::new();
    world.detach("a", &[], "exit 0");
    world.end("a", 1);
    world.latido(&["resume", "a"]).ends_with(0);
    world.end("a", 2);
    let ran = world
        .latido_command(&["fence"])
        .env("LATIDO_SOCKET", world.home().join("gone"))
        .env("LATIDO_EPOCH", "1")
        .env("LATIDO_DIR", world.attempt("a", 1).path())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(12), "{ran:?}");
}

#[test]
fn a_wrong_beat_ends_with_2() {
    let world = World::new();
    world.detach("a", &[], "sleep 100");
    for words in [&["beat", "a", "--progress", "1.5"][..], &["beat", "a", "--done", "-1"], &["beat", "a", "--nope"]] {
        world.latido(words).ends_with(2);
    }
    let long = "x".repeat(5000);
    let ran = world.latido(&["beat", "a", "--checkpoint", &long]).ends_with(2);
    assert!(ran.stderr.contains("4096"), "{ran:?}");
}
