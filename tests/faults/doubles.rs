//! Many starters at once: one attempt, and the losers write nothing.

use std::process::Child;
use std::time::Duration;

use latido::jobs::clock::{Deadline, wall_time};
use latido::jobs::launch::{LaunchError, LaunchOrder, launch};
use latido_process::lock::Lock;

use crate::support::{Ran, World, wait_until};

const STARTERS: usize = 20;

/// Starts the same command many times at the same instant and waits for all.
fn at_once(world: &World, words: &[&str]) -> Vec<Ran> {
    let children: Vec<Child> = (0..STARTERS).map(|_| world.spawn(words)).collect();
    children.into_iter().map(|child| world.finish(child)).collect()
}

/// How often a script that adds a line to `runs` has begun.
fn runs(world: &World) -> usize {
    world.read("runs").lines().count()
}

#[test]
fn one_name_is_given_once_however_many_ask() {
    let world = World::new();
    let words = ["run", "--detach", "--name", "x", "--", "sh", "-c", "echo $$ >> runs; exec sleep 100"];
    let ran = at_once(&world, &words);
    assert_eq!(ran.iter().filter(|ran| ran.code == Some(0)).count(), 1, "{ran:#?}");
    assert_eq!(ran.iter().filter(|ran| ran.code == Some(4)).count(), STARTERS - 1, "{ran:#?}");
    wait_until("the job", || runs(&world) == 1);
    assert_eq!(world.attempts("x"), [1]);
    let left: Vec<_> =
        std::fs::read_dir(world.state().jobs()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["x"], "a loser left something behind");
}

#[test]
fn unnamed_jobs_started_at_once_get_names_of_their_own() {
    let world = World::new();
    let ran = at_once(&world, &["run", "--detach", "--", "sleep", "100"]);
    let mut names: Vec<String> = ran.into_iter().map(|ran| ran.ends_with(0).stdout).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), STARTERS);
}

/// Field case C100 (ever-works/ever-works PR #2434): twenty resumes of a dead job make one attempt.
#[test]
fn c100_twenty_resumes_at_once_make_one_attempt() {
    let world = World::new();
    world.detach("x", &[], "echo $$ >> runs; test $LATIDO_ATTEMPT = 1 && kill -9 $$; exec sleep 100");
    world.end("x", 1);
    let ran = at_once(&world, &["resume", "x"]);
    assert!(ran.iter().all(|ran| ran.code == Some(0)), "{ran:#?}");
    let winners = ran.iter().filter(|ran| ran.stderr.contains("runs as attempt 2")).count();
    let others = ran.iter().filter(|ran| ran.stderr.contains("running already as attempt 2")).count();
    assert_eq!((winners, others), (1, STARTERS - 1), "{ran:#?}");
    assert_eq!(world.attempts("x"), [1, 2]);
    wait_until("the second attempt", || runs(&world) == 2);
    assert_eq!(world.start("x", 2).epoch, 2);
}

/// Field case C101 (eltmon/overdeck#3556): resuming while it is being launched starts nothing.
#[test]
fn c101_a_resume_during_a_launch_starts_nothing() {
    let world = World::new();
    let words = ["run", "--detach", "--name", "x", "--", "sh", "-c", "echo $$ >> runs; exec sleep 100"];
    let run = world.spawn(&words);
    wait_until("the folder", || world.state().job(&"x".parse().unwrap()).path().exists());
    let ran = at_once(&world, &["resume", "x"]);
    world.finish(run).ends_with(0);
    assert!(ran.iter().all(|ran| ran.code == Some(0)), "{ran:#?}");
    wait_until("the job", || runs(&world) == 1);
    assert_eq!(world.attempts("x"), [1]);
}

/// Field case C103 (slopus/happy PR #1715): the orphan is ended before the next attempt, also when many resume at once.
#[test]
fn c103_an_orphan_is_ended_before_any_of_many_resumes_launches() {
    let world = World::new();
    // Each copy looks for others when it begins.
    let script = "for pid in $(cat runs 2>/dev/null); do \
                  grep 'State:.*[RSDT] ' /proc/$pid/status 2>/dev/null >> doubles; done; echo $$ >> runs; exec sleep 100";
    world.detach("x", &[], script);
    wait_until("the job", || runs(&world) == 1);
    world.kill(world.start("x", 1).supervisor.unwrap().pid, "KILL");
    let ran = at_once(&world, &["resume", "x"]);
    assert!(ran.iter().all(|ran| ran.code == Some(0)), "{ran:#?}");
    wait_until("the second attempt", || runs(&world) == 2);
    assert_eq!(world.read("doubles"), "");
    assert_eq!(world.attempts("x"), [1, 2]);
    assert_eq!(world.living("x", 1), []);
    assert!(world.end("x", 1).recorded_by.contains("latido resume"));
}

/// Field case C104 (Loulen/prompt-driven-orchestrator#592): a launch that loses does not touch the winner.
#[test]
fn c104_a_losing_launch_does_not_touch_the_winner() {
    let world = World::new();
    world.detach("x", &[], "echo $$ >> runs; exec sleep 100");
    let folder = world.state().job(&"x".parse().unwrap());
    let snapshot = || {
        ["job.json", "wanted.json", "busy.json", "attempts/0001/start.json"]
            .map(|name| std::fs::read(folder.path().join(name)).unwrap())
    };
    let before = snapshot();
    let order =
        LaunchOrder { because: "a test".to_owned(), by: "a test".to_owned(), by_hand: true, ..Default::default() };
    let lost = launch(world.state(), &"x".parse().unwrap(), order, wall_time());
    assert!(matches!(lost, Err(LaunchError::Locked { .. })), "{lost:?}");
    assert_eq!(snapshot(), before);
    assert_eq!(world.attempts("x"), [1]);
}

/// A supervisor records the ending and then ends itself, and its lock with it.
#[test]
fn a_launch_between_an_ending_and_the_end_of_its_supervisor_waits_for_the_lock() {
    let world = World::new();
    world.detach("x", &[], "echo $$ >> runs; test $LATIDO_ATTEMPT = 1 && kill -9 $$; exec sleep 100");
    world.end("x", 1);
    let lock_file = world.state().job(&"x".parse().unwrap()).lock();
    let mut lock = None;
    wait_until("the lock is free", || {
        lock = Lock::take(&lock_file).unwrap();
        lock.is_some()
    });
    let launched = std::thread::scope(|scope| {
        let launch = scope.spawn(|| {
            let order = LaunchOrder { because: "a test".to_owned(), by: "a test".to_owned(), ..Default::default() };
            launch(world.state(), &"x".parse().unwrap(), order, wall_time())
        });
        // One that does not wait has failed by then; one that has not come so far finds the lock free.
        Deadline::after(Duration::from_millis(200)).rest(Duration::from_secs(1));
        lock.take();
        launch.join().unwrap()
    });
    // It got the lock, and came as far as to the supervisor's program, which lies beside no test.
    assert!(matches!(launched, Err(LaunchError::NoSupervisor { .. })), "{launched:?}");
}
