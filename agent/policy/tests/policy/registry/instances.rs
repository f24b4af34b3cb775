//! Groups and the lives of their executors.

use latido_policy::{
    Advice, Epoch, Reason, Refusal, RegistryAction, RegistryAnswer, RegistryEvent, Verdict, WorkerReport,
    WorkerStanding,
};

use super::desk::{Desk, GROUP, TICKET, reaped, settings, target, worker};
use crate::harness::seconds;

#[test]
fn rows_of_an_older_instance_go_after_the_lock_and_not_before() {
    let mut desk = Desk::new(settings());
    let (first, _) = desk.open();
    for number in 1..=2 {
        desk.register(number);
    }
    let asked = desk.tell(RegistryEvent::GroupOpenAsked { ticket: TICKET, group: GROUP });
    assert_eq!(asked, [RegistryAction::TakeGroupLock { ticket: TICKET, group: GROUP }]);
    assert_eq!(desk.policy.registry().workers().count(), 2);
    let (second, actions) = desk.open();
    assert!(second > first);
    let removed: Vec<_> = actions
        .iter()
        .filter_map(|action| {
            let RegistryAction::RemoveWorker { worker, because, .. } = action else { return None };
            Some((*worker, *because))
        })
        .collect();
    let because = Some(Reason::Fenced { by: second });
    assert_eq!(removed, [(worker(1), because), (worker(2), because)]);
    assert_eq!(desk.policy.registry().workers().count(), 0);
}

#[test]
fn a_lock_that_somebody_holds_removes_nothing() {
    let mut desk = Desk::new(settings());
    desk.open();
    desk.register(1);
    let refused = desk.ask(RegistryEvent::GroupLockRefused { ticket: TICKET, group: GROUP });
    assert_eq!(refused, RegistryAnswer::Refused(Refusal::GroupLocked));
    assert_eq!(desk.standing(1), WorkerStanding::Active);
}

#[test]
fn rows_of_a_crashed_instance_stay_readable_until_the_next_one() {
    let mut desk = Desk::new(settings());
    desk.open();
    for number in 1..=2 {
        desk.register(number);
    }
    desk.beat(1);
    assert_eq!(reaped(&desk.pass(seconds(3600))).len(), 2);
    let verdicts: Vec<_> = desk.policy.registry().workers().map(|view| view.verdict).collect();
    assert_eq!(verdicts, [Verdict::Stale, Verdict::Missing]);
}

#[test]
fn after_a_restart_of_the_executor_only_its_present_workers_have_rows() {
    let mut desk = Desk::new(settings());
    for life in 0..3 {
        desk.open();
        desk.register(life);
    }
    let rows: Vec<_> = desk.policy.registry().workers().map(|view| view.worker).collect();
    assert_eq!(rows, [worker(2)]);
}

#[test]
fn a_worker_of_an_older_instance_is_refused_and_its_beats_renew_nothing() {
    let mut desk = Desk::new(settings());
    let (first, _) = desk.open();
    let epoch = desk.register(1);
    let (second, _) = desk.open();
    assert_eq!(desk.beat_as(1, epoch), Advice::Superseded);
    let refused = desk.ask(RegistryEvent::WorkerRegistered {
        ticket: TICKET,
        worker: worker(1),
        group: GROUP,
        instance: Some(first),
        lease: None,
    });
    assert_eq!(refused, RegistryAnswer::Refused(Refusal::OldInstance { instance: second }));
}

#[test]
fn what_an_older_instance_held_is_fenced_off() {
    let mut desk = Desk::new(settings());
    desk.open();
    desk.register(1);
    let lost = desk.claimed(1, 7);
    desk.open();
    assert_eq!(desk.released.iter().map(|claim| claim.target).collect::<Vec<_>>(), [target(7)]);
    desk.register(1);
    assert!(desk.claimed(1, 7) > lost);
    assert_eq!(desk.policy.registry().group(GROUP).unwrap().claims_count, 1);
}

#[test]
fn a_name_that_registers_again_is_another_process_and_inherits_nothing() {
    let mut desk = Desk::with_workers(1);
    let old = desk.view(1).epoch;
    desk.claimed(1, 7);
    let new = desk.register(1);
    assert!(new > old);
    assert_eq!(desk.released.len(), 1);
    assert_eq!((desk.verdict(1), desk.view(1).claims_count), (Verdict::Waiting, 0));
    assert_eq!(desk.beat_as(1, old), Advice::Superseded);
    assert_eq!(desk.view(1).heard_at, None);
    assert_eq!(desk.beat_as(1, new), Advice::GoOn);
}

#[test]
fn a_group_that_nobody_knows_opens_nothing() {
    let mut desk = Desk::new(settings());
    let group = latido_policy::GroupId(99);
    let refused = RegistryAnswer::Refused(Refusal::UnknownGroup);
    assert_eq!(desk.ask(RegistryEvent::GroupOpenAsked { ticket: TICKET, group }), refused);
    assert_eq!(desk.ask(RegistryEvent::GroupLockTaken { ticket: TICKET, group }), refused);
}

#[test]
fn workers_beat_whether_they_idle_or_are_blocked() {
    let mut desk = Desk::with_workers(2);
    let blocked = WorkerReport { active_job: Some(latido_policy::Fingerprint(3)), ..WorkerReport::default() };
    for _ in 0..100 {
        desk.pass(seconds(5));
        desk.report(1, None, blocked);
        desk.beat(2);
    }
    assert_eq!((desk.verdict(1), desk.verdict(2)), (Verdict::Alive, Verdict::Alive));
    assert_eq!(desk.policy.registry().workers().count(), 2);
}

#[test]
fn dead_rows_are_kept_up_to_a_number_and_the_oldest_go_first() {
    let mut desk = Desk::new(settings());
    let mut removed = Vec::new();
    for number in 0..10_003 {
        desk.register(number);
        let from = latido_policy::Speaker { worker: worker(number), epoch: None };
        for action in desk.tell(RegistryEvent::WorkerLeft { ticket: TICKET, from }) {
            if let RegistryAction::RemoveWorker { worker, because: None, .. } = action {
                removed.push(worker);
            }
        }
    }
    assert_eq!(removed, [worker(0), worker(1), worker(2)]);
    assert_eq!(desk.policy.registry().workers().count(), 10_000);
}

#[test]
fn an_instance_never_falls() {
    let mut desk = Desk::new(settings());
    desk.tell(RegistryEvent::EpochRestored { epoch: Epoch(500) });
    let (instance, _) = desk.open();
    desk.tell(RegistryEvent::GroupAdded { group: GROUP, settings: settings(), instance: Epoch(3) });
    assert_eq!(desk.policy.registry().group(GROUP).unwrap().instance, instance);
    assert!(instance > Epoch(500));
}
