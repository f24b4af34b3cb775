//! The acceptance criteria of the worker registry (AC1 to AC6).

use latido_policy::{
    Advice, AfterRelease, ClaimLimit, Death, Fingerprint, Reason, Refusal, RegistryAction, RegistryAnswer,
    RegistryEvent, ReleasedClaim, Speaker, Sweep, TargetState, Verdict, WorkerLease, WorkerReport, WorkerStanding,
};

use super::desk::{Desk, GROUP, TICK, TICKET, count, lease, reaped, settings, target, worker};
use crate::harness::seconds;

#[test]
fn ac1_a_record_holds_worker_target_start_last_beat_and_status() {
    let mut desk = Desk::with_workers(1);
    let started = desk.now;
    desk.pass(seconds(30));
    let report =
        WorkerReport { sequence: None, state: Some(Fingerprint(5)), active_job: Some(Fingerprint(6)), errors: 2 };
    assert_eq!(desk.report(1, None, report), Advice::GoOn);
    let epoch = desk.claimed(1, 7);
    let view = desk.view(1);
    assert_eq!((view.registered_at, view.heard_at), (started, Some(desk.now)));
    assert_eq!((view.state, view.active_job, view.errors), (report.state, report.active_job, 2));
    assert_eq!((view.standing, view.verdict, view.claims_count), (WorkerStanding::Active, Verdict::Alive, 1));
    let TargetState::Held(claim) = desk.policy.registry().target(target(7)).unwrap().state else { panic!("not held") };
    assert_eq!((claim.holder, claim.epoch), (worker(1), epoch));
}

#[test]
fn ac2_the_same_target_and_event_again_makes_no_second_worker() {
    let mut desk = Desk::with_workers(2);
    let epoch = desk.claimed(1, 7);
    for _ in 0..3 {
        assert_eq!(desk.claim(2, 7, 1), RegistryAnswer::AlreadyClaimed { holder: worker(1), epoch });
    }
    assert_eq!(desk.view(2).claims_count, 0);
}

#[test]
fn ac2_the_holder_that_repeats_its_claim_gets_its_own_epoch_again() {
    let mut desk = Desk::with_workers(1);
    let epoch = desk.claimed(1, 7);
    assert_eq!(desk.claim(1, 7, 1), RegistryAnswer::Claimed { holder: worker(1), epoch });
    assert_eq!(desk.view(1).claims_count, 1);
}

#[test]
fn ac2_a_held_target_is_claimed_for_every_event() {
    let mut desk = Desk::with_workers(2);
    let epoch = desk.claimed(1, 7);
    let already = RegistryAnswer::AlreadyClaimed { holder: worker(1), epoch };
    assert_eq!(desk.claim(2, 7, 2), already);
    assert_eq!(desk.claim(1, 7, 2), already);
}

#[test]
fn ac3_a_target_stays_with_its_worker_while_that_is_active() {
    let mut desk = Desk::with_workers(3);
    let first = desk.assign(7);
    let RegistryAnswer::Claimed { holder, .. } = first else { panic!("not assigned: {first:?}") };
    assert_ne!(desk.assign(8), first);
    for _ in 0..3 {
        assert_eq!(desk.assign(7), first);
    }
    desk.tell(RegistryEvent::DrainAsked { ticket: TICKET, worker: holder });
    assert_eq!(desk.assign(7), first);
}

#[test]
fn ac3_assignments_go_round() {
    let mut desk = Desk::with_workers(3);
    let holders: Vec<_> = (10..16)
        .map(|of| {
            let answer = desk.assign(of);
            let RegistryAnswer::Claimed { holder, .. } = answer else { panic!("not assigned: {answer:?}") };
            holder.0
        })
        .collect();
    assert_eq!(holders, [1, 2, 3, 1, 2, 3]);
    assert_eq!(desk.assign(16), RegistryAnswer::CapacityRejected(ClaimLimit::NoFreeWorker));
}

