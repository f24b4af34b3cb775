//! What is seen of an attempt from outside stands beside what its supervisor tells.

use std::time::Duration;

use latido_driver::{Fact, FoundState};
use latido_protocol::Limit;
use latido_protocol::journal::Body;
use latido_protocol::status::Verdict;
use latido_store::{MemoryStore, Store};

use crate::world::{SECOND, World, attempt, name};

fn seen(number: u32, idle: u32, doing: Option<&str>) -> Fact {
    let (attempt, doing) = (attempt(number, number.into()), doing.map(str::to_owned));
    Fact::ActivitySeen { attempt, idle: SECOND * idle, doing }
}

/// A job that beats, gets on, and may stand still for five seconds.
fn watched() -> World {
    let mut world = World::new(MemoryStore::default());
    let mut found = world.found(FoundState::Running, 1);
    let Fact::JobFound(job) = &mut found else { unreachable!() };
    job.job.settings.hung_after = Limit::After(5 * SECOND);
    let beat = world.status(1, Duration::ZERO);
    world.step(vec![found, beat]);
    world
}

fn reason(world: &World) -> String {
    world.driver.subjects(&[]).remove(0).reason
}

/// The reasons of the changes of verdict that the journal holds.
fn transitions(world: &mut World) -> Vec<String> {
    let rows = world.driver.store().entries_after(0, &["transition".to_owned()], 100).unwrap();
    let reason = |body: &str| {
        let Body::Transition { reason, .. } = serde_json::from_str(body).unwrap() else { panic!("{body}") };
        reason
    };
    rows.iter().map(|row| reason(&row.body)).collect()
}

#[test]
fn a_job_that_hangs_says_what_its_first_process_waits_in_and_since_when_it_does_nothing() {
    let mut world = watched();
    world.step(vec![seen(1, 7, Some("its first process sleeps in pipe_read"))]);
    assert!(!reason(&world).contains("pipe_read"), "of one that lives nobody asks: {}", reason(&world));
    world.pass(5 * SECOND);
    let told = "no new progress for 5s, and 5s is allowed; nor has it done anything for 7s; \
                its first process sleeps in pipe_read";
    assert_eq!((world.verdict(), reason(&world).as_str()), (Verdict::Hung, told));
    assert_eq!(transitions(&mut world).last().map(String::as_str), Some(told));
    world.step(vec![seen(1, 1, None)]);
    assert!(reason(&world).ends_with("it is busy: output, CPU time or I/O grew 1s ago"), "{}", reason(&world));
    world.step(vec![seen(1, 2, Some("its first process is stopped"))]);
    world.pass(5 * SECOND);
    assert_eq!(world.verdict(), Verdict::Stale);
    assert_eq!(reason(&world), "silence 10s reached the ttl of 10s; its first process is stopped");
}

#[test]
fn a_look_at_another_attempt_says_nothing_of_the_present_one() {
    let mut world = watched();
    world.step(vec![seen(2, 0, Some("its first process is another")), seen(1, 9, None)]);
    world.pass(5 * SECOND);
    assert_eq!(reason(&world), "no new progress for 5s, and 5s is allowed; nor has it done anything for 9s");
    world.step(vec![seen(1, 9, Some("its first process sleeps in pipe_read"))]);
    let (start, beat) = (Box::new(world.start(2, 2)), seen(1, 0, Some("its first process sleeps in pipe_read")));
    world.step(vec![Fact::AttemptStarted { start }, beat]);
    world.pass(20 * SECOND);
    assert_eq!((world.verdict(), reason(&world).contains("pipe_read")), (Verdict::Missing, false));
    assert_eq!(world.driver.unexpected_count(), 0);
}

#[test]
fn a_look_that_changes_nothing_writes_nothing() {
    let mut world = watched();
    let kinds = world.kinds();
    for idle in 0..5 {
        let output = world.step(vec![seen(1, idle, Some("its first process sleeps in pipe_read"))]);
        assert_eq!((output.changed, output.entries.len()), (vec![], 0), "idle for {idle} s");
    }
    assert_eq!((world.kinds(), world.driver.is_written()), (kinds, true));
}

#[test]
fn words_of_any_length_are_kept_to_a_sentence() {
    let mut world = watched();
    world.step(vec![seen(1, 7, Some(&"ä".repeat(100_000)))]);
    world.pass(5 * SECOND);
    assert_eq!(reason(&world).chars().filter(|letter| *letter == 'ä').count(), 200);
    assert_eq!(world.driver.latest(&name()).unwrap().attempt(), Some(attempt(1, 1)));
}
