//! Whole records on one side, the policy's numbers on the other. Nothing is decided here.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use latido_policy as policy;
use latido_protocol::attempt::{Ground, StopReason};
use latido_protocol::files::{
    Beats, Budget, End, Identity, JobSettings, Orphans, ResumeOn, Spent, Start, Status, Want, Wanted,
};
use latido_protocol::status::{Phase, SubjectKind, Verdict};
use latido_protocol::{Class, CountLimit, Limit, Progress, Span, WallTime};

use crate::fact::AttemptName;

/// Stands for any value inside one life of the agent.
pub(crate) fn fingerprint(value: impl Hash) -> policy::Fingerprint {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    policy::Fingerprint(hasher.finish())
}

pub(crate) fn process(identity: &Identity) -> policy::ProcessId {
    policy::ProcessId {
        boot: fingerprint((&identity.machine_id, &identity.boot_id)),
        namespace: identity.pid_namespace,
        pid: identity.pid,
        start_time: identity.start_time,
    }
}

pub(crate) fn attempt(number: u32, epoch: u64) -> policy::Attempt {
    policy::Attempt { number: policy::AttemptNumber(number), epoch: policy::Epoch(epoch) }
}

impl AttemptName {
    pub(crate) fn to_policy(&self) -> policy::Attempt {
        attempt(self.number, self.epoch)
    }

    /// The attempt a `start.json` speaks of.
    pub fn of(start: &Start) -> Self {
        Self { job: start.job.clone(), number: start.attempt, epoch: start.epoch }
    }
}

/// What was decided for a job, as its policy judges it. The seed of its jitter comes from its name.
pub fn settings(settings: &JobSettings, slots: policy::SlotSet, seed: u64) -> policy::JobSettings {
    let on = |which| settings.resume.on.contains(&which);
    policy::JobSettings {
        lease: lease(settings),
        resume: policy::ResumePolicy {
            on: policy::ResumeOn {
                lost: on(ResumeOn::Lost),
                failed: on(ResumeOn::Failed),
                stale: on(ResumeOn::Stale),
                hung: on(ResumeOn::Hung),
                limit: on(ResumeOn::Limit),
                completed: on(ResumeOn::Completed),
            },
            max_attempts: count_limit(settings.resume.max_attempts),
            max_pickups: settings.resume.max_pickups,
            backoff_first: settings.resume.backoff.first.0,
            backoff_longest: settings.resume.backoff.longest.0,
            max_attempts_without_progress: count_limit(settings.resume.max_attempts_without_progress),
            max_identical_deaths: count_limit(settings.resume.max_identical_deaths),
            wall_time_max: limit(settings.resume.wall_time_max),
            budget: budget(settings.resume.budget),
            spare_busy: settings.resume.spare_busy,
        },
        orphans: match settings.orphans {
            Orphans::End => policy::Orphans::End,
            Orphans::Hold => policy::Orphans::Hold,
        },
        grace: settings.grace.0,
        slots,
        seed,
    }
}

/// What all attempts may use up together.
pub(crate) fn budget(budget: Budget) -> policy::Budget {
    policy::Budget {
        turns: wide_limit(budget.turns),
        tokens: wide_limit(budget.tokens),
        money: wide_limit(budget.money),
    }
}

/// Why nothing more may be spent, once all attempts together have used up the budget: what a person who resumes a job
/// without an agent is told.
pub fn budget_used_up(allowed: Budget, all: Spent) -> Option<policy::Reason> {
    budget(allowed).used_up(spent(all))
}

fn limit(limit: Limit) -> policy::Limit<Duration> {
    match limit {
        Limit::None => policy::Limit::None,
        Limit::After(length) => policy::Limit::At(length),
    }
}

fn wide_limit(limit: CountLimit) -> policy::Limit<u64> {
    match limit {
        CountLimit::None => policy::Limit::None,
        CountLimit::At(count) => policy::Limit::At(count),
    }
}

/// A bound on what the policy counts in 32 bits; a greater one is the greatest.
pub(crate) fn count_limit(limit: CountLimit) -> policy::Limit<u32> {
    match limit {
        CountLimit::None => policy::Limit::None,
        CountLimit::At(count) => policy::Limit::At(u32::try_from(count).unwrap_or(u32::MAX)),
    }
}

/// The lease of a job's beats.
pub fn lease(settings: &JobSettings) -> policy::Lease {
    policy::Lease {
        beats: match settings.beats {
            Beats::Auto => policy::BeatSource::Auto,
            Beats::Own => policy::BeatSource::Own,
            Beats::Presence => policy::BeatSource::Presence,
        },
        interval: settings.interval.0,
        ttl: settings.ttl.0,
        start_within: settings.start_within.0,
        hung_after: limit(settings.hung_after),
        looping_after: count_limit(settings.looping_after),
        run_for: limit(settings.run_for),
        first_output_within: limit(settings.first_output_within),
        excuse_max: settings.excuse_max.0,
    }
}