#[test]
fn ac3_the_group_rejects_what_is_over_its_capacity() {
    let mut desk = Desk::new(latido_policy::GroupSettings { capacity: Some(count(2)), ..settings() });
    for number in 1..=2 {
        desk.register(number);
    }
    let epoch = desk.claimed(1, 7);
    desk.claimed(2, 8);
    let full = RegistryAnswer::CapacityRejected(ClaimLimit::Capacity(count(2)));
    assert_eq!(desk.claim(1, 9, 1), full);
    assert_eq!(desk.assign(9), full);
    assert_eq!(desk.policy.registry().target(target(9)), None);
    desk.release(7, epoch);
    assert!(matches!(desk.assign(9), RegistryAnswer::Claimed { .. }));
}

#[test]
fn ac3_a_worker_is_rejected_what_is_over_its_own_limit() {
    let mut desk = Desk::with_workers(1);
    desk.claimed(1, 7);
    desk.claimed(1, 8);
    assert_eq!(desk.claim(1, 9, 1), RegistryAnswer::CapacityRejected(ClaimLimit::ClaimsMax(count(2))));
}

#[test]
fn ac3_an_assigned_worker_takes_its_target_up_with_the_same_epoch() {
    let mut desk = Desk::with_workers(1);
    let assigned = desk.assign(7);
    assert_eq!(desk.claim(1, 7, 4), assigned);
    assert_eq!(desk.claim(1, 7, 4), assigned);
    assert!(matches!(desk.claim(1, 7, 5), RegistryAnswer::AlreadyClaimed { .. }));
}

#[test]
fn ac4_missed_intervals_in_a_row_make_it_dead_and_release_all_it_holds() {
    let mut desk = Desk::with_workers(2);
    let heard_at = desk.now;
    let (first, second) = (desk.claimed(1, 7), desk.claimed(1, 8));
    let RegistryAnswer::Claimed { epoch: other, .. } = desk.claim(2, 9, 1) else { panic!("not claimed") };
    desk.pass(seconds(60));
    desk.beat(2);
    assert_eq!(desk.pass(seconds(30) - TICK), []);
    let actions = desk.pass(TICK * 2);
    let silence = desk.view(1).silence;
    let RegistryAction::ReapWorker { because, claims, .. } = actions[1] else { panic!("not reaped: {actions:?}") };
    let Reason::LeaseRanOut { silence: at, ttl } = because else { panic!("another reason: {because}") };
    assert!(at >= seconds(90) && at <= silence && ttl == seconds(90));
    let (epoch, instance) = (desk.view(1).epoch, desk.view(1).instance);
    let verdict = (Verdict::Alive, Verdict::Stale);
    assert_eq!(
        actions,
        [
            RegistryAction::RecordVerdict {
                worker: worker(1),
                epoch,
                previous: verdict.0,
                current: verdict.1,
                because
            },
            RegistryAction::ReapWorker { worker: worker(1), group: GROUP, instance, epoch, heard_at, claims, because },
            RegistryAction::ReportSweep(Sweep { missing_count: 0, dead_count: 1, released_count: 2, stuck_count: 0 }),
        ]
    );
    let after = AfterRelease::Unassigned { pickups: 1, is_stuck: false };
    let lost = |of, epoch| ReleasedClaim { target: target(of), epoch, after };
    assert_eq!(desk.released, [lost(7, first), lost(8, second)]);
    assert_eq!(desk.policy.registry().swept(), [worker(1)]);
    assert_eq!(desk.standing(1), WorkerStanding::Dead(Death::Silent));
    let unassigned = desk.policy.registry().target(target(7)).unwrap();
    assert_eq!((unassigned.state, unassigned.pickups), (TargetState::Unassigned { fenced: first }, 1));
    assert_eq!(desk.release(9, other), RegistryAnswer::Done);
}

#[test]
fn ac4_what_a_dead_worker_held_can_be_claimed_with_a_higher_epoch() {
    let mut desk = Desk::with_workers(2);
    let lost = desk.claimed(1, 7);
    for _ in 0..4 {
        desk.pass(seconds(25));
        desk.beat(2);
    }
    assert_eq!(desk.standing(1), WorkerStanding::Dead(Death::Silent));
    let taken = desk.claimed(2, 7);
    assert!(taken > lost);
    assert_eq!(desk.release(7, lost), RegistryAnswer::Refused(Refusal::OldEpoch { epoch: taken }));
    assert_eq!(desk.policy.registry().target(target(7)).unwrap().pickups, 1);
}

