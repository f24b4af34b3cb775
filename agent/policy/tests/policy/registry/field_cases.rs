//! Faults that people have met elsewhere, at the level of workers and claims. Each names where it was reported.

use latido_policy::{
    Advice, Death, Refusal, RegistryAnswer, RegistryEvent, Verdict, WorkerLease, WorkerReport, WorkerStanding,
};

use super::desk::{Desk, GROUP, TICKET, count, reaped, settings, target, worker};
use crate::harness::seconds;

// PrefectHQ/prefect#16459
#[test]
fn c022_a_workers_beat_that_came_before_the_sweep_counts() {
    let mut desk = Desk::with_workers(1);
    for round in 0..200 {
        desk.pass(seconds(89));
        desk.now = desk.now.after(seconds(2));
        desk.beat(1);
        assert_eq!(reaped(&desk.pass(seconds(0))), [], "round {round}");
    }
}

// apache/airflow#29455
#[test]
fn c025_a_worker_that_starts_slowly_is_waited_for_and_one_that_never_beats_is_missing() {
    let mut desk = Desk::new(settings());
    let lease = WorkerLease::new(seconds(2), seconds(5), seconds(15));
    for number in 1..=2 {
        let asked = RegistryEvent::WorkerRegistered {
            ticket: TICKET,
            worker: worker(number),
            group: GROUP,
            instance: None,
            lease,
        };
        desk.tell(asked);
    }
    assert_eq!(desk.pass(seconds(8)), []);
    desk.beat(1);
    for _ in 0..2 {
        desk.pass(seconds(4));
        desk.beat(1);
    }
    assert_eq!((desk.verdict(1), desk.verdict(2)), (Verdict::Alive, Verdict::Missing));
    assert_eq!(desk.standing(2), WorkerStanding::Dead(Death::Silent));
}

// apache/airflow#16573
#[test]
fn c026_a_lease_without_room_for_a_late_beat_cannot_be_made() {
    for (interval, ttl) in [(30, 30), (30, 20)] {
        assert_eq!(WorkerLease::new(seconds(interval), seconds(ttl), seconds(60)), None);
    }
    assert_eq!(WorkerLease::after_missed(seconds(30), count(1), seconds(60)), None);
}

// rq/rq#804 (PR #896)
#[test]
fn c028_a_draining_worker_that_beats_never_expires() {
    let mut desk = Desk::with_workers(1);
    desk.claimed(1, 7);
    desk.drain(1);
    for _ in 0..15 {
        desk.pass(seconds(30));
        assert_eq!(desk.beat(1), Advice::Drain);
    }
    assert_eq!((desk.standing(1), desk.verdict(1)), (WorkerStanding::Draining, Verdict::Alive));
}

// HangfireIO/Hangfire#2233
#[test]
fn c029_a_draining_worker_keeps_its_claim_until_it_has_finished() {
    let mut desk = Desk::with_workers(2);
    let epoch = desk.claimed(1, 7);
    desk.drain(1);
    for _ in 0..4 {
        desk.pass(seconds(30));
        desk.beat(1);
        desk.beat(2);
        assert_eq!(desk.claim(2, 7, 2), RegistryAnswer::AlreadyClaimed { holder: worker(1), epoch });
    }
    assert_eq!(desk.release(7, epoch), RegistryAnswer::Done);
    assert_eq!(desk.leave(1), RegistryAnswer::Done);
    assert!(matches!(desk.claim(2, 7, 2), RegistryAnswer::Claimed { .. }));
}

// celery/celery#5935 (also celery/kombu#337)
#[test]
fn c049_work_longer_than_the_lease_is_claimed_once_while_its_worker_beats() {
    let mut desk = Desk::with_workers(2);
    let epoch = desk.claimed(1, 7);
    for _ in 0..1000 {
        desk.pass(seconds(30));
        desk.beat(1);
        desk.beat(2);
        assert_eq!(desk.claim(2, 7, 1), RegistryAnswer::AlreadyClaimed { holder: worker(1), epoch });
    }
}

// Koed00/django-q#183 (also David-Crty/databasement PR #510)
#[test]
fn c050_a_live_claim_is_never_given_to_a_second_worker() {
    let mut desk = Desk::with_workers(3);
    let epoch = desk.claimed(1, 7);
    for (asker, because) in [(2, 1), (3, 1), (2, 5)] {
        assert_eq!(desk.claim(asker, 7, because), RegistryAnswer::AlreadyClaimed { holder: worker(1), epoch });
    }
    assert_eq!(desk.assign(7), RegistryAnswer::Claimed { holder: worker(1), epoch });
}

