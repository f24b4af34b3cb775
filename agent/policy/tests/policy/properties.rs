//! Any order of events and times. A world beside the policy carries out what it is told, lies about nothing that matters
//! and delivers late, twice and out of order.

use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::BTreeMap;

use latido_policy::{
    Action, Attempt, BeatSource, BlackoutSettings, Budget, Class, Ending, Epoch, Event, Excuse, Fingerprint, Found,
    FoundAttempt, FoundState, Heard, JobSettings, LaunchFailure, Lease, Life, Limit, Moment, Orphans, Pacing, Phase,
    Policy, Proposal, Reason, ResumeOn, ResumePolicy, SlotId, SlotSet, Spent, SubjectId, Verdict, Want,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::harness::{attempt, seconds, supervisor, with_epoch};

const SUBJECTS: u32 = 3;

fn any_span() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), (0_u64..3000).prop_map(Duration::from_millis), (0_u64..2000).prop_map(seconds)]
}

fn any_limit() -> impl Strategy<Value = Limit<Duration>> {
    prop_oneof![Just(Limit::None), any_span().prop_map(Limit::At)]
}

fn any_count() -> impl Strategy<Value = Limit<u32>> {
    prop_oneof![3 => Just(Limit::None), 1 => (0_u32..4).prop_map(Limit::At)]
}

fn any_slots() -> impl Strategy<Value = SlotSet> {
    vec((0_u16..2).prop_map(SlotId), 0..3).prop_map(|slots| SlotSet::of(&slots))
}