/// What is wanted; a pause counts from `at`, and one that is over by then is nothing that anybody wants.
pub(crate) fn want(wanted: &Wanted, at: WallTime) -> policy::Want {
    match wanted.want {
        Want::Run => policy::Want::Run,
        Want::Stop => policy::Want::Stop,
        Want::Resume => policy::Want::Resume,
        Want::Pause if wanted.until.is_some_and(|until| until <= at) => policy::Want::Run,
        Want::Pause => policy::Want::Pause(wanted.until.map(|until| between(at, until))),
    }
}

/// How long before `at` a pause ended: by itself, or by a person, whose last word was that it runs.
pub(crate) fn unpaused_ago(wanted: &Wanted, at: WallTime) -> Option<Duration> {
    match wanted.want {
        Want::Run => Some(between(wanted.at, at)),
        Want::Pause => wanted.until.filter(|until| *until <= at).map(|until| between(until, at)),
        Want::Stop | Want::Resume => None,
    }
}

/// From one moment of the calendar to another; zero where the other is the earlier one.
pub(crate) fn between(earlier: WallTime, later: WallTime) -> Duration {
    Duration::from_millis(later.as_millis().saturating_sub(earlier.as_millis()))
}

/// The word by which a job says of itself that it fails (`latido beat --state failing`, `--fail`).
const FAILING: &str = "failing";

/// The word by which a job says of itself that it waits for a person (`latido beat --state needs-person`).
const NEEDS_PERSON: &str = "needs-person";

/// What a supervisor told.
pub fn heard(status: &Status) -> policy::Heard {
    let progress = status.progress.as_ref().filter(|progress| !progress.is_empty());
    policy::Heard {
        sequence: status.sequence,
        silence: status.silence_s.0,
        still: status.still_s.0,
        running: status.running_s.0,
        progress: progress.map(progress_fingerprint),
        checkpoint: progress.and_then(|progress| progress.checkpoint.as_ref()).map(fingerprint),
        failing: status.state.as_deref() == Some(FAILING),
        broken: status.broken,
        needs_person: status.state.as_deref() == Some(NEEDS_PERSON),
        stopping: status.stopping,
        excuse: status
            .excuse
            .as_ref()
            .map(|excuse| policy::Excuse { since: excuse.since_s.0, length: excuse.length_s.0 }),
        idle: status.idle_s.map(|idle| idle.0),
        has_output: status.output_bytes > 0,
        spent: spent(status.spent),
    }
}

fn spent(spent: Spent) -> policy::Spent {
    policy::Spent { turns: spent.turns, tokens: spent.tokens, money: spent.money }
}

pub(crate) fn spent_of(spent: policy::Spent) -> Spent {
    Spent { turns: spent.turns, tokens: spent.tokens, money: spent.money }
}

fn progress_fingerprint(progress: &Progress) -> policy::Fingerprint {
    fingerprint((
        progress.fraction.map(f64::to_bits),
        progress.done,
        progress.total,
        &progress.step,
        &progress.checkpoint,
    ))
}

/// What the endings before the latest attempt tell, each with the start of its attempt, after `before` was used up.
pub(crate) fn history<'a>(before: Spent, earlier: impl IntoIterator<Item = (&'a Start, &'a End)>) -> policy::History {
    let mut history = policy::History::after(spent(before));
    for (start, end) in earlier {
        begin(&mut history, start);
        history.attempt_ended(&ending(end));
    }
    history
}

/// Takes note of what stood before an attempt began: who asked for it, and from where it goes on.
pub(crate) fn begin(history: &mut policy::History, start: &Start) {
    if start.by_hand {
        history.resumed_by_hand();
    }
    history.learn(Some(&start.checkpoint).filter(|checkpoint| !checkpoint.is_empty()).map(fingerprint));
}

/// How an attempt ended.
pub(crate) fn ending(end: &End) -> policy::Ending {
    policy::Ending {
        class: class(end.outcome.class),
        outcome: fingerprint((end.outcome.kind, end.outcome.code, end.outcome.signal)),
        checkpoint: end.progress.as_ref().and_then(|progress| progress.checkpoint.as_ref()).map(fingerprint),
        launch_failed: end.outcome.kind == latido_protocol::OutcomeKind::LaunchFailed,
        // Never by the calendar, which may have moved meanwhile.
        ran_for: end.ran_s.map_or(Duration::ZERO, |ran| ran.0),
        is_seen: end.outcome.kind != latido_protocol::OutcomeKind::Lost,
        order: end.stopped_for.map(|reason| match reason {
            StopReason::Commanded => policy::StopReason::Commanded,
            StopReason::Stale => policy::StopReason::Stale,
            StopReason::Hung => policy::StopReason::Hung,
            StopReason::Limit => policy::StopReason::Limit,
            StopReason::Superseded => policy::StopReason::Superseded,
        }),
        spent: spent(end.spent),
    }
}

