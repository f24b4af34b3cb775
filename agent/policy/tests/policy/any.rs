//! Anything that can be told or set, as properties draw it.

use core::num::NonZeroU32;
use core::time::Duration;

use latido_policy::{
    Action, Attempt, BeatSource, BlackoutSettings, Budget, Class, Ending, Epoch, Event, Excuse, Fingerprint, Found,
    FoundAttempt, FoundState, Heard, JobSettings, LaunchFailure, Lease, Life, Limit, Moment, Orphans, Pacing, Policy,
    Proposal, ResumeOn, ResumePolicy, SlotId, SlotSet, Spent, SubjectId, Want,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::harness::{attempt, seconds, supervisor, with_epoch};

pub(crate) const SUBJECTS: u32 = 3;

pub(crate) fn any_span() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), (0_u64..3000).prop_map(Duration::from_millis), (0_u64..2000).prop_map(seconds)]
}

pub(crate) fn any_limit() -> impl Strategy<Value = Limit<Duration>> {
    prop_oneof![Just(Limit::None), any_span().prop_map(Limit::At)]
}

pub(crate) fn any_count() -> impl Strategy<Value = Limit<u32>> {
    prop_oneof![3 => Just(Limit::None), 1 => (0_u32..4).prop_map(Limit::At)]
}

pub(crate) fn any_slots() -> impl Strategy<Value = SlotSet> {
    vec((0_u16..2).prop_map(SlotId), 0..3).prop_map(|slots| SlotSet::of(&slots))
}

/// Says nothing: every part of it is replaced.
pub(crate) const ANY_LEASE: Lease = Lease {
    beats: BeatSource::Auto,
    interval: Duration::ZERO,
    ttl: Duration::ZERO,
    start_within: Duration::ZERO,
    hung_after: Limit::None,
    looping_after: Limit::None,
    run_for: Limit::None,
    first_output_within: Limit::None,
    excuse_max: Duration::ZERO,
};

pub(crate) fn any_settings() -> impl Strategy<Value = JobSettings> {
    let beats = prop_oneof![Just(BeatSource::Auto), Just(BeatSource::Own), Just(BeatSource::Presence)];
    let spans = (any_span(), any_span(), any_span(), any_span());
    let limits = (any_limit(), any_limit(), any_limit(), any_count());
    let lease = (beats, spans, limits).prop_map(
        |(
            beats,
            (interval, ttl, start_within, excuse_max),
            (hung_after, run_for, first_output_within, looping_after),
        )| {
            let limits = Lease { hung_after, looping_after, run_for, first_output_within, ..ANY_LEASE };
            Lease { beats, interval, ttl, start_within, excuse_max, ..limits }
        },
    );
    let on = any::<[bool; 6]>().prop_map(|[lost, failed, stale, hung, limit, completed]| ResumeOn {
        lost,
        failed,
        stale,
        hung,
        limit,
        completed,
    });
    let sums = (any_count(), any_limit(), prop_oneof![3 => Just(Limit::None), 1 => (1_u64..9).prop_map(Limit::At)]);
    let counts = (1_u32..6, 0_u32..5, any_span(), any_span(), any::<bool>());
    let resume = (on, counts, sums).prop_map(
        |(
            on,
            (max_attempts, max_pickups, backoff_first, backoff_longest, spare_busy),
            (max_attempts_without_progress, wall_time_max, turns),
        )| ResumePolicy {
            on,
            max_attempts: Limit::At(max_attempts),
            max_pickups,
            max_attempts_without_progress,
            max_identical_deaths: Limit::At(3),
            wall_time_max,
            budget: Budget { turns, ..Budget::default() },
            backoff_first,
            backoff_longest,
            spare_busy,
        },
    );
    let orphans = prop_oneof![Just(Orphans::End), Just(Orphans::Hold)];
    (lease, resume, orphans, any_slots(), any::<u64>()).prop_map(|(lease, resume, orphans, slots, seed)| JobSettings {
        lease,
        resume,
        orphans,
        grace: seconds(1),
        slots,
        seed,
    })
}

