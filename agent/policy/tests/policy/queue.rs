//! Who may start when: slots, their queue, and the pace of resumes.

use core::num::NonZeroU32;
use std::collections::BTreeMap;

use latido_policy::{
    Action, BlackoutSettings, Class, Event, Found, FoundState, JobSettings, LaunchFailure, Limit, Moment, NextStep,
    Pacing, Phase, Policy, Proposal, Reason, SlotId, SlotSet, SubjectId, Want,
};

use crate::harness::{Bench, attempt, ending, found, found_running, seconds, settings, supervisor, with_epoch};

const GPU: SlotId = SlotId(1);
const DISK: SlotId = SlotId(2);

fn in_slots(slots: &[SlotId]) -> JobSettings {
    JobSettings { slots: SlotSet::of(slots), ..settings() }
}

fn limit(bench: &mut Bench, slot: SlotId, running_max: u32) -> Vec<u32> {
    launched(&bench.tell(Event::SlotConfigured { slot, running_max: Limit::At(running_max) }))
}

fn pace(bench: &mut Bench, at_once: u32, every: u64) {
    let pacing = Pacing { at_once: Limit::At(NonZeroU32::new(at_once).unwrap()), every: seconds(every) };
    bench.tell(Event::Configured { pacing, blackout: BlackoutSettings::default() });
}

/// The subjects whose launch is ordered, in order.
fn launched(actions: &[Action]) -> Vec<u32> {
    let launched = |action: &Action| if let Action::Launch { subject, .. } = action { Some(subject.0) } else { None };
    actions.iter().filter_map(launched).collect()
}

fn add(bench: &mut Bench, number: u32, settings: JobSettings, found: Found) -> Vec<u32> {
    launched(&bench.tell(Event::JobAdded { subject: SubjectId(number), settings, found }))
}

fn started(bench: &mut Bench, number: u32) {
    let (subject, attempt) = (SubjectId(number), attempt(1));
    bench.tell(Event::AttemptStarted { subject, attempt, supervisor: supervisor(attempt), process: None });
}

fn ended(bench: &mut Bench, number: u32, class: Class) -> Vec<u32> {
    launched(&bench.tell(Event::AttemptEnded {
        subject: SubjectId(number),
        attempt: attempt(1),
        ending: ending(class),
    }))
}

fn want(bench: &mut Bench, number: u32, want: Want) -> Vec<u32> {
    launched(&bench.tell(Event::WantChanged { subject: SubjectId(number), want }))
}

fn phase(bench: &Bench, number: u32) -> Phase {
    bench.policy.subject(SubjectId(number)).unwrap().phase
}

fn place(bench: &Bench, number: u32) -> Option<u32> {
    bench.policy.subject(SubjectId(number)).and_then(|view| view.place)
}

/// One slot, held by job 0; jobs 1 to 3 wait for it in this order.
fn one_gpu() -> Bench {
    let mut bench = Bench::empty();
    limit(&mut bench, GPU, 1);
    assert_eq!(add(&mut bench, 0, in_slots(&[GPU]), Found::default()), [0]);
    started(&mut bench, 0);
    for number in 1..=3 {
        assert_eq!(add(&mut bench, number, in_slots(&[GPU]), Found::default()), []);
    }
    bench
}

/// What runs holds its slot before the agent has come to it.
#[test]
fn no_limited_slot_is_given_before_every_job_was_looked_at() {
    let mut bench = Bench::empty();
    limit(&mut bench, GPU, 1);
    bench.tell(Event::RecoveryBegan);
    assert_eq!(add(&mut bench, 1, in_slots(&[GPU]), Found::default()), []);
    assert_eq!(bench.policy.subject(SubjectId(1)).unwrap().phase_because, Reason::RecoveryAwaited);
    assert_eq!(add(&mut bench, 2, in_slots(&[]), Found::default()), [2], "who needs none does not wait");
    add(&mut bench, 3, in_slots(&[GPU]), found_running(1, latido_policy::Heard::default()));
    assert_eq!(launched(&bench.tell(Event::RecoveryEnded)), [], "the slot is held");
    assert_eq!(ended(&mut bench, 3, Class::Completed), [1]);
}