/// What an ending means.
pub fn class(class: Class) -> policy::Class {
    match class {
        Class::Completed => policy::Class::Completed,
        Class::Failed => policy::Class::Failed,
        Class::Lost => policy::Class::Lost,
        Class::Stopped => policy::Class::Stopped,
        Class::Limit => policy::Class::Limit,
    }
}

/// A verdict as documents and the journal have it.
pub fn verdict(verdict: policy::Verdict) -> Verdict {
    match verdict {
        policy::Verdict::Waiting => Verdict::Waiting,
        policy::Verdict::Missing => Verdict::Missing,
        policy::Verdict::Alive => Verdict::Alive,
        policy::Verdict::Late => Verdict::Late,
        policy::Verdict::Stale => Verdict::Stale,
        policy::Verdict::Hung => Verdict::Hung,
        policy::Verdict::Failing => Verdict::Failing,
        policy::Verdict::Orphaned => Verdict::Orphaned,
        policy::Verdict::Dead => Verdict::Dead,
        policy::Verdict::Unknown => Verdict::Unknown,
        policy::Verdict::Ended => Verdict::Ended,
    }
}

pub(crate) fn phase(phase: policy::Phase) -> Phase {
    match phase {
        policy::Phase::Pending => Phase::Pending,
        policy::Phase::Queued => Phase::Queued,
        policy::Phase::Launching => Phase::Launching,
        policy::Phase::Running => Phase::Running,
        policy::Phase::Draining => Phase::Draining,
        policy::Phase::BackingOff => Phase::BackingOff,
        policy::Phase::Held => Phase::Held,
        policy::Phase::Stuck => Phase::Stuck,
        policy::Phase::Paused => Phase::Paused,
        policy::Phase::Ended => Phase::Ended,
    }
}

/// A kind in a word, for rows.
pub(crate) fn kind(kind: SubjectKind) -> &'static str {
    match kind {
        SubjectKind::Job => "job",
        SubjectKind::Worker => "worker",
        SubjectKind::Check => "check",
        SubjectKind::Process => "process",
    }
}

/// How the ending is recorded that a reason brings about. A reason that ends nothing is an order of latido's own.
pub(crate) fn stop_reason(because: &policy::Reason) -> StopReason {
    match because.stop_reason() {
        None | Some(policy::StopReason::Commanded) => StopReason::Commanded,
        Some(policy::StopReason::Stale) => StopReason::Stale,
        Some(policy::StopReason::Hung) => StopReason::Hung,
        Some(policy::StopReason::Limit) => StopReason::Limit,
        Some(policy::StopReason::Superseded) => StopReason::Superseded,
    }
}

/// What an order rests on, as its supervisor is told.
pub(crate) fn ground(ground: policy::Ground) -> Ground {
    match ground {
        policy::Ground::Silent(length) => Ground::Silent { for_s: Span(length) },
        policy::Ground::Still(length) => Ground::Still { for_s: Span(length) },
        policy::Ground::Repeating { beats } => Ground::Repeating { beats },
        policy::Ground::Broken => Ground::Broken,
    }
}

/// What the store's row says of a verdict; `None` for a word of another version.
pub(crate) fn recorded_verdict(verdict: &str) -> Option<policy::Verdict> {
    let verdicts = [
        policy::Verdict::Waiting,
        policy::Verdict::Missing,
        policy::Verdict::Alive,
        policy::Verdict::Late,
        policy::Verdict::Stale,
        policy::Verdict::Hung,
        policy::Verdict::Failing,
        policy::Verdict::Orphaned,
        policy::Verdict::Dead,
        policy::Verdict::Unknown,
        policy::Verdict::Ended,
    ];
    verdicts.into_iter().find(|known| self::verdict(*known).as_str() == verdict)
}

/// What the store's row says of a subject; `None` for words of another version.
pub(crate) fn recorded(verdict: &str, phase: &str) -> Option<policy::Recorded> {
    let phases = [
        policy::Phase::Pending,
        policy::Phase::Queued,
        policy::Phase::Launching,
        policy::Phase::Running,
        policy::Phase::Draining,
        policy::Phase::BackingOff,
        policy::Phase::Held,
        policy::Phase::Stuck,
        policy::Phase::Paused,
        policy::Phase::Ended,
    ];
    Some(policy::Recorded {
        verdict: recorded_verdict(verdict)?,
        phase: phases.into_iter().find(|known| self::phase(*known).to_string() == phase)?,
    })
}