pub(crate) fn any_attempt() -> impl Strategy<Value = Attempt> {
    (1_u32..6, 0_u64..3).prop_map(|(number, more)| with_epoch(number, u64::from(number) + more))
}

pub(crate) fn any_class() -> impl Strategy<Value = Class> {
    prop_oneof![
        1 => Just(Class::Completed),
        1 => Just(Class::Failed),
        4 => Just(Class::Lost),
        1 => Just(Class::Stopped),
        1 => Just(Class::Limit)
    ]
}

pub(crate) fn any_ending() -> impl Strategy<Value = Ending> {
    (any_class(), 0_u64..2, proptest::option::of(0_u64..3), any::<(bool, bool)>(), any_span(), any_spent()).prop_map(
        |(class, outcome, checkpoint, (launch_failed, is_seen), ran_for, spent)| Ending {
            class,
            outcome: Fingerprint(outcome),
            checkpoint: checkpoint.map(Fingerprint),
            launch_failed,
            ran_for,
            is_seen,
            order: None,
            spent,
        },
    )
}

pub(crate) fn any_spent() -> impl Strategy<Value = Spent> {
    (0_u64..3).prop_map(|turns| Spent { turns, ..Spent::default() })
}

pub(crate) fn any_heard() -> impl Strategy<Value = Heard> {
    let ages = (any_span(), any_span(), any_span(), proptest::option::of(any_span()));
    let excuse = proptest::option::of((any_span(), any_span()).prop_map(|(since, length)| Excuse { since, length }));
    let words = (any::<(bool, bool, bool)>(), 0..20, any::<bool>());
    let told = (proptest::option::of(0_u64..3), proptest::option::of(0_u64..3), any_spent());
    (0_u64..4, ages, told, words, excuse).prop_map(
        |(sequence, (silence, still, running, idle), (progress, checkpoint, spent), words, excuse)| {
            let ((failing, broken, needs_person), stopping, has_output) = words;
            let (progress, checkpoint) = (progress.map(Fingerprint), checkpoint.map(Fingerprint));
            let word = Heard { failing, broken, needs_person, stopping: stopping == 0, has_output, ..Heard::default() };
            Heard { sequence, silence, still, running, progress, checkpoint, excuse, idle, spent, ..word }
        },
    )
}

pub(crate) fn any_life() -> impl Strategy<Value = Life> {
    prop_oneof![Just(Life::Alive), Just(Life::Gone), Just(Life::Unknown)]
}

pub(crate) fn any_want() -> impl Strategy<Value = Want> {
    prop_oneof![
        Just(Want::Run),
        Just(Want::Stop),
        proptest::option::of(any_span()).prop_map(Want::Pause),
        Just(Want::Resume)
    ]
}

pub(crate) fn any_proposal() -> impl Strategy<Value = Proposal> {
    prop_oneof![
        4 => Just(Proposal::Launch),
        1 => any_span().prop_map(Proposal::Wait),
        1 => Just(Proposal::Hold),
        1 => Just(Proposal::GiveUp),
        1 => Just(Proposal::Failed)
    ]
}

pub(crate) fn any_failure() -> impl Strategy<Value = LaunchFailure> {
    prop_oneof![
        Just(LaunchFailure::Locked),
        Just(LaunchFailure::Superseded),
        Just(LaunchFailure::NotWanted),
        Just(LaunchFailure::Failed),
        Just(LaunchFailure::Unreadable)
    ]
}

pub(crate) fn any_found() -> impl Strategy<Value = Found> {
    let state = prop_oneof![
        any_heard().prop_map(|heard| FoundState::Running { supervisor: supervisor(attempt(1)), process: None, heard }),
        any_life().prop_map(|process| FoundState::Unattended { process }),
        any_ending().prop_map(FoundState::Ended),
        Just(FoundState::Launching)
    ];
    let latest = (any_attempt(), state).prop_map(|(attempt, state)| FoundAttempt { attempt, state });
    (any_want(), 0_u64..9, 0_u32..4, proptest::option::of(latest)).prop_map(|(want, epoch, pickups, attempt)| Found {
        want,
        epoch: Epoch(epoch),
        pickups,
        attempt,
        ..Found::default()
    })
}