#[test]
fn a_slot_lets_in_as_many_as_it_has_and_the_rest_wait_in_order_and_show_their_place() {
    let mut bench = one_gpu();
    let view = bench.policy.subject(SubjectId(2)).unwrap();
    assert_eq!((view.phase, view.phase_because, view.place), (Phase::Queued, Reason::SlotAwaited, Some(2)));
    assert_eq!((view.next, bench.pass(seconds(100_000))), (None, vec![]), "only an ending lets it in");
    assert_eq!(ended(&mut bench, 0, Class::Completed), [1]);
    assert_eq!([1, 2, 3].map(|number| place(&bench, number)), [None, Some(1), Some(2)]);
}

#[test]
fn a_slot_is_free_only_when_nothing_of_its_holder_can_live() {
    let mut bench = one_gpu();
    let gone = |process| Event::SupervisorGone { subject: SubjectId(0), attempt: attempt(1), process };
    assert_eq!(launched(&bench.tell(gone(latido_policy::Life::Alive))), []);
    let survived = |survivors| Event::OrphanEnded { subject: SubjectId(0), attempt: attempt(1), survivors };
    assert_eq!(launched(&bench.tell(survived(1))), [], "held, and it lives");
    want(&mut bench, 0, Want::Resume);
    assert_eq!(launched(&bench.tell(survived(0))), [], "proven gone, and not recorded yet");
    assert_eq!(ended(&mut bench, 0, Class::Lost), [1]);
}

#[test]
fn a_refused_launch_keeps_its_slot_until_it_is_launched_again_or_given_up() {
    for failure in [LaunchFailure::Failed, LaunchFailure::Locked, LaunchFailure::Superseded] {
        let mut bench = Bench::empty();
        limit(&mut bench, GPU, 1);
        assert_eq!(add(&mut bench, 0, in_slots(&[GPU]), Found::default()), [0]);
        assert_eq!(add(&mut bench, 1, in_slots(&[GPU]), Found::default()), []);
        for refusal in 1..10 {
            let refused = Event::LaunchRefused { subject: SubjectId(0), attempt: with_epoch(1, refusal), failure };
            assert_eq!(launched(&bench.tell(refused)), [], "something of it may live");
            let next = bench.policy.subject(SubjectId(0)).unwrap().next.unwrap().1;
            assert_eq!(launched(&bench.pass(next.since(bench.now))), [0], "nobody passes it");
        }
        let last = Event::LaunchRefused { subject: SubjectId(0), attempt: with_epoch(1, 10), failure };
        assert_eq!(launched(&bench.tell(last)), [1], "a person is needed, and another one goes on");
    }
}

/// It was paused, stopped or removed meanwhile, and waits for a person: others do not wait with it.
#[test]
fn a_launch_that_nobody_wanted_any_more_frees_its_slot() {
    let mut bench = Bench::empty();
    limit(&mut bench, GPU, 1);
    assert_eq!(add(&mut bench, 0, in_slots(&[GPU]), Found::default()), [0]);
    assert_eq!(add(&mut bench, 1, in_slots(&[GPU]), Found::default()), []);
    bench.tell(Event::WantChanged { subject: SubjectId(0), want: Want::Pause(None) });
    let (attempt, failure) = (with_epoch(1, 1), LaunchFailure::NotWanted);
    assert_eq!(launched(&bench.tell(Event::LaunchRefused { subject: SubjectId(0), attempt, failure })), [1]);
}

// graphile/worker#254
#[test]
fn c096_the_last_attempt_frees_its_slot_with_its_ending() {
    let mut bench = Bench::empty();
    limit(&mut bench, GPU, 1);
    let mut last = in_slots(&[GPU]);
    last.resume.max_attempts = Limit::At(1);
    add(&mut bench, 0, last, Found::default());
    started(&mut bench, 0);
    add(&mut bench, 1, in_slots(&[GPU]), Found::default());
    let actions =
        bench.tell(Event::AttemptEnded { subject: SubjectId(0), attempt: attempt(1), ending: ending(Class::Lost) });
    assert_eq!((phase(&bench, 0), launched(&actions)), (Phase::Stuck, vec![1]), "in the same step");
}

#[test]
fn a_stop_a_pause_and_a_removal_take_a_job_out_of_the_line() {
    let mut bench = one_gpu();
    want(&mut bench, 1, Want::Stop);
    want(&mut bench, 2, Want::Pause(None));
    assert_eq!((phase(&bench, 1), phase(&bench, 2), place(&bench, 3)), (Phase::Ended, Phase::Paused, Some(1)));
    assert_eq!(want(&mut bench, 2, Want::Run), []);
    assert_eq!((place(&bench, 3), place(&bench, 2)), (Some(1), Some(2)), "at the end of it");
    bench.tell(Event::JobRemoved { subject: SubjectId(3) });
    assert_eq!(ended(&mut bench, 0, Class::Completed), [2]);
}

