//! A job is killed, orphaned, stopped, removed, and found again.

use std::collections::BTreeSet;
use std::time::Duration;

use latido_driver::{Fact, FoundAttempt, FoundState, Order};
use latido_policy::{Life, Proposal};
use latido_protocol::files::{Start, Status, Want, Wanted};
use latido_protocol::status::{Phase, Verdict};
use latido_protocol::{Limit, Outcome, WallTime};
use latido_store::{MemoryStore, Store};

use crate::world::{SECOND, World, attempt, name, proposal};

#[test]
fn a_killed_job_is_asked_about_and_launched_again_with_the_next_epoch() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    assert_eq!(world.step(vec![found]).orders, []);
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    let orders = world.step(vec![ended]).orders;
    assert!(
        matches!(&orders[..], [Order::AskStrategy { attempt: about, strategy, .. }] if *about == attempt(1, 1) && strategy == "script"),
        "{orders:?}"
    );
    let orders = world.step(vec![proposal(Proposal::Launch)]).orders;
    assert!(matches!(&orders[..], [Order::Launch { attempt: next, .. }] if *next == attempt(2, 2)), "{orders:?}");
    let row = world.driver.store().subjects().unwrap().remove(0);
    assert_eq!((row.attempt, row.epoch, row.phase.as_str()), (2, 2, "launching"), "the intent is on the disk");
    let kinds = world.kinds();
    for kind in ["attempt-started", "attempt-ended", "lease-expired", "transition", "phase"] {
        assert!(kinds.iter().any(|other| other == kind), "{kind} is missing in {kinds:?}");
    }
}

#[test]
fn an_orphan_is_ended_before_anything_is_launched() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    world.step(vec![found]);
    let gone = Fact::SupervisorGone { attempt: attempt(1, 1), process: Life::Alive };
    let orders = world.step(vec![gone.clone()]).orders;
    assert!(
        matches!(&orders[..], [Order::EndOrphan { attempt: orphan, .. }] if *orphan == attempt(1, 1)),
        "{orders:?}"
    );
    assert_eq!(world.verdict(), Verdict::Orphaned);
    assert_eq!(world.step(vec![gone]).orders, [], "told twice, ordered once");
    let ended = Fact::OrphanEnded { attempt: attempt(1, 1), survivors: vec![] };
    let orders = world.step(vec![ended]).orders;
    assert!(matches!(&orders[..], [Order::RecordLost { .. }]), "{orders:?}");
    let lost = world.ended(1, 1, Outcome::lost("the supervisor's process is gone"));
    assert!(matches!(&world.step(vec![lost]).orders[..], [Order::AskStrategy { .. }]));
}

/// A person resumed it while the agent was stopped, and what the agent learns of the attempt before comes last.
#[test]
fn a_late_ending_of_an_older_attempt_does_not_silence_the_one_that_runs() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    world.step(vec![found]);
    let second = Fact::AttemptStarted { start: Box::new(world.start(2, 2)) };
    let ended = world.ended(1, 1, Outcome::exited(1));
    world.step(vec![second, ended]);
    world.pass(9 * SECOND);
    let Fact::Heard { status } = world.status(1, Duration::ZERO) else { unreachable!("it is a status") };
    world.step(vec![Fact::Heard { status: Box::new(Status { attempt: 2, epoch: 2, ..*status }) }]);
    world.pass(2 * SECOND);
    assert_eq!(world.verdict(), Verdict::Alive);
}

#[test]
fn what_a_strategy_gave_up_is_asked_about_after_a_restart_only_where_somebody_wants_more() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let Fact::AttemptEnded { end, .. } = world.ended(1, 1, Outcome::signaled(9, "SIGKILL")) else { unreachable!() };
    world.step(vec![found, Fact::AttemptEnded { start: None, end: end.clone() }]);
    world.step(vec![proposal(Proposal::GiveUp)]);
    let mut world = World::new(world.driver.into_store());
    let found = world.found(FoundState::Ended(end.clone()), 1);
    assert_eq!(world.step(vec![found.clone()]).orders, []);
    assert_eq!(world.driver.subjects(&[])[0].phase, Phase::Stuck);
    let Fact::JobFound(mut found) = found else { unreachable!() };
    (found.wanted.want, found.wanted.at) = (Want::Resume, world.wall());
    let mut world = World::new(world.driver.into_store());
    let orders = world.step(vec![Fact::JobFound(found)]).orders;
    assert!(matches!(&orders[..], [Order::AskStrategy { .. }]), "{orders:?}");
}