pub(crate) fn any_agent() -> impl Strategy<Value = Event> {
    let bound = |range: core::ops::Range<u32>| prop_oneof![Just(Limit::None), range.prop_map(Limit::At)];
    prop_oneof![
        (0_u16..2, bound(0..3))
            .prop_map(|(slot, running_max)| Event::SlotConfigured { slot: SlotId(slot), running_max }),
        (bound(1..3), any_span(), bound(0..100), 0_u32..3).prop_map(|(at_once, every, share, count_min)| {
            let at_once = at_once.bound().and_then(NonZeroU32::new).map_or(Limit::None, Limit::At);
            let share_percent = share.bound().and_then(|share| u8::try_from(share).ok()).map_or(Limit::None, Limit::At);
            Event::Configured {
                pacing: Pacing { at_once, every },
                blackout: BlackoutSettings { share_percent, count_min },
            }
        })
    ]
}

/// Anything at all, also what no sane caller would tell.
pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    let subject = || (0..SUBJECTS).prop_map(SubjectId);
    let about = || (subject(), any_attempt());
    prop_oneof![
        2 => (subject(), any_settings(), any_found())
            .prop_map(|(subject, settings, found)| Event::JobAdded { subject, settings, found }),
        1 => subject().prop_map(|subject| Event::JobRemoved { subject }),
        2 => (subject(), any_want()).prop_map(|(subject, want)| Event::WantChanged { subject, want }),
        4 => about().prop_map(|(subject, attempt)| Event::AttemptStarted {
            subject,
            attempt,
            supervisor: supervisor(attempt),
            process: None,
        }),
        2 => (about(), any_failure())
            .prop_map(|((subject, attempt), failure)| Event::LaunchRefused { subject, attempt, failure }),
        2 => (about(), any_heard()).prop_map(|((subject, attempt), heard)| Event::Heard { subject, attempt, heard }),
        1 => (about(), any_span())
            .prop_map(|((subject, attempt), idle)| Event::ActivitySeen { subject, attempt, idle }),
        2 => (about(), any_life())
            .prop_map(|((subject, attempt), process)| Event::SupervisorGone { subject, attempt, process }),
        4 => (about(), any_ending())
            .prop_map(|((subject, attempt), ending)| Event::AttemptEnded { subject, attempt, ending }),
        2 => (about(), 0_u32..2)
            .prop_map(|((subject, attempt), survivors)| Event::OrphanEnded { subject, attempt, survivors }),
        4 => (about(), any_proposal())
            .prop_map(|((subject, attempt), proposal)| Event::StrategyAnswered { subject, attempt, proposal }),
        1 => about().prop_map(|(subject, attempt)| Event::LookFailed { subject, attempt }),
        1 => about().prop_map(|(subject, attempt)| Event::SeriesBegan { subject, attempt }),
        1 => about().prop_map(|(subject, attempt)| Event::LaunchSeen { subject, attempt }),
        1 => (about(), 0_u64..6).prop_map(|((subject, _), turns)| Event::BudgetChanged {
            subject,
            budget: Budget { turns: Limit::At(turns), ..Budget::default() },
        }),
        1 => any_span().prop_map(|length| Event::GapFound { length }),
        1 => any_span().prop_map(|length| Event::BaselineRemembered { moment: Moment::ORIGIN.after(length) }),
        1 => prop_oneof![Just(Event::StoreFailed), Just(Event::StoreRecovered)],
        1 => any_agent()
    ]
}

/// Everything that is to be done now.
pub(crate) fn drain(policy: &mut Policy) -> Vec<Action> {
    core::iter::from_fn(|| policy.poll_action()).collect()
}