#[test]
fn a_holder_that_is_removed_gives_its_slot_back() {
    let mut bench = one_gpu();
    assert_eq!(launched(&bench.tell(Event::JobRemoved { subject: SubjectId(0) })), [1]);
}

#[test]
fn nobody_passes_another_that_waits_for_the_same_slot() {
    let mut bench = Bench::empty();
    limit(&mut bench, GPU, 1);
    limit(&mut bench, DISK, 1);
    assert_eq!(add(&mut bench, 0, in_slots(&[GPU]), Found::default()), [0]);
    assert_eq!(add(&mut bench, 1, in_slots(&[GPU, DISK]), Found::default()), []);
    assert_eq!(add(&mut bench, 2, in_slots(&[DISK]), Found::default()), [], "the disk is free, and job 1 waits for it");
    assert_eq!(add(&mut bench, 3, settings(), Found::default()), [3], "who needs no slot waits for nobody");
    assert_eq!(ended(&mut bench, 0, Class::Completed), [1]);
    started(&mut bench, 1);
    assert_eq!(ended(&mut bench, 1, Class::Completed), [2]);
}

#[test]
fn more_room_lets_in_at_once_and_less_room_ends_nobody() {
    let mut bench = one_gpu();
    assert_eq!(limit(&mut bench, GPU, 3), [1, 2]);
    assert_eq!(limit(&mut bench, GPU, 1), []);
    assert_eq!(ended(&mut bench, 0, Class::Completed), [], "two still run");
    assert_eq!(phase(&bench, 1), Phase::Launching);
}

#[test]
fn what_was_found_running_holds_its_slots() {
    let mut bench = Bench::empty();
    limit(&mut bench, GPU, 1);
    for number in [0, 1] {
        add(&mut bench, number, in_slots(&[GPU]), found_running(1, latido_policy::Heard::default()));
        assert_eq!(phase(&bench, number), Phase::Running, "it runs, whatever the limit says");
    }
    assert_eq!(add(&mut bench, 2, in_slots(&[GPU]), Found::default()), []);
    assert_eq!(ended(&mut bench, 0, Class::Completed), []);
    assert_eq!(ended(&mut bench, 1, Class::Completed), [2]);
}

/// Jobs whose attempt 1 was lost in an outage, found by an agent that starts; each strategy says at once: launch.
fn after_an_outage(bench: &mut Bench, count: u32) -> BTreeMap<u32, Moment> {
    let mut starts = BTreeMap::new();
    for number in 0..count {
        add(bench, number, settings(), found(1, FoundState::Ended(ending(Class::Lost))));
    }
    for number in 0..count {
        let answer =
            Event::StrategyAnswered { subject: SubjectId(number), attempt: attempt(1), proposal: Proposal::Launch };
        starts.extend(launched(&bench.tell(answer)).into_iter().map(|number| (number, bench.now)));
    }
    while let Some(next) = bench.policy.poll_timeout().filter(|_| starts.len() < count as usize) {
        let actions = bench.pass(next.since(bench.now));
        starts.extend(launched(&actions).into_iter().map(|number| (number, bench.now)));
    }
    starts
}

// eltmon/overdeck#1665, paperclipai/paperclip PR #12150
#[test]
fn c211_c212_forty_resumes_after_an_outage_come_one_after_another_in_a_stable_order() {
    let mut bench = Bench::empty();
    pace(&mut bench, 4, 2);
    let begin = bench.now;
    let starts = after_an_outage(&mut bench, 40);
    let at: Vec<u64> = starts.values().map(|moment| moment.since(begin).as_secs()).collect();
    assert_eq!(at[..6], [0, 0, 0, 0, 2, 4]);
    assert_eq!((at.len(), at[39]), (40, 72));
    assert!(at.is_sorted(), "in the order in which they came");
}

#[test]
fn whoever_waits_for_the_pace_shows_its_place_and_when_its_turn_comes() {
    let mut bench = Bench::empty();
    pace(&mut bench, 2, 10);
    for number in 0..5 {
        add(&mut bench, number, settings(), Found::default());
    }
    let view = bench.policy.subject(SubjectId(3)).unwrap();
    assert_eq!((view.phase, view.phase_because, view.place), (Phase::Queued, Reason::PaceAwaited, Some(2)));
    assert_eq!(view.next, Some((NextStep::Launch, bench.now.after(seconds(20)))));
    assert_eq!(launched(&bench.pass(seconds(20))), [2, 3]);
}

