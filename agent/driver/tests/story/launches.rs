//! A launch is refused, ordered again, and goes on all the same.

use latido_driver::{Fact, FoundAttempt, FoundState, Order};
use latido_policy::{LaunchFailure, Proposal};
use latido_protocol::Outcome;
use latido_protocol::status::Phase;
use latido_store::{MemoryStore, Store};

use crate::world::{SECOND, World, attempt, proposal};

/// Without it the work would begin anew where its strategy wanted to go on.
#[test]
fn a_launch_that_is_ordered_again_keeps_the_command_of_its_strategy() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let killed = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    world.step(vec![found, killed]);
    let command = Some(vec!["catalogue".to_owned(), "--resume".to_owned()]);
    let ordered = |orders: Vec<Order>| {
        let launch =
            |order| if let Order::Launch { attempt, command, .. } = order { Some((attempt, command)) } else { None };
        orders.into_iter().find_map(launch).unwrap()
    };
    let answer = Fact::StrategyAnswered {
        attempt: attempt(1, 1),
        proposal: Proposal::Launch,
        detail: String::new(),
        command: command.clone(),
    };
    let (first, proposed) = ordered(world.step(vec![answer]).orders);
    assert_eq!(proposed, command);
    let failure = LaunchFailure::Locked;
    world.step(vec![Fact::LaunchRefused { attempt: first, failure, detail: String::new() }]);
    let (_, again) = ordered(world.pass(60 * SECOND));
    assert_eq!(again, command);
}

#[test]
fn an_epoch_that_was_ordered_is_never_ordered_again_and_no_row_goes_back() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let killed = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    world.step(vec![found, killed]);
    let orders = world.step(vec![proposal(Proposal::Launch)]).orders;
    assert!(matches!(&orders[..], [Order::Launch { attempt: next, .. }] if *next == attempt(2, 2)), "{orders:?}");
    let failure = LaunchFailure::Failed;
    world.step(vec![Fact::LaunchRefused { attempt: attempt(2, 2), failure, detail: String::new() }]);
    let row = world.driver.store().subjects().unwrap().remove(0);
    assert_eq!((row.phase.as_str(), row.epoch), ("backing-off", 2), "the row tells of the refusal");

    let Fact::AttemptEnded { end, .. } = world.ended(1, 1, Outcome::signaled(9, "SIGKILL")) else { unreachable!() };
    let mut world = World::new(world.driver.into_store());
    let found = world.found(FoundState::Ended(end), 1);
    let mut orders = world.step(vec![found]).orders;
    orders.append(&mut world.step(vec![proposal(Proposal::Launch)]).orders);
    assert!(orders.iter().any(|order| matches!(order, Order::Launch { attempt: next, .. } if *next == attempt(2, 3))));
}

/// Its supervisor said nothing in time and lives: nothing is launched beside it, and it is followed once it runs.
#[test]
fn a_launch_that_was_given_up_and_is_seen_to_go_on_is_waited_for() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let killed = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    world.step(vec![found, killed]);
    world.step(vec![proposal(Proposal::Launch)]);
    let failure = LaunchFailure::Failed;
    world.step(vec![Fact::LaunchRefused { attempt: attempt(2, 2), failure, detail: String::new() }]);
    let Fact::JobFound(mut found) = world.found(FoundState::Launching, 2) else { unreachable!() };
    found.attempt = Some(FoundAttempt { start: world.start(2, 2), status: None, state: FoundState::Launching });
    world.step(vec![Fact::JobFound(found)]);
    assert_eq!(world.driver.subjects(&[])[0].phase, Phase::Launching);
    let orders = world.pass(3_600 * SECOND);
    assert!(!orders.iter().any(|order| matches!(order, Order::Launch { .. })), "{orders:?}");
    let start = Box::new(world.start(2, 2));
    world.step(vec![Fact::AttemptStarted { start }]);
    let status = world.driver.subjects(&[]).remove(0);
    assert_eq!((status.phase, status.attempt), (Phase::Running, 2));
}