#[test]
fn survivors_hold_the_job_and_a_broken_strategy_holds_it_too() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Unattended(Life::Alive), 1);
    world.step(vec![found]);
    let survivors = Fact::OrphanEnded { attempt: attempt(1, 1), survivors: vec![4711] };
    assert_eq!(world.step(vec![survivors]).orders, []);
    let status = world.driver.subjects(&[]).remove(0);
    assert_eq!(status.phase, Phase::Held);
    assert!(status.next.unwrap().what.contains("4711"));

    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    world.step(vec![found, ended]);
    assert_eq!(world.step(vec![proposal(Proposal::Failed)]).orders, []);
    assert_eq!(world.driver.subjects(&[])[0].phase, Phase::Held);
}

/// Silence grows only while the agent listens: a stopped agent, however long, makes nobody stale.
#[test]
fn an_agent_that_was_stopped_longer_than_the_ttl_calls_nobody_stale() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let beat = world.status(1, Duration::ZERO);
    world.step(vec![found, beat]);
    world.pass(2 * SECOND);
    assert_eq!(world.verdict(), Verdict::Alive);
    world.monotonic += 3600 * SECOND;
    world.step(vec![]);
    assert_eq!(world.verdict(), Verdict::Alive, "silence counts from the end of the gap");
    assert!(world.kinds().contains(&"agent".to_owned()), "the gap is one entry");
    world.pass(9 * SECOND);
    assert_eq!(world.verdict(), Verdict::Late);
    world.pass(2 * SECOND);
    assert_eq!(world.verdict(), Verdict::Stale, "a full ttl of listening after the gap");
}

#[test]
fn silence_measured_by_the_supervisor_survives_a_restart_of_the_agent() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let silent = world.status(3, 9 * SECOND);
    world.step(vec![found, silent]);
    assert_eq!(world.verdict(), Verdict::Late);
    world.pass(2 * SECOND);
    assert_eq!(world.verdict(), Verdict::Stale);
}

#[test]
fn rules_are_asked_about_what_a_start_finds_also_where_its_verdict_is_the_recorded_one() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    world.step(vec![found, world.status(1, 11 * SECOND)]);
    assert_eq!(world.verdict(), Verdict::Stale);
    let mut again = World::new(world.driver.into_store());
    // A rule's first call may come before the jobs are found; only a change brings the next one soon.
    let Fact::JobFound(mut found) = again.found(FoundState::Running, 1) else { unreachable!("it is a found job") };
    let Fact::Heard { status } = again.status(2, 12 * SECOND) else { unreachable!("it is a status") };
    found.attempt.as_mut().unwrap().status = Some(*status);
    let output = again.step(vec![Fact::JobFound(found)]);
    assert_eq!((again.verdict(), output.changed), (Verdict::Stale, vec![name()]));
    let found = again.found(FoundState::Running, 1);
    assert_eq!(again.step(vec![found]).changed, [], "found once more it is as it was");
}

#[test]
fn what_has_ended_never_changes_and_a_restart_records_nothing_twice() {
    let mut store = MemoryStore::default();
    let mut before = Vec::new();
    for round in 0..2 {
        let mut world = World::new(store);
        let Fact::AttemptEnded { end, .. } = world.ended(1, 1, Outcome::exited(0)) else { unreachable!() };
        let found = world.found(FoundState::Ended(end), 1);
        world.step(vec![found]);
        world.driver.forget_absent(&BTreeSet::new(), WallTime::from_millis(0));
        let late = world.status(9, Duration::ZERO);
        assert_eq!(world.step(vec![late]).orders, []);
        assert_eq!(world.verdict(), Verdict::Ended);
        let kinds = world.kinds();
        if round == 1 {
            assert_eq!(kinds, before);
        }
        before = kinds;
        store = world.driver.into_store();
    }
}