#[test]
fn whoever_comes_when_it_is_anothers_turn_goes_behind_it() {
    let mut bench = Bench::empty();
    pace(&mut bench, 1, 10);
    add(&mut bench, 0, settings(), Found::default());
    assert_eq!(add(&mut bench, 1, settings(), Found::default()), []);
    bench.now = bench.now.after(seconds(10));
    assert_eq!(add(&mut bench, 2, settings(), Found::default()), [1]);
    assert_eq!(place(&bench, 2), Some(1));
}

#[test]
fn a_resume_by_hand_keeps_no_pace() {
    let mut bench = Bench::empty();
    pace(&mut bench, 1, 1000);
    add(&mut bench, 0, settings(), Found::default());
    add(&mut bench, 1, settings(), found(1, FoundState::Ended(ending(Class::Lost))));
    let (subject, attempt, proposal) = (SubjectId(1), attempt(1), Proposal::Launch);
    bench.tell(Event::StrategyAnswered { subject, attempt, proposal });
    assert_eq!(phase(&bench, 1), Phase::Queued);
    want(&mut bench, 1, Want::Resume);
    assert_eq!(launched(&bench.tell(Event::StrategyAnswered { subject, attempt, proposal })), [1]);
}

// makecindy/cindy PR #944
#[test]
fn c007_waiting_for_a_slot_is_no_running_and_a_gap_takes_nobody_out_of_the_line() {
    let mut bench = one_gpu();
    bench.pass(seconds(5));
    bench.tell(Event::GapFound { length: seconds(60) });
    bench.pass(seconds(1000));
    assert_eq!((phase(&bench, 1), place(&bench, 1)), (Phase::Queued, Some(1)));
    assert_eq!(ended(&mut bench, 0, Class::Completed), [1]);
}

#[test]
fn a_policy_that_was_told_of_no_limits_keeps_nobody_waiting() {
    let mut policy = Policy::new();
    for number in 0..100 {
        let settings = in_slots(&[GPU]);
        policy.handle_event(
            Event::JobAdded { subject: SubjectId(number), settings, found: Found::default() },
            Moment::ORIGIN,
        );
    }
    assert!(policy.subjects().all(|view| view.phase == Phase::Launching));
}

#[test]
fn a_place_counts_those_ahead_that_wait_for_the_same_alone() {
    let mut bench = one_gpu();
    limit(&mut bench, DISK, 1);
    add(&mut bench, 4, in_slots(&[DISK]), Found::default());
    add(&mut bench, 5, in_slots(&[DISK]), found(1, FoundState::Ended(ending(Class::Completed))));
    want(&mut bench, 5, Want::Resume);
    let (subject, attempt, proposal) = (SubjectId(5), attempt(1), Proposal::Launch);
    assert_eq!(launched(&bench.tell(Event::StrategyAnswered { subject, attempt, proposal })), []);
    assert_eq!((phase(&bench, 5), place(&bench, 5)), (Phase::Queued, Some(1)), "it keeps no pace and needs no GPU");
}

#[test]
fn whoever_waits_for_a_slot_alone_is_not_looked_at_by_the_pace() {
    let mut bench = Bench::empty();
    pace(&mut bench, 1, 10);
    limit(&mut bench, GPU, 1);
    add(&mut bench, 0, in_slots(&[GPU]), Found::default());
    assert_eq!(add(&mut bench, 1, in_slots(&[GPU]), Found::default()), []);
    bench.pass(seconds(10));
    assert_eq!(bench.policy.poll_timeout().filter(|&next| next <= bench.now), None);
    assert_eq!(phase(&bench, 1), Phase::Queued);
}

#[test]
fn whoever_is_paused_in_line_takes_no_slot_that_comes_free() {
    let mut bench = one_gpu();
    (2..=3).for_each(|number| _ = want(&mut bench, number, Want::Stop));
    want(&mut bench, 1, Want::Pause(None));
    assert_eq!(ended(&mut bench, 0, Class::Completed), []);
    assert_eq!(want(&mut bench, 1, Want::Pause(Some(seconds(60)))), []);
    assert_eq!(launched(&bench.pass(seconds(59))), []);
    assert_eq!(launched(&bench.pass(seconds(1))), [1]);
}