/// Says nothing: every part of it is replaced.
const ANY_LEASE: Lease = Lease {
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

fn any_settings() -> impl Strategy<Value = JobSettings> {
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
    let on = any::<(bool, bool, bool, bool, bool)>().prop_map(|(lost, failed, stale, hung, limit)| ResumeOn {
        lost,
        failed,
        stale,
        hung,
        limit,
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
            max_attempts: NonZeroU32::new(max_attempts).unwrap(),
            max_pickups,
            max_attempts_without_progress,
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

fn any_attempt() -> impl Strategy<Value = Attempt> {
    (1_u32..6, 0_u64..3).prop_map(|(number, more)| with_epoch(number, u64::from(number) + more))
}

fn any_class() -> impl Strategy<Value = Class> {
    prop_oneof![
        1 => Just(Class::Completed),
        1 => Just(Class::Failed),
        4 => Just(Class::Lost),
        1 => Just(Class::Stopped),
        1 => Just(Class::Limit)
    ]
}

fn any_ending() -> impl Strategy<Value = Ending> {
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

fn any_spent() -> impl Strategy<Value = Spent> {
    (0_u64..3).prop_map(|turns| Spent { turns, ..Spent::default() })
}

fn any_heard() -> impl Strategy<Value = Heard> {
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

fn any_life() -> impl Strategy<Value = Life> {
    prop_oneof![Just(Life::Alive), Just(Life::Gone), Just(Life::Unknown)]
}

fn any_want() -> impl Strategy<Value = Want> {
    prop_oneof![
        Just(Want::Run),
        Just(Want::Stop),
        proptest::option::of(any_span()).prop_map(Want::Pause),
        Just(Want::Resume)
    ]
}

fn any_proposal() -> impl Strategy<Value = Proposal> {
    prop_oneof![
        4 => Just(Proposal::Launch),
        1 => any_span().prop_map(Proposal::Wait),
        1 => Just(Proposal::Hold),
        1 => Just(Proposal::GiveUp),
        1 => Just(Proposal::Failed)
    ]
}

fn any_failure() -> impl Strategy<Value = LaunchFailure> {
    prop_oneof![
        Just(LaunchFailure::Locked),
        Just(LaunchFailure::Superseded),
        Just(LaunchFailure::NotWanted),
        Just(LaunchFailure::Failed),
        Just(LaunchFailure::Unreadable)
    ]
}

fn any_found() -> impl Strategy<Value = Found> {
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

fn any_agent() -> impl Strategy<Value = Event> {
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
fn any_event() -> impl Strategy<Value = Event> {
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

fn drain(policy: &mut Policy) -> Vec<Action> {
    core::iter::from_fn(|| policy.poll_action()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Whatever is told: epochs grow, nothing stays due, and nothing is launched after a stop.
    #[test]
    fn no_order_of_events_breaks_what_always_holds(story in vec((any_event(), any_span()), 1..60)) {
        let mut policy = Policy::new();
        let mut now = Moment::ORIGIN.after(seconds(1));
        let mut epochs: BTreeMap<SubjectId, Epoch> = BTreeMap::new();
        let mut stopped: BTreeMap<SubjectId, bool> = BTreeMap::new();
        for (event, span) in story {
            match event {
                Event::JobRemoved { subject } => {
                    stopped.remove(&subject);
                    epochs.remove(&subject);
                }
                Event::JobAdded { subject, found: Found { want, .. }, .. } | Event::WantChanged { subject, want } => {
                    let is_known = policy.subject(subject).is_some() || matches!(event, Event::JobAdded { .. });
                    match want {
                        Want::Stop => _ = is_known.then(|| stopped.insert(subject, true)),
                        Want::Resume => _ = stopped.insert(subject, false),
                        Want::Run | Want::Pause(_) => {}
                    }
                }
                Event::BudgetChanged { .. }
                | Event::AttemptStarted { .. }
                | Event::AttemptSeen { .. }
                | Event::LaunchRefused { .. }
                | Event::Heard { .. }
                | Event::ActivitySeen { .. }
                | Event::SupervisorGone { .. }
                | Event::AttemptEnded { .. }
                | Event::OrphanEnded { .. }
                | Event::StrategyAnswered { .. }
                | Event::LookFailed { .. }
                | Event::ResumedElsewhere { .. }
                | Event::Registry(_)
                | Event::Check(_)
                | Event::Process(_)
                | Event::Alert(_)
                | Event::GapFound { .. }
                | Event::StoreFailed
                | Event::StoreRecovered
                | Event::BaselineRemembered { .. }
                | Event::RecoveryBegan
                | Event::RecoveryEnded
                | Event::Configured { .. }
                | Event::SlotConfigured { .. } => {}
            }
            policy.handle_event(event, now);
            let mut actions = drain(&mut policy);
            now = now.after(span);
            policy.handle_timeout(now);
            actions.extend(drain(&mut policy));
            prop_assert!(policy.poll_timeout().is_none_or(|next| next > now), "something stays due after {event:?}");
            policy.handle_timeout(now);
            prop_assert_eq!(drain(&mut policy), vec![], "a repeated call does something after {:?}", event);
            for action in actions {
                if let Action::Launch { subject, attempt, .. } = action {
                    let before = epochs.insert(subject, attempt.epoch);
                    prop_assert!(before.is_none_or(|before| attempt.epoch > before), "an epoch fell after {event:?}");
                    prop_assert!(!stopped.get(&subject).copied().unwrap_or(false), "launched after a stop: {event:?}");
                }
            }
        }
    }
}

/// Whose event it is that may bring back what has ended: somebody asks for it, or an attempt of it that nobody told of.
fn may_bring_back(event: &Event, subject: SubjectId) -> bool {
    match event {
        Event::JobAdded { subject: of, .. }
        | Event::JobRemoved { subject: of }
        | Event::AttemptStarted { subject: of, .. }
        | Event::AttemptSeen { subject: of, .. }
        | Event::AttemptEnded { subject: of, .. }
        | Event::WantChanged { subject: of, want: Want::Resume } => *of == subject,
        Event::WantChanged { .. }
        | Event::BudgetChanged { .. }
        | Event::ResumedElsewhere { .. }
        | Event::LaunchRefused { .. }
        | Event::Heard { .. }
        | Event::ActivitySeen { .. }
        | Event::SupervisorGone { .. }
        | Event::OrphanEnded { .. }
        | Event::StrategyAnswered { .. }
        | Event::LookFailed { .. }
        | Event::Registry(_)
        | Event::Alert(_)
        | Event::Check(_)
        | Event::Process(_)
        | Event::GapFound { .. }
        | Event::StoreFailed
        | Event::StoreRecovered
        | Event::BaselineRemembered { .. }
        | Event::RecoveryBegan
        | Event::RecoveryEnded
        | Event::Configured { .. }
        | Event::SlotConfigured { .. } => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// What has ended stays so, and no row of what runs says less than why: whoever is stale and runs on is told of with
    /// the silence, and runs on because nobody asked for more.
    #[test]
    fn what_has_ended_is_final_and_whoever_is_stale_is_ended_or_explained(
        story in vec((any_event(), any_span()), 1..60),
    ) {
        let mut policy = Policy::new();
        let mut now = Moment::ORIGIN.after(seconds(1));
        let mut settings: BTreeMap<SubjectId, JobSettings> = BTreeMap::new();
        for (event, span) in story {
            let before: BTreeMap<_, _> = policy.subjects().map(|view| (view.subject, view)).collect();
            if let Event::JobAdded { subject, settings: added, .. } = event {
                settings.insert(subject, added);
            }
            policy.handle_event(event, now);
            now = now.after(span);
            policy.handle_timeout(now);
            drain(&mut policy);
            for view in policy.subjects() {
                let was = before.get(&view.subject).filter(|_| !may_bring_back(&event, view.subject));
                if let Some(was) = was.filter(|was| was.phase == Phase::Ended) {
                    prop_assert_eq!((view.phase, view.attempt), (was.phase, was.attempt), "after {:?}", event);
                }
                if view.verdict == Verdict::Stale && view.phase == Phase::Running {
                    let is_explained = matches!(view.because, Reason::LeaseRanOut { silence, ttl } if silence >= ttl);
                    prop_assert!(is_explained, "{view:?} after {event:?}");
                    prop_assert!(!settings[&view.subject].resume.on.stale, "{view:?} runs on after {event:?}");
                }
            }
        }
    }
}

/// What really is, beside what the policy believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Real {
    Nothing,
    /// supervisor and job live
    Runs(Attempt),
    /// the job lives
    Orphan(Attempt),
    /// gone without a record
    Gone(Attempt),
}

/// A chance that the world takes.
#[derive(Clone, Copy, Debug)]
enum Chance {
    JobDies(Class),
    /// A look at it may tell no more than that.
    SupervisorDies {
        orphan: bool,
        in_the_dark: bool,
    },
    LooksAgain,
    Beats,
    LookFails,
    Wants(Want),
    Passes(u64),
    /// The oldest waiting order is carried out and answered.
    Answers {
        launch: Option<LaunchFailure>,
        survivors: bool,
        proposal: Proposal,
    },
    /// An event from before is delivered again.
    Repeats(usize),
}

fn any_chance() -> impl Strategy<Value = Chance> {
    let failure = proptest::option::weighted(
        0.2,
        prop_oneof![Just(LaunchFailure::Locked), Just(LaunchFailure::Failed), Just(LaunchFailure::Unreadable)],
    );
    prop_oneof![
        2 => any_class().prop_map(Chance::JobDies),
        2 => (any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(orphan, in_the_dark)| Chance::SupervisorDies { orphan, in_the_dark }),
        2 => Just(Chance::LooksAgain),
        2 => Just(Chance::Beats),
        1 => Just(Chance::LookFails),
        1 => any_want().prop_map(Chance::Wants),
        2 => (0_u64..400).prop_map(Chance::Passes),
        8 => (failure, prop::bool::weighted(0.1), any_proposal())
            .prop_map(|(launch, survivors, proposal)| Chance::Answers { launch, survivors, proposal }),
        3 => any::<usize>().prop_map(Chance::Repeats)
    ]
}

/// One job in a world that carries out orders when it comes to it.
struct World {
    policy: Policy,
    now: Moment,
    real: Real,
    orders: Vec<Action>,
    told: Vec<Event>,
    sequence: u64,
    started_at: Moment,
}

const JOB: SubjectId = SubjectId(0);

impl World {
    fn new(settings: JobSettings) -> Self {
        let mut world = Self {
            policy: Policy::new(),
            now: Moment::ORIGIN,
            real: Real::Nothing,
            orders: Vec::new(),
            told: Vec::new(),
            sequence: 0,
            started_at: Moment::ORIGIN,
        };
        world.tell(Event::JobAdded { subject: JOB, settings, found: Found::default() });
        world
    }

    fn tell(&mut self, event: Event) {
        self.told.push(event);
        self.policy.handle_event(event, self.now);
        self.collect();
    }

    fn collect(&mut self) {
        for action in drain(&mut self.policy) {
            match action {
                Action::RecordVerdict { .. }
                | Action::RecordPhase { .. }
                | Action::RecordGap { .. }
                | Action::RecordBlackout { .. }
                | Action::Alert(_) => {}
                Action::Check(_) | Action::Process(_) => unreachable!("a job gives out neither"),
                Action::Registry(action) => panic!("no worker is known: {action:?}"),
                Action::Launch { .. } => {
                    assert_eq!(self.real, Real::Nothing, "a launch beside what lives or is not recorded");
                    self.orders.push(action);
                }
                Action::RecordLost { .. }
                | Action::EndOrphan { .. }
                | Action::EndAttempt { .. }
                | Action::AskStrategy { .. } => self.orders.push(action),
            }
        }
    }

    fn end(&mut self, attempt: Attempt, class: Class) {
        self.real = Real::Nothing;
        let ending = Ending {
            class,
            outcome: Fingerprint(1),
            checkpoint: None,
            launch_failed: false,
            ran_for: self.now.since(self.started_at),
            is_seen: true,
            order: None,
            spent: Spent::default(),
        };
        self.tell(Event::AttemptEnded { subject: JOB, attempt, ending });
    }

    fn look(&mut self, attempt: Attempt, in_the_dark: bool) {
        let process = match self.real {
            _ if in_the_dark => Life::Unknown,
            Real::Orphan(_) => Life::Alive,
            Real::Nothing | Real::Runs(_) | Real::Gone(_) => Life::Gone,
        };
        self.tell(Event::SupervisorGone { subject: JOB, attempt, process });
    }

    fn pass(&mut self, length: Duration) {
        self.now = self.now.after(length);
        self.policy.handle_timeout(self.now);
        self.collect();
    }

    fn answer(&mut self, launch: Option<LaunchFailure>, survivors: bool, proposal: Proposal) {
        if self.orders.is_empty() {
            return;
        }
        match self.orders.remove(0) {
            Action::Launch { subject, attempt, .. } => {
                if let Some(failure) = launch {
                    self.tell(Event::LaunchRefused { subject, attempt, failure });
                } else {
                    assert_eq!(self.real, Real::Nothing, "two copies");
                    self.real = Real::Runs(attempt);
                    self.started_at = self.now;
                    let supervisor = supervisor(attempt);
                    self.tell(Event::AttemptStarted { subject, attempt, supervisor, process: None });
                }
            }
            Action::EndAttempt { attempt, because, .. } if self.real == Real::Runs(attempt) => {
                let class = match because.stop_reason().unwrap() {
                    latido_policy::StopReason::Commanded => Class::Stopped,
                    latido_policy::StopReason::Limit => Class::Limit,
                    latido_policy::StopReason::Stale
                    | latido_policy::StopReason::Hung
                    | latido_policy::StopReason::Superseded => LOST,
                };
                self.end(attempt, class);
            }
            Action::EndOrphan { subject, attempt, .. } => {
                if !survivors && self.real == Real::Orphan(attempt) {
                    self.real = Real::Gone(attempt);
                }
                let survivors = u32::from(survivors);
                self.tell(Event::OrphanEnded { subject, attempt, survivors });
            }
            Action::RecordLost { attempt, .. } if self.real == Real::Gone(attempt) => self.end(attempt, LOST),
            Action::AskStrategy { subject, attempt, .. } => {
                self.tell(Event::StrategyAnswered { subject, attempt, proposal });
            }
            Action::EndAttempt { .. }
            | Action::RecordLost { .. }
            | Action::RecordVerdict { .. }
            | Action::RecordPhase { .. }
            | Action::RecordGap { .. }
            | Action::RecordBlackout { .. }
            | Action::Registry(_)
            | Action::Check(_)
            | Action::Process(_)
            | Action::Alert(_) => {}
        }
    }

    fn take(&mut self, chance: Chance) {
        match (chance, self.real) {
            (Chance::JobDies(class), Real::Runs(attempt)) => self.end(attempt, class),
            (Chance::SupervisorDies { orphan, in_the_dark }, Real::Runs(attempt)) => {
                self.real = if orphan { Real::Orphan(attempt) } else { Real::Gone(attempt) };
                self.look(attempt, in_the_dark);
            }
            (Chance::LooksAgain, Real::Orphan(attempt) | Real::Gone(attempt)) => self.look(attempt, false),
            (Chance::Beats, Real::Runs(attempt)) => {
                self.sequence += 1;
                let running = self.now.since(self.started_at);
                let heard = Heard { sequence: self.sequence, running, ..Heard::default() };
                self.tell(Event::Heard { subject: JOB, attempt, heard });
            }
            (Chance::LookFails, Real::Runs(attempt)) => self.tell(Event::LookFailed { subject: JOB, attempt }),
            (Chance::Wants(want), _) => self.tell(Event::WantChanged { subject: JOB, want }),
            (Chance::Passes(length), _) => self.pass(seconds(length)),
            (Chance::Answers { launch, survivors, proposal }, _) => self.answer(launch, survivors, proposal),
            (Chance::Repeats(which), _) => {
                let event = self.told[which % self.told.len()];
                if !matches!(event, Event::JobAdded { .. } | Event::WantChanged { .. }) {
                    self.policy.handle_event(event, self.now);
                    self.collect();
                }
            }
            (
                Chance::JobDies(_) | Chance::SupervisorDies { .. } | Chance::Beats | Chance::LookFails,
                Real::Nothing | Real::Orphan(_) | Real::Gone(_),
            )
            | (Chance::LooksAgain, Real::Nothing | Real::Runs(_)) => {}
        }
    }
}

const LOST: Class = Class::Lost;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Never two live attempts; and once the faults stop, every job that was lost runs again or says why not.
    #[test]
    fn a_world_of_faults_never_sees_two_copies_and_every_job_is_explained(
        settings in any_settings(),
        story in vec(any_chance(), 1..80),
    ) {
        let mut world = World::new(settings);
        for chance in story {
            world.take(chance);
        }
        world.tell(Event::WantChanged { subject: JOB, want: Want::Run });
        for _ in 0..200 {
            world.answer(None, false, Proposal::Launch);
            if let Some(next) = world.policy.poll_timeout().filter(|_| world.orders.is_empty()) {
                let view = world.policy.subject(JOB).unwrap();
                if view.phase == Phase::Running {
                    break;
                }
                world.pass(next.since(world.now));
            }
        }
        let view = world.policy.subject(JOB).unwrap();
        match (view.phase, world.real) {
            (Phase::Running | Phase::Draining, Real::Runs(attempt)) => prop_assert_eq!(view.attempt, attempt),
            (Phase::Held, Real::Orphan(_)) if view.verdict == Verdict::Orphaned => {}
            (Phase::Held, Real::Orphan(_) | Real::Gone(_)) => prop_assert_eq!(view.verdict, Verdict::Unknown),
            (Phase::Held | Phase::Stuck | Phase::Ended, Real::Nothing) => prop_assert_eq!(view.verdict, Verdict::Ended),
            other => prop_assert!(false, "{other:?} is not explained: {view:?}"),
        }
        prop_assert_eq!(world.policy.unexpected_count(), 0);
    }
}