// riverqueue/river#1302 (PR #1373)
#[test]
fn c052_what_changed_between_two_looks_is_not_overwritten() {
    let mut desk = Desk::with_workers(2);
    let (released, kept) = (desk.claimed(1, 7), desk.claimed(2, 8));
    desk.now = desk.now.after(seconds(95));
    desk.release(7, released);
    desk.leave(1);
    desk.beat(2);
    assert_eq!(reaped(&desk.pass(seconds(0))), []);
    assert_eq!(desk.standing(1), WorkerStanding::Dead(Death::Left));
    assert_eq!(desk.claim(2, 8, 1), RegistryAnswer::Claimed { holder: worker(2), epoch: kept });
}

// OptimalBits/bull#484
#[test]
fn c055_a_worker_whose_lease_was_lost_hears_it_with_its_next_beat() {
    let mut desk = Desk::with_workers(1);
    let epoch = desk.view(1).epoch;
    desk.claimed(1, 7);
    desk.pass(seconds(91));
    assert_eq!(desk.beat_as(1, epoch), Advice::Superseded);
}

// kubernetes/kubernetes#47671
#[test]
fn c059_the_lease_in_the_record_rules_whatever_the_settings_become() {
    let mut desk = Desk::with_workers(1);
    let lease = WorkerLease::new(seconds(2), seconds(10), seconds(5)).unwrap();
    let hasty = latido_policy::GroupSettings { lease, ..settings() };
    desk.tell(RegistryEvent::GroupAdded { group: GROUP, settings: hasty, instance: latido_policy::Epoch(0) });
    assert_eq!(reaped(&desk.pass(seconds(89))), []);
    assert_eq!(reaped(&desk.pass(seconds(2))), [worker(1)]);
}

// sidekiq/sidekiq#4611
#[test]
fn c062_a_claim_has_its_lease_before_the_first_beat() {
    let mut desk = Desk::new(settings());
    desk.register(1);
    let epoch = desk.claimed(1, 7);
    desk.register(2);
    desk.pass(seconds(1));
    assert_eq!(desk.claim(2, 7, 1), RegistryAnswer::AlreadyClaimed { holder: worker(1), epoch });
    assert_eq!(desk.verdict(1), Verdict::Waiting);
}

// agenda/agenda#1749
#[test]
fn c065_a_sweep_renews_no_lease_that_it_does_not_end() {
    let mut desk = Desk::with_workers(1);
    let heard_at = desk.view(1).heard_at;
    for _ in 0..80 {
        desk.pass(seconds(1));
        assert_eq!(desk.view(1).heard_at, heard_at);
    }
    assert_eq!(reaped(&desk.pass(seconds(11))), [worker(1)]);
}

// dagster-io/dagster PR #8729
#[test]
fn c067_workers_that_left_while_nobody_looked_are_not_declared_dead() {
    let mut desk = Desk::with_workers(100);
    desk.now = desk.now.after(seconds(200));
    for number in 1..=100 {
        desk.leave(number);
    }
    assert_eq!(reaped(&desk.pass(seconds(0))), []);
}

// https://systems.lepei.co/foundations/leases-fencing-tokens
#[test]
fn c068_a_write_with_an_old_epoch_is_refused_however_late_it_comes() {
    let mut desk = Desk::with_workers(2);
    let old = desk.claimed(1, 7);
    desk.pass(seconds(91));
    desk.register(2);
    let new = desk.claimed(2, 7);
    assert_eq!(desk.release(7, old), RegistryAnswer::Refused(Refusal::OldEpoch { epoch: new }));
    assert_eq!(
        desk.policy.registry().target(target(7)).unwrap().state,
        latido_policy::TargetState::Held(latido_policy::Claim {
            holder: worker(2),
            epoch: new,
            event: Some(super::desk::event(1))
        })
    );
}

// graphile/worker#254
#[test]
fn c096_the_slot_of_a_dead_worker_is_free_with_its_death() {
    let one = latido_policy::GroupSettings { capacity: Some(count(1)), ..settings() };
    let mut desk = Desk::new(one);
    for number in 1..=2 {
        desk.register(number);
    }
    desk.claimed(1, 7);
    assert!(matches!(desk.claim(2, 8, 1), RegistryAnswer::CapacityRejected(_)));
    for _ in 0..4 {
        desk.pass(seconds(25));
        desk.beat(2);
    }
    assert!(matches!(desk.claim(2, 8, 1), RegistryAnswer::Claimed { .. }));
}

// PrefectHQ/prefect#16459: the same beat delivered again, and an older one behind it.
#[test]
fn a_beat_that_comes_twice_or_out_of_order_renews_nothing() {
    let mut desk = Desk::with_workers(1);
    let numbered = |sequence| WorkerReport { sequence: Some(sequence), ..WorkerReport::default() };
    desk.report(1, None, numbered(9));
    let heard_at = desk.view(1).heard_at;
    desk.pass(seconds(50));
    for sequence in [9, 8, 1] {
        assert_eq!(desk.report(1, None, numbered(sequence)), Advice::GoOn);
    }
    assert_eq!(desk.view(1).heard_at, heard_at);
    assert_eq!(reaped(&desk.pass(seconds(41))), [worker(1)]);
}
