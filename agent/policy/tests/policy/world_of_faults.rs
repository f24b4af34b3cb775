//! A world beside the policy carries out what it is told, lies about nothing that matters and delivers late, twice and
//! out of order.

use core::time::Duration;

use latido_policy::{
    Action, Attempt, Class, Ending, Event, Fingerprint, Found, Heard, JobSettings, LaunchFailure, Life, Moment, Phase,
    Policy, Proposal, Spent, SubjectId, Verdict, Want,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::any::{any_class, any_proposal, any_settings, any_want, drain};
use crate::harness::{seconds, supervisor};

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
