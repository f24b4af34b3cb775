//! The agent starts again and finds its rows.

use latido_policy::{
    Advice, Claim, Death, Epoch, FoundWorker, GroupId, Moment, Refusal, RegistryAnswer, RegistryEvent, Verdict,
    WORKERS_MAX, WorkerReport, WorkerStanding,
};

use super::desk::{Desk, GROUP, event, lease, reaped, settings, target, worker};
use crate::harness::seconds;

/// The row of a worker that has been silent for this long.
fn found(now: Moment, silence: u64) -> FoundWorker {
    FoundWorker {
        group: GROUP,
        instance: Epoch(2),
        epoch: Epoch(3),
        lease: lease(),
        registered_at: now.before(seconds(500)),
        heard_at: now.before(seconds(silence)),
        standing: WorkerStanding::Active,
        recorded: Verdict::Alive,
        report: WorkerReport { sequence: Some(12), ..WorkerReport::default() },
    }
}

/// An agent that found worker 1 with the claim of target 7, epoch 40, and all epochs up to 50 given.
fn restarted(silence: u64) -> Desk {
    let mut desk = Desk::new(settings());
    desk.tell(RegistryEvent::GroupAdded { group: GROUP, settings: settings(), instance: Epoch(2) });
    let found = found(desk.now, silence);
    desk.tell(RegistryEvent::WorkerRestored { worker: worker(1), found });
    let claim = Claim { holder: worker(1), epoch: Epoch(40), event: Some(event(1)) };
    desk.tell(RegistryEvent::TargetRestored { target: target(7), state: claim.into(), pickups: 2 });
    desk.tell(RegistryEvent::EpochRestored { epoch: Epoch(50) });
    desk
}

#[test]
fn holders_and_epochs_survive_a_restart() {
    let mut desk = restarted(10);
    let own = RegistryAnswer::Claimed { holder: worker(1), epoch: Epoch(40) };
    assert_eq!(desk.claim(1, 7, 1), own);
    assert_eq!(desk.policy.registry().group(GROUP).unwrap().claims_count, 1);
    assert!(desk.claimed(1, 8) > Epoch(50));
    assert_eq!(desk.beat_as(1, Epoch(3)), Advice::GoOn);
}

#[test]
fn silence_from_before_the_restart_counts_and_the_absence_does_not() {
    let mut desk = restarted(60);
    assert_eq!(reaped(&desk.pass(seconds(29))), []);
    assert_eq!(reaped(&desk.pass(seconds(2))), [worker(1)]);
    assert_eq!(desk.policy.registry().target(target(7)).unwrap().pickups, 3);
}

#[test]
fn a_dead_row_stays_dead_over_a_restart() {
    let mut desk = Desk::new(settings());
    let found = FoundWorker { standing: WorkerStanding::Dead(Death::Silent), ..found(desk.now, 200) };
    desk.tell(RegistryEvent::WorkerRestored { worker: worker(1), found });
    assert_eq!(desk.pass(seconds(1000)), []);
    assert_eq!(desk.beat(1), Advice::Superseded);
    assert_eq!(desk.claim(1, 9, 1), RegistryAnswer::Refused(Refusal::Superseded));
}

#[test]
fn a_row_whose_group_is_known_later_is_offered_then() {
    let mut desk = Desk::new(settings());
    let late = GroupId(5);
    let found = FoundWorker { group: late, ..found(desk.now, 0) };
    desk.tell(RegistryEvent::WorkerRestored { worker: worker(1), found });
    desk.tell(RegistryEvent::GroupAdded { group: late, settings: settings(), instance: Epoch(2) });
    let asked = RegistryEvent::AssignAsked { ticket: super::desk::TICKET, group: late, target: target(8) };
    assert!(matches!(desk.ask(asked), RegistryAnswer::Claimed { .. }));
}

#[test]
fn a_claim_whose_holder_has_no_row_is_not_held_for_ever() {
    let mut desk = Desk::new(settings());
    let claim = Claim { holder: worker(9), epoch: Epoch(40), event: Some(event(1)) };
    desk.tell(RegistryEvent::TargetRestored { target: target(7), state: claim.into(), pickups: 0 });
    desk.register(1);
    assert!(desk.claimed(1, 7) > Epoch(40));
}

#[test]
fn a_dead_worker_is_stale_however_little_of_its_silence_a_restart_remembers() {
    let mut desk = Desk::new(settings());
    let standing = WorkerStanding::Dead(Death::Silent);
    let found = FoundWorker { standing, recorded: Verdict::Stale, ..found(desk.now, 10) };
    desk.tell(RegistryEvent::WorkerRestored { worker: worker(1), found });
    assert_eq!(desk.verdict(1), Verdict::Stale);
}

#[test]
fn a_row_that_is_told_again_or_has_no_place_changes_nothing() {
    let mut desk = restarted(10);
    let before = desk.view(1);
    let other = FoundWorker { epoch: Epoch(4), ..found(desk.now, 80) };
    desk.tell(RegistryEvent::WorkerRestored { worker: worker(1), found: other });
    assert_eq!(desk.view(1), before);
    desk.tell(RegistryEvent::WorkerRestored { worker: worker(WORKERS_MAX), found: other });
    assert_eq!(desk.policy.registry().workers().count(), 1);
}
