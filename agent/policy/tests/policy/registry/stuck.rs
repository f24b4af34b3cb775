//! A target that loses one holder after the other is given up.

use latido_policy::{
    AfterRelease, Epoch, GroupSettings, Refusal, RegistryAction, RegistryAnswer, RegistryEvent, Sweep, TargetState,
};

use super::desk::{Desk, GROUP, count, settings, target, worker};
use crate::harness::seconds;

/// A target is stuck when it lost three.
fn strict() -> GroupSettings {
    GroupSettings { max_pickups: count(3), ..settings() }
}

/// Worker `number` claims target 7 and dies silently; the sweep that finds it, and the epoch that it held.
fn lose(desk: &mut Desk, number: u32) -> (Sweep, Epoch) {
    desk.register(number);
    desk.beat(number);
    let epoch = desk.claimed(number, 7);
    let passed = desk.pass(seconds(91));
    let sweep = passed.iter().find_map(|action| {
        let RegistryAction::ReportSweep(sweep) = action else { return None };
        Some(*sweep)
    });
    (sweep.unwrap_or_default(), epoch)
}

/// A desk whose target 7 has lost three holders, and the last of them.
fn stuck() -> (Desk, Epoch) {
    let mut desk = Desk::new(strict());
    for number in 1..=2 {
        assert_eq!(lose(&mut desk, number).0.stuck_count, 0);
    }
    let (sweep, fenced) = lose(&mut desk, 3);
    assert_eq!((sweep.released_count, sweep.stuck_count), (1, 1));
    assert_eq!(desk.released[0].after, AfterRelease::Unassigned { pickups: 3, is_stuck: true });
    desk.register(4);
    desk.beat(4);
    (desk, fenced)
}

#[test]
fn a_target_that_lost_as_many_holders_as_it_may_is_given_to_nobody() {
    let (mut desk, fenced) = stuck();
    let refused = RegistryAnswer::Refused(Refusal::Stuck { pickups: 3, fenced });
    assert_eq!((desk.claim(4, 7, 1), desk.assign(7)), (refused, refused));
    assert!(matches!(desk.claim(4, 8, 1), RegistryAnswer::Claimed { .. }), "another target is not its business");
}

#[test]
fn a_person_gives_a_stuck_target_out_again_and_its_pickups_begin_anew() {
    let (mut desk, fenced) = stuck();
    assert_eq!(desk.revive_target(7), RegistryAnswer::Done);
    assert!(desk.claimed(4, 7) > fenced);
    assert_eq!(desk.policy.registry().target(target(7)).map(|known| known.pickups), Some(0));
}

#[test]
fn only_a_target_without_a_holder_is_revived() {
    let mut desk = Desk::with_workers(1);
    let epoch = desk.claimed(1, 7);
    assert_eq!(desk.revive_target(7), RegistryAnswer::AlreadyClaimed { holder: worker(1), epoch });
    assert_eq!(desk.revive_target(8), RegistryAnswer::Refused(Refusal::NotClaimed));
}

#[test]
fn the_fenced_holder_cannot_make_its_stuck_target_free() {
    let (mut desk, fenced) = stuck();
    assert_eq!(desk.release(7, fenced), RegistryAnswer::Refused(Refusal::NotClaimed));
    assert!(matches!(desk.claim(4, 7, 1), RegistryAnswer::Refused(Refusal::Stuck { .. })));
}

#[test]
fn a_target_stays_stuck_over_a_restart_and_a_higher_limit_frees_it() {
    let (_, fenced) = stuck();
    let mut desk = Desk::new(strict());
    desk.register(1);
    desk.beat(1);
    desk.tell(RegistryEvent::TargetRestored {
        target: target(7),
        state: TargetState::Unassigned { fenced },
        pickups: 3,
    });
    assert_eq!(desk.claim(1, 7, 1), RegistryAnswer::Refused(Refusal::Stuck { pickups: 3, fenced }));
    let settings = GroupSettings { max_pickups: count(4), ..settings() };
    desk.tell(RegistryEvent::GroupAdded { group: GROUP, settings, instance: Epoch(0) });
    assert!(matches!(desk.claim(1, 7, 1), RegistryAnswer::Claimed { .. }));
}

#[test]
fn a_claim_that_is_given_back_counts_for_no_limit() {
    let mut desk = Desk::with_workers(1);
    for _ in 0..10 {
        let epoch = desk.claimed(1, 7);
        desk.release(7, epoch);
    }
    assert!(matches!(desk.claim(1, 7, 1), RegistryAnswer::Claimed { .. }));
}

#[test]
fn groups_that_somebody_makes_up_fill_no_memory() {
    let mut desk = Desk::with_workers(1);
    for group in 0..2 * latido_policy::GROUPS_MAX {
        let group = latido_policy::GroupId(u32::try_from(group).unwrap() + 10);
        desk.tell(RegistryEvent::GroupAdded { group, settings: settings(), instance: Epoch(0) });
    }
    let groups =
        (0..u32::MAX).take(30_000).filter(|id| desk.policy.registry().group(latido_policy::GroupId(*id)).is_some());
    assert_eq!(groups.count(), latido_policy::GROUPS_MAX);
    let refused =
        desk.ask(RegistryEvent::GroupOpenAsked { ticket: super::desk::TICKET, group: latido_policy::GroupId(29_000) });
    assert_eq!(refused, RegistryAnswer::Refused(Refusal::GroupsFull));
}
