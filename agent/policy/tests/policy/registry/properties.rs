//! Any order of questions and times.

use std::collections::BTreeMap;

use core::time::Duration;

use latido_policy::{
    Epoch, GroupId, GroupSettings, RegistryAction, RegistryAnswer, RegistryEvent, Speaker, TargetId, TargetState,
    WorkerLease, WorkerReport,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::desk::{Desk, GROUP, TICKET, count, event, settings, target, worker};
use crate::harness::seconds;

const OTHER: GroupId = GroupId(2);

#[derive(Clone, Debug)]
enum Step {
    Tell(RegistryEvent),
    ReleaseOwn(u32),
    Pass(Duration),
    Jump(Duration),
}

fn any_speaker() -> impl Strategy<Value = Speaker> {
    let epoch = proptest::option::weighted(0.3, (0..40_u64).prop_map(Epoch));
    (0..5_u32, epoch).prop_map(|(number, epoch)| Speaker { worker: worker(number), epoch })
}

fn any_group() -> impl Strategy<Value = GroupId> {
    prop_oneof![Just(GROUP), Just(OTHER)]
}

fn any_lease() -> impl Strategy<Value = Option<WorkerLease>> {
    (1..40_u64, 1..400_u64, 0..200_u64).prop_map(|(interval, room, start)| {
        WorkerLease::new(seconds(interval), seconds(interval + room), seconds(start))
    })
}

fn any_event() -> impl Strategy<Value = RegistryEvent> {
    let ticket = TICKET;
    prop_oneof![
        4 => (any_speaker(), proptest::option::of(0..30_u64)).prop_map(move |(from, sequence)| {
            RegistryEvent::BeatHeard { ticket, from, report: WorkerReport { sequence, ..WorkerReport::default() } }
        }),
        4 => (any_speaker(), 0..6_u32, 0..3_u64).prop_map(move |(from, of, because)| {
            RegistryEvent::ClaimAsked { ticket, from, target: target(of), event: event(because) }
        }),
        3 => (any_group(), 0..6_u32)
            .prop_map(move |(group, of)| RegistryEvent::AssignAsked { ticket, group, target: target(of) }),
        3 => (0..5_u32, any_group(), any_lease()).prop_map(move |(number, group, lease)| {
            RegistryEvent::WorkerRegistered { ticket, worker: worker(number), group, instance: None, lease }
        }),
        1 => (0..6_u32, 0..40_u64)
            .prop_map(move |(of, epoch)| RegistryEvent::ReleaseAsked { ticket, target: target(of), epoch: Epoch(epoch) }),
        1 => (0..5_u32).prop_map(move |number| RegistryEvent::DrainAsked { ticket, worker: worker(number) }),
        1 => (0..5_u32).prop_map(move |number| RegistryEvent::StopAsked { ticket, worker: worker(number) }),
        1 => any_speaker().prop_map(move |from| RegistryEvent::WorkerLeft { ticket, from }),
        1 => any_group().prop_map(move |group| RegistryEvent::GroupLockTaken { ticket, group }),
        1 => (any_group(), 1..5_u32, 1..4_u32).prop_map(|(group, capacity, claims)| RegistryEvent::GroupAdded {
            group,
            settings: GroupSettings { capacity: Some(count(capacity)), claims_max: count(claims), ..settings() },
            instance: Epoch(0),
        }),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any_event().prop_map(Step::Tell),
        1 => (0..6_u32).prop_map(Step::ReleaseOwn),
        2 => (0..60_u64).prop_map(|length| Step::Pass(seconds(length))),
        1 => (0..1000_u64).prop_map(|length| Step::Pass(seconds(length))),
        1 => (0..300_u64).prop_map(|length| Step::Jump(seconds(length))),
    ]
}

/// What always holds, beside what was granted so far.
#[derive(Default)]
struct Checks {
    highest: BTreeMap<TargetId, Epoch>,
}

impl Checks {
    fn actions(&mut self, actions: &[RegistryAction], desk: &Desk) {
        let registry = desk.policy.registry();
        for action in actions {
            if let RegistryAction::RecordClaim { target, claim } = *action {
                let highest = self.highest.entry(target).or_default();
                assert!(claim.epoch >= *highest, "the epoch of {target:?} fell");
                *highest = claim.epoch;
            }
            if let RegistryAction::Answer { answer: RegistryAnswer::Claimed { holder, epoch }, .. } = *action {
                assert!(registry.worker(holder).is_some_and(|view| !view.standing.is_dead()));
                assert!(epoch <= registry.epoch());
            }
        }
    }

    fn state(&self, desk: &Desk) {
        let registry = desk.policy.registry();
        let mut held: BTreeMap<_, u32> = BTreeMap::new();
        for (target, known) in registry.targets() {
            match known.state {
                TargetState::Held(claim) => {
                    *held.entry(claim.holder).or_default() += 1;
                    assert_eq!(self.highest.get(&target), Some(&claim.epoch), "a holder without the highest epoch");
                }
                TargetState::Unassigned { fenced } => assert!(self.highest[&target] >= fenced),
            }
        }
        let mut of_groups: BTreeMap<GroupId, u32> = BTreeMap::new();
        for view in registry.workers() {
            let claims = held.remove(&view.worker).unwrap_or(0);
            assert_eq!(view.claims_count, claims);
            assert!(!view.standing.is_dead() || claims == 0, "{:?} is dead and holds something", view.worker);
            let overdue = view.silence.saturating_sub(view.lease.ttl().max(view.lease.start_within()));
            assert!(view.standing.is_dead() || overdue < Duration::from_millis(9), "silent and not declared dead");
            *of_groups.entry(view.group).or_default() += claims;
        }
        assert!(held.is_empty(), "nobody holds something: {held:?}");
        for (group, claims) in of_groups {
            assert_eq!(registry.group(group).unwrap().claims_count, claims);
        }
    }
}

fn capacity_before(desk: &Desk, group: GroupId) -> Option<(u32, u32)> {
    let view = desk.policy.registry().group(group)?;
    Some((view.claims_count, view.settings.capacity?.get()))
}

proptest! {
    #[test]
    fn no_order_of_questions_breaks_what_always_holds(steps in vec(any_step(), 0..120)) {
        let mut desk = Desk::new(settings());
        let mut checks = Checks::default();
        for step in steps {
            let before: Vec<_> = [GROUP, OTHER].map(|group| (group, capacity_before(&desk, group))).into();
            let actions = match step {
                Step::Tell(event) => desk.tell(event),
                Step::ReleaseOwn(of) => match desk.policy.registry().target(target(of)).map(|known| known.state) {
                    Some(TargetState::Held(claim)) => {
                        let (target, epoch) = (target(of), claim.epoch);
                        desk.tell(RegistryEvent::ReleaseAsked { ticket: TICKET, target, epoch })
                    }
                    Some(TargetState::Unassigned { .. }) | None => Vec::new(),
                },
                Step::Pass(length) => desk.pass(length),
                Step::Jump(length) => {
                    desk.now = desk.now.after(length);
                    Vec::new()
                }
            };
            let late = desk.pass(Duration::ZERO);
            checks.actions(&actions, &desk);
            checks.actions(&late, &desk);
            checks.state(&desk);
            for (group, before) in before {
                let Some((claims, capacity)) = capacity_before(&desk, group) else { continue };
                let had = before.map_or(0, |(claims, _)| claims);
                prop_assert!(claims <= capacity.max(had), "{group:?} holds {claims} of {capacity}");
            }
            prop_assert!(desk.policy.poll_timeout().is_none_or(|next| next > desk.now));
        }
    }

    #[test]
    fn the_same_questions_give_the_same_transcript(steps in vec(any_event(), 0..60)) {
        let transcript = |steps: &[RegistryEvent]| {
            let mut desk = Desk::new(settings());
            let told: Vec<_> = steps.iter().flat_map(|event| desk.tell(*event)).collect();
            (told, desk.pass(seconds(1000)))
        };
        prop_assert_eq!(transcript(&steps), transcript(&steps));
    }
}