#[test]
fn ac4_a_late_beat_of_a_dead_worker_renews_nothing() {
    let mut desk = Desk::with_workers(1);
    desk.claimed(1, 7);
    desk.pass(seconds(91));
    let before = desk.view(1);
    desk.pass(seconds(5));
    assert_eq!(desk.beat(1), Advice::Superseded);
    assert_eq!((desk.view(1).heard_at, desk.view(1).standing), (before.heard_at, before.standing));
    assert_eq!(desk.claim(1, 8, 1), RegistryAnswer::Refused(Refusal::Superseded));
}

#[test]
fn ac5_a_draining_worker_takes_nothing_more_finishes_and_ends_cleanly() {
    let mut desk = Desk::with_workers(1);
    let epoch = desk.claimed(1, 7);
    assert_eq!(desk.drain(1), RegistryAnswer::Done);
    assert_eq!(desk.standing(1), WorkerStanding::Draining);
    assert_eq!(desk.beat(1), Advice::Drain);
    assert_eq!(desk.claim(1, 8, 1), RegistryAnswer::Refused(Refusal::Draining));
    assert_eq!(desk.assign(8), RegistryAnswer::CapacityRejected(ClaimLimit::NoFreeWorker));
    assert_eq!(desk.claim(1, 7, 1), RegistryAnswer::Claimed { holder: worker(1), epoch });
    assert_eq!(desk.release(7, epoch), RegistryAnswer::Done);
    assert_eq!(desk.beat(1), Advice::Stop);
    assert_eq!(desk.leave(1), RegistryAnswer::Done);
    assert_eq!((desk.standing(1), desk.verdict(1)), (WorkerStanding::Dead(Death::Left), Verdict::Ended));
    assert_eq!(desk.pass(seconds(1000)), []);
}

#[test]
fn ac5_a_draining_worker_that_falls_silent_is_declared_dead() {
    let mut desk = Desk::with_workers(1);
    desk.claimed(1, 7);
    desk.drain(1);
    assert_eq!(reaped(&desk.pass(seconds(91))), [worker(1)]);
    assert_eq!(desk.released.len(), 1);
}

#[test]
fn ac5_what_a_worker_still_holds_when_it_leaves_is_released_without_a_pickup() {
    let mut desk = Desk::with_workers(1);
    let epoch = desk.claimed(1, 7);
    desk.leave(1);
    assert_eq!(desk.released, [ReleasedClaim { target: target(7), epoch, after: AfterRelease::Forgotten }]);
    assert_eq!(desk.policy.registry().target(target(7)), None);
}

#[test]
fn ac6_status_is_one_snapshot_of_all_workers() {
    let mut desk = Desk::with_workers(4);
    desk.drain(2);
    desk.leave(3);
    desk.claimed(4, 7);
    desk.pass(seconds(40));
    let views: Vec<_> = desk.policy.registry().workers().collect();
    assert!(views.iter().all(|view| view.at == desk.now));
    let standings: Vec<_> = views.iter().map(|view| (view.worker.0, view.standing, view.claims_count)).collect();
    let expected = [
        (1, WorkerStanding::Active, 0),
        (2, WorkerStanding::Draining, 0),
        (3, WorkerStanding::Dead(Death::Left), 0),
        (4, WorkerStanding::Active, 1),
    ];
    assert_eq!(standings, expected);
    assert_eq!(views[0].verdict, Verdict::Late);
}

#[test]
fn dod1_a_beat_in_time_keeps_it_alive_for_ever() {
    let mut desk = Desk::with_workers(1);
    for _ in 0..200 {
        assert_eq!(desk.pass(seconds(89)), []);
        assert_eq!(desk.beat(1), Advice::GoOn);
    }
}