#[test]
fn a_stop_outranks_the_answer_of_a_strategy() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    world.step(vec![found, ended]);
    let wanted = Wanted {
        version: 1,
        want: Want::Stop,
        epoch: 1,
        at: world.wall(),
        until: None,
        by: "latido stop".into(),
        budget: None,
    };
    world.step(vec![Fact::WantChanged { job: name(), wanted: Box::new(wanted) }]);
    assert_eq!(world.step(vec![proposal(Proposal::Launch)]).orders, []);
    assert_eq!(world.driver.subjects(&[])[0].phase, Phase::Ended);
}

#[test]
fn a_removed_job_leaves_no_row_and_a_late_answer_meets_nobody() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    world.step(vec![found]);
    world.step(vec![Fact::JobRemoved { job: name() }]);
    assert_eq!(world.driver.store().subjects().unwrap(), []);
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    assert_eq!(world.step(vec![ended, proposal(Proposal::Launch)]).orders, []);
}

/// An attempt that ended while no agent ran is in the journal once, also when the next one has begun.
#[test]
fn what_ended_while_nobody_watched_is_told_to_the_journal_once() {
    let mut world = World::new(MemoryStore::default());
    for round in 0..2 {
        let Fact::AttemptEnded { end, .. } = world.ended(1, 1, Outcome::signaled(9, "SIGKILL")) else { unreachable!() };
        let Fact::JobFound(mut found) = world.found(FoundState::Running, 2) else { unreachable!() };
        found.earlier = vec![(world.start(1, 1), *end)];
        world.step(vec![Fact::JobFound(found)]);
        let count = |kinds: &[String], kind: &str| kinds.iter().filter(|other| *other == kind).count();
        let kinds = world.kinds();
        assert_eq!(
            (count(&kinds, "attempt-started"), count(&kinds, "attempt-ended")),
            (2, 1),
            "round {round}: {kinds:?}"
        );
    }
    world.step(vec![Fact::JobRemoved { job: name() }]);
    assert!(world.kinds().iter().any(|kind| kind == "agent"), "a removal is told too");
}

// framed-data/overseer PR #54
#[test]
fn c013_the_senders_clock_makes_nobody_dead_or_immortal() {
    for skew in [-3_600_000, 3_600_000_i64] {
        let mut world = World::new(MemoryStore::default());
        let found = world.found(FoundState::Running, 1);
        let Fact::Heard { mut status } = world.status(1, Duration::ZERO) else { unreachable!() };
        let theirs = WallTime::from_millis(world.wall().as_millis().saturating_add_signed(skew));
        (status.at, status.last_beat) = (theirs, Some(theirs));
        world.step(vec![found, Fact::Heard { status }]);
        world.pass(2 * SECOND);
        assert_eq!(world.verdict(), Verdict::Alive, "{skew}");
        world.pass(9 * SECOND);
        assert_eq!(world.verdict(), Verdict::Stale, "{skew}: silence counts from its arrival");
    }
}

// google/fleetspeak execution.go
#[test]
fn c037_time_in_which_the_driver_was_busy_counts_against_nobody_and_queued_beats_come_first() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let beat = world.status(1, Duration::ZERO);
    world.step(vec![found, beat]);
    for sequence in 2..6 {
        // The step took 20 s, twice the ttl: its beats wait in the queue and are applied before anything is judged.
        world.monotonic += 20 * SECOND;
        world.rest();
        world.monotonic += SECOND;
        let queued = world.status(sequence, 3 * SECOND);
        world.step(vec![queued]);
        assert_ne!(world.verdict(), Verdict::Stale);
    }
    let gaps = world.driver.store().entries_after(0, &[], 1000).unwrap();
    let gaps = gaps.iter().filter(|row| row.body.contains("could not hear for 20.0 s")).count();
    assert_eq!(gaps, 4, "the agent blames itself");
}

