//! What is kept of claims: epochs, pickups, and what is forgotten.

use latido_policy::{Epoch, Refusal, RegistryAction, RegistryAnswer, RegistryEvent};

use super::desk::{Desk, TICKET, event, target, worker};
use crate::harness::seconds;

#[test]
fn epochs_grow_over_release_and_death() {
    let mut desk = Desk::with_workers(2);
    let mut last = Epoch(0);
    for round in 0..5 {
        let epoch = desk.claimed(1, 7);
        assert!(epoch > last);
        last = epoch;
        if round % 2 == 0 {
            desk.release(7, epoch);
        } else {
            desk.pass(seconds(100));
            desk.register(1);
            desk.beat(1);
        }
    }
}

#[test]
fn a_released_target_leaves_no_row() {
    let mut desk = Desk::with_workers(1);
    let epoch = desk.claimed(1, 7);
    let actions = desk.tell(RegistryEvent::ReleaseAsked { ticket: TICKET, target: target(7), epoch });
    let answer = RegistryAction::Answer { ticket: TICKET, answer: RegistryAnswer::Done };
    assert_eq!(actions, [RegistryAction::RemoveTarget { target: target(7) }, answer]);
    assert_eq!(desk.policy.registry().target(target(7)), None);
    assert_eq!(desk.release(7, epoch), RegistryAnswer::Refused(Refusal::NotClaimed));
}

#[test]
fn a_claim_is_recorded_before_it_is_answered() {
    let mut desk = Desk::with_workers(1);
    let from = latido_policy::Speaker { worker: worker(1), epoch: None };
    let asked = RegistryEvent::ClaimAsked { ticket: TICKET, from, target: target(7), event: event(1) };
    let actions = desk.tell(asked);
    let epoch = desk.policy.registry().epoch();
    let claim = latido_policy::Claim { holder: worker(1), epoch, event: Some(event(1)) };
    let answer = RegistryAnswer::Claimed { holder: worker(1), epoch };
    assert_eq!(
        actions,
        [RegistryAction::RecordClaim { target: target(7), claim }, RegistryAction::Answer { ticket: TICKET, answer }]
    );
}

#[test]
fn pickups_count_lost_holders_alone() {
    let mut desk = Desk::with_workers(1);
    for lost in 1..=3 {
        let epoch = desk.claimed(1, 7);
        assert_eq!(desk.policy.registry().target(target(7)).unwrap().pickups, lost - 1, "epoch {epoch:?}");
        desk.pass(seconds(100));
        desk.register(1);
        desk.beat(1);
        assert_eq!(desk.policy.registry().target(target(7)).unwrap().pickups, lost);
    }
    let epoch = desk.claimed(1, 7);
    desk.release(7, epoch);
    desk.claimed(1, 7);
    assert_eq!(desk.policy.registry().target(target(7)).unwrap().pickups, 0);
}

#[test]
fn unassigned_targets_are_remembered_up_to_a_number() {
    let mut desk = Desk::with_workers(1);
    let mut forgotten = Vec::new();
    for number in 0..10_002 {
        desk.claimed(1, number);
        let actions = desk.tell(RegistryEvent::WorkerRegistered {
            ticket: TICKET,
            worker: worker(1),
            group: super::desk::GROUP,
            instance: None,
            lease: None,
        });
        for action in actions {
            if let RegistryAction::RemoveTarget { target } = action {
                forgotten.push(target);
            }
        }
    }
    assert_eq!(forgotten, [target(0), target(1)]);
    assert_eq!(desk.policy.registry().targets().count(), 10_000);
}

#[test]
fn a_worker_that_nobody_registered_claims_nothing() {
    let mut desk = Desk::with_workers(1);
    assert_eq!(desk.claim(4, 7, 1), RegistryAnswer::Refused(Refusal::UnknownWorker));
    assert_eq!(desk.policy.registry().target(target(7)), None);
}

#[test]
fn a_target_that_was_assigned_is_claimed_by_nobody_but_its_holder() {
    let mut desk = Desk::with_workers(2);
    let RegistryAnswer::Claimed { holder, epoch } = desk.assign(7) else { panic!("not assigned") };
    let other = 3 - holder.0;
    assert_eq!(desk.claim(other, 7, 1), RegistryAnswer::AlreadyClaimed { holder, epoch });
    assert_eq!(desk.claim(holder.0, 7, 1), RegistryAnswer::Claimed { holder, epoch });
}

#[test]
fn what_a_worker_holds_is_known_with_its_epochs() {
    let mut desk = Desk::with_workers(2);
    let first = desk.claimed(1, 8);
    let second = desk.claimed(1, 7);
    desk.claimed(2, 9);
    let held: Vec<_> = desk.policy.registry().held_by(worker(1)).collect();
    assert_eq!(held, [(target(7), second), (target(8), first)]);
}