#[test]
fn dod4_every_worker_is_judged_by_its_own_lease() {
    let mut desk = Desk::new(settings());
    for (number, ttl) in [(1, 720), (2, 180), (3, 2160)] {
        let lease = WorkerLease::new(seconds(60), seconds(ttl), seconds(60));
        desk.tell(RegistryEvent::WorkerRegistered {
            ticket: TICKET,
            worker: worker(number),
            group: GROUP,
            instance: None,
            lease,
        });
        desk.beat(number);
    }
    assert_eq!(reaped(&desk.pass(seconds(179))), []);
    assert_eq!(reaped(&desk.pass(seconds(2))), [worker(2)]);
    assert_eq!(reaped(&desk.pass(seconds(540))), [worker(1)]);
    assert_eq!(reaped(&desk.pass(seconds(1438))), []);
    assert_eq!(reaped(&desk.pass(seconds(2))), [worker(3)]);
}

#[test]
fn who_claims_and_never_beats_loses_the_claim() {
    let mut desk = Desk::new(settings());
    desk.register(1);
    desk.claimed(1, 7);
    let actions = desk.pass(seconds(61));
    assert_eq!(reaped(&actions), []);
    assert_eq!(desk.verdict(1), Verdict::Missing);
    for _ in 0..10 {
        desk.claim(1, 7, 1);
        desk.pass(seconds(3));
    }
    assert_eq!(desk.standing(1), WorkerStanding::Dead(Death::Silent));
    assert_eq!(desk.verdict(1), Verdict::Missing);
    assert_eq!(desk.policy.registry().target(target(7)).unwrap().pickups, 1);
}

#[test]
fn a_missing_worker_is_assigned_nothing_until_it_beats() {
    let mut desk = Desk::new(settings());
    desk.register(1);
    desk.pass(seconds(61));
    assert_eq!(desk.assign(7), RegistryAnswer::CapacityRejected(ClaimLimit::NoFreeWorker));
    let actions = desk.tell(RegistryEvent::BeatHeard {
        ticket: TICKET,
        from: Speaker { worker: worker(1), epoch: None },
        report: WorkerReport::default(),
    });
    let because = Reason::BeatsCome { silence: seconds(0), interval: lease().interval() };
    let (previous, current, epoch) = (Verdict::Missing, Verdict::Alive, desk.view(1).epoch);
    assert_eq!(actions[0], RegistryAction::RecordVerdict { worker: worker(1), epoch, previous, current, because });
    assert!(matches!(desk.assign(7), RegistryAnswer::Claimed { .. }));
}

#[test]
fn an_order_to_stop_is_heard_with_the_next_beat() {
    let mut desk = Desk::with_workers(1);
    desk.claimed(1, 7);
    desk.tell(RegistryEvent::StopAsked { ticket: TICKET, worker: worker(1) });
    assert_eq!(desk.beat(1), Advice::Stop);
    desk.drain(1);
    assert_eq!(desk.beat(1), Advice::Stop);
}

#[test]
fn one_sweep_makes_one_report_that_names_a_bounded_number() {
    let mut desk = Desk::new(settings());
    for number in 0..150 {
        desk.register(number);
    }
    for number in 0..150 {
        desk.beat(number);
    }
    desk.now = desk.now.after(seconds(100));
    let actions = desk.pass(seconds(0));
    let reports: Vec<_> = actions.iter().filter(|action| matches!(action, RegistryAction::ReportSweep(_))).collect();
    let sweep = Sweep { missing_count: 0, dead_count: 150, released_count: 0, stuck_count: 0 };
    assert_eq!(reports, [&RegistryAction::ReportSweep(sweep)]);
    assert_eq!(desk.policy.registry().swept().len(), 100);
}

#[test]
fn what_a_dead_worker_held_is_counted_and_it_is_judged_no_more() {
    let mut desk = Desk::with_workers(1);
    (7..9).for_each(|of| _ = desk.claimed(1, of));
    assert!(desk.view(1).next.is_some());
    let actions = desk.pass(seconds(91));
    let held = actions.iter().find_map(|action| {
        if let RegistryAction::ReapWorker { claims, .. } = action { Some(claims.count()) } else { None }
    });
    assert_eq!((held, desk.view(1).next), (Some(2), None));
}

#[test]
fn of_the_workers_that_are_named_those_that_are_known_are_counted() {
    let desk = Desk::with_workers(3);
    let known_count = |numbers: &[u32]| desk.policy.registry().known_count(numbers.iter().copied().map(worker));
    assert_eq!((known_count(&[2, 3, 99]), known_count(&[99])), (2, 0));
}