/// A launch that was refused has spent its epoch, also for the agent that comes after.
#[test]
fn what_a_person_resumed_without_the_agent_is_not_stopped_by_the_stop_before() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    world.step(vec![found]);
    let wanted = Wanted {
        version: 1,
        want: Want::Stop,
        epoch: 1,
        at: world.wall(),
        until: None,
        by: "latido stop".into(),
        budget: None,
    };
    let orders = world.step(vec![Fact::WantChanged { job: name(), wanted: Box::new(wanted) }]).orders;
    assert!(matches!(&orders[..], [Order::EndAttempt { .. }]), "{orders:?}");
    let stopped = world.ended(1, 1, Outcome::signaled(15, "SIGTERM").by_order("stopped"));
    world.step(vec![stopped]);

    let Fact::JobFound(mut found) = world.found(FoundState::Running, 2) else { unreachable!() };
    let start = Start { by_hand: true, ..world.start(2, 2) };
    found.attempt = Some(FoundAttempt { start, status: None, state: FoundState::Running });
    let orders = world.step(vec![Fact::JobFound(found)]).orders;
    assert!(!orders.iter().any(|order| matches!(order, Order::EndAttempt { .. })), "{orders:?}");
    let status = world.driver.subjects(&[]).remove(0);
    assert_eq!((status.phase, status.attempt), (Phase::Running, 2));
}

/// Attempts 1 to `by_hand` ran for 5 s each, and a person asked for the last of them; the one after it runs.
fn found_after_a_series(world: &World, by_hand: u32) -> Fact {
    let Fact::JobFound(mut found) = world.found(FoundState::Running, u64::from(by_hand) + 1) else { unreachable!() };
    found.job.settings.resume.wall_time_max = Limit::After(8 * SECOND);
    found.earlier = (1..=by_hand)
        .map(|number| {
            let Fact::AttemptEnded { end, .. } = world.ended(number, u64::from(number), Outcome::lost("x")) else {
                unreachable!()
            };
            (Start { by_hand: number == by_hand, ..world.start(number, u64::from(number)) }, *end)
        })
        .collect();
    found.pickups = by_hand;
    let start = world.start(by_hand + 1, u64::from(by_hand) + 1);
    found.attempt = Some(FoundAttempt { start, status: None, state: FoundState::Running });
    Fact::JobFound(found)
}

#[test]
fn a_series_that_began_and_went_on_without_this_agent_has_its_limits_anew() {
    let mut world = World::new(MemoryStore::default());
    let found = found_after_a_series(&world, 2);
    let Fact::JobFound(mut first) = found.clone() else { unreachable!() };
    let (start, end) = first.earlier.remove(0);
    (first.earlier, first.pickups) = (vec![], 1);
    first.attempt = Some(FoundAttempt { start, status: None, state: FoundState::Ended(Box::new(end)) });
    world.step(vec![Fact::JobFound(first)]);
    let orders = world.step(vec![found]).orders;
    assert!(!orders.iter().any(|order| matches!(order, Order::EndAttempt { .. })), "5 s of 8 s: {orders:?}");
    assert_eq!(world.driver.subjects(&[])[0].pickups, 2);
    let orders = world.pass(4 * SECOND);
    assert!(orders.iter().any(|order| matches!(order, Order::EndAttempt { .. })), "what it missed counts: {orders:?}");
}

#[test]
fn a_job_that_was_removed_and_made_anew_between_two_looks_has_a_row() {
    let mut world = World::new(MemoryStore::new("journal"));
    let first = world.found(FoundState::Running, 1);
    world.step(vec![first]);
    let mut anew = world.found(FoundState::Running, 2);
    if let Fact::JobFound(found) = &mut anew {
        found.job.created_at = WallTime::from_millis(2);
    }
    world.step(vec![anew]);
    let rows = world.driver.store().subjects().unwrap();
    assert_eq!(rows.iter().map(|row| row.epoch).collect::<Vec<_>>(), [2]);
}
