//! The supervisor dies and its job lives.

use std::io::Read;

use latido::jobs::clock::wall_time;
use latido::jobs::recover::record_lost;
use latido_protocol::Class;
use latido_protocol::status::Verdict;

use crate::support::{World, wait_until};

/// Makes an orphan out of a job.
#[track_caller]
fn orphan(world: &World, name: &str, script: &str) {
    world.detach(name, &[], script);
    wait_until("the job", || world.read("up").contains(name));
    let supervisor = world.start(name, 1).supervisor.unwrap().pid;
    world.kill(supervisor, "KILL");
    wait_until("the orphan", || world.status(name).verdict == Verdict::Orphaned);
}

/// Field case C134 (Supervisor/supervisor#925): what the supervisor left behind is known, shown, and ended by order.
#[test]
fn c134_an_orphan_is_listed_and_ended() {
    let world = World::new();
    world.latido(&["orphans"]).ends_with(0);
    orphan(&world, "a", "echo a >> up; sleep 100; :");
    let listed = world.latido(&["orphans", "--json"]).ends_with(1).stdout;
    let pid = world.start("a", 1).process.unwrap().pid;
    assert!(listed.contains(&format!("\"pid\": {pid}")), "{listed}");
    assert!(world.latido(&["why", "a"]).stdout.contains(&pid.to_string()));
    world.latido(&["orphans", "--kill"]).ends_with(0);
    assert_eq!(world.living("a", 1), []);
    assert_eq!(world.status("a").verdict, Verdict::Dead);
}

#[test]
fn a_stop_ends_an_orphan_and_records_it_as_stopped() {
    let world = World::new();
    orphan(&world, "a", "trap '' TERM; echo a >> up; while :; do sleep 0.1; done");
    world.latido(&["stop", "a", "--grace", "200ms"]).ends_with(0);
    assert_eq!(world.living("a", 1), []);
    let end = world.end("a", 1);
    assert_eq!((end.outcome.class, end.recorded_by.as_str()), (Class::Stopped, "latido stop"));
    assert!(!world.start("a", 1).sockets.exists(), "the sockets were left behind");
    assert_eq!(world.latido(&["ledger"]).stdout.lines().count(), 2);
}

#[test]
fn a_resume_ends_an_orphan_and_records_the_loss_once() {
    let world = World::new();
    orphan(&world, "a", "echo a$LATIDO_ATTEMPT >> up; sleep 100");
    world.latido(&["remove", "a"]).ends_with(4);
    world.latido(&["resume", "a"]).ends_with(0);
    let end = world.end("a", 1);
    assert_eq!(end.outcome.class, Class::Lost);
    assert_eq!(world.living("a", 1), []);
    wait_until("the second attempt", || world.read("up") == "a1\na2\n");
    let status = world.status("a");
    assert_eq!((status.verdict, status.attempt, status.pickups), (Verdict::Alive, 2, 1));
    assert_eq!(world.latido(&["ledger"]).stdout.lines().count(), 2);
}

/// The foreground does not wait for ever for a supervisor that was killed.
#[test]
fn the_foreground_ends_when_its_attempt_is_lost() {
    let world = World::new();
    let mut child = world.spawn(&["run", "--name", "a", "--", "sh", "-c", "echo up; exec sleep 100"]);
    // What the foreground shows, it shows after the launch.
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 3]).unwrap();
    world.kill(world.start("a", 1).supervisor.unwrap().pid, "KILL");
    let ran = world.finish(child).ends_with(128 + 9);
    assert!(ran.stderr.contains("was lost"), "{ran:?}");
}

/// Job and supervisor die together: the loss is recorded by the first who may, once.
#[test]
fn a_job_that_died_with_its_supervisor_is_dead_and_recorded_by_the_next_command() {
    let world = World::new();
    world.detach("a", &[], "echo a >> up; exec sleep 100");
    wait_until("the job", || world.read("up") == "a\n");
    let start = world.start("a", 1);
    world.kill(start.supervisor.unwrap().pid, "KILL");
    world.kill(start.process.unwrap().pid, "KILL");
    wait_until("its death", || world.status("a").verdict == Verdict::Dead);
    world.latido(&["status"]).ends_with(1);
    world.latido(&["stop", "a"]).ends_with(0);
    let end = world.end("a", 1);
    assert_eq!(end.outcome.class, Class::Lost);
    assert!(!world.state().job(&"a".parse().unwrap()).busy().exists());
    world.latido(&["stop", "a"]).ends_with(0);
    assert_eq!(world.end("a", 1), end);
    assert_eq!(world.latido(&["ledger"]).stdout.lines().count(), 2);
}

#[test]
fn a_resume_says_what_it_ended_first() {
    let world = World::new();
    orphan(&world, "a", "echo a$LATIDO_ATTEMPT >> up; exec sleep 1000");
    let pid = world.start("a", 1).process.unwrap().pid;
    let ran = world.latido(&["resume", "a"]).ends_with(0);
    let told = format!("attempt 1 of job a had lost its supervisor: pid {pid} (sleep) was ended first\n");
    assert!(ran.stderr.contains(&told), "{ran:?}");
    assert_eq!(world.living("a", 1), []);
}

/// A job and its supervisor are killed together, as by a machine without memory: whoever records that clears away for them.
#[test]
fn what_was_made_for_an_attempt_goes_with_it_also_when_its_supervisor_cannot_clear_away() {
    let world = World::new();
    world.detach("a", &[], "echo a >> up; exec sleep 100");
    wait_until("the job", || world.read("up").contains('a'));
    let start = world.start("a", 1);
    let folders = start.cgroup.map(|cgroup| cgroup.folders).unwrap_or_default();
    assert!(folders.iter().all(|folder| folder.path.is_dir()), "{folders:?}");
    for process in [start.supervisor, start.process].into_iter().flatten() {
        world.kill(process.pid, "KILL");
    }
    wait_until("the loss is recorded", || {
        record_lost(world.state(), &"a".parse().unwrap(), 1, "a test", wall_time()).is_ok()
    });
    assert!(folders.iter().all(|folder| !folder.path.exists()), "{folders:?}");
    assert!(!start.sockets.exists(), "the sockets were left behind");
}
