//! What has to hold, by what is truly the case: what may be launched and ended, and what a subject may be called. It shares
//! no logic with the policy and looks nothing up in it.

use std::time::Duration;

use latido_protocol::attempt::StopReason;
use latido_protocol::files::{Beats, ResumeOn, Status, Want};
use latido_protocol::status::{Phase, Verdict};
use latido_protocol::{Class, CountLimit, Limit};

use crate::checks::{Excuse, Seen};
use crate::measure::Measure;
use crate::truth::{End, Job, Truth, Word};

/// By so much the agent may take a gap for listening time: the pass that was planned, and ordinary lateness.
const GAP_BLUR: Duration = Duration::from_secs(6);

/// What is due is seen this much later at most: the pass that was planned, and a busy machine.
const SLACK: Duration = Duration::from_secs(10);

/// So many jobs can fall silent together.
const MANY: usize = 3;

/// What is claimed holds, or this is what was seen.
type Claim = Result<(), String>;

/// Launches refused in a row that are too many.
const REFUSALS: u32 = 10;

#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) jobs: Vec<Job>,
    /// time awake in which the agent could not hear, less the blur
    deaf: Duration,
    /// since when it hears without a gap
    hears_since: Duration,
    /// by so much it may take sleep for time awake
    slept_blur: Duration,
}

impl Job {
    /// An epoch is made durable.
    pub(crate) fn give(&mut self, epoch: u64) -> Claim {
        if epoch <= self.highest_epoch {
            return Err(format!("epoch {epoch} is given after {}", self.highest_epoch));
        }
        self.highest_epoch = epoch;
        self.attempts.insert(epoch, Truth::default());
        Ok(())
    }

    /// The work of an attempt begins to run.
    pub(crate) fn work_started(&mut self, epoch: u64, now: Duration) -> Claim {
        if let Some(other) = self.attempts.iter().find(|(_, truth)| truth.work_lives) {
            return Err(format!("epoch {epoch} starts while epoch {} lives", other.0));
        }
        if self.attempts.range(epoch + 1..).next().is_some() {
            return Err(format!("epoch {epoch} starts after a higher one was given"));
        }
        self.refusals = 0;
        let truth = self.attempt(epoch);
        (truth.work_lives, truth.started_at) = (true, now);
        Ok(())
    }

    /// Nothing that the agent knows of may live where it launches another, and by itself it launches what its policy resumes.
    pub(crate) fn may_launch(&self, by_hand: bool, epoch: u64, now: Duration) -> Claim {
        // Somebody was faster, and the agent will be told: an epoch is given once, so this launch is refused.
        if epoch <= self.highest_epoch {
            return Ok(());
        }
        // What it learned in this very pass it may have launched before, where the store let it wait: that launch is refused.
        if self.told == Some(Want::Stop) && self.told_at < now {
            return Err("it is launched after a stop".to_owned());
        }
        let count = self.ends().len();
        let is_spent = is_reached(self.settings.resume.max_attempts, count as u64);
        if !by_hand && self.last_ended().is_some_and(|last| is_spent || !self.resumes(last)) {
            return Err(format!("it is launched, and its policy does not resume it after {count} endings"));
        }
        // The same, and the lock is held.
        if self.is_known_to_live(now) {
            return Err("it is launched while an attempt lives that the agent knows of".to_owned());
        }
        Ok(())
    }

    /// Why it may stay over, given up or held without anybody doing anything.
    pub(crate) fn explains_rest(&self, phase: &str) -> Claim {
        let last = self.attempts.values().rfind(|truth| truth.end.is_some() || !truth.started_at.is_zero());
        let lives = last.is_some_and(|truth| truth.end.is_none() && truth.work_lives && truth.supervisor_lives);
        if lives {
            return Err(format!("it is {phase} and runs"));
        }
        let excused = |excuses: &[Excuse]| excuses.iter().any(|excuse| self.excuses.contains(excuse));
        let is_explained = match phase {
            "ended" => self.told == Some(Want::Stop) || last.is_some_and(|last| !self.resumes(last)),
            "stuck" => self.may_be_spent() || excused(&[Excuse::StrategyGaveUp]),
            _ => {
                use Excuse as E;
                self.refusals >= REFUSALS
                    || self.told == Some(Want::Pause)
                    || excused(&[E::StrategyHeld, E::Survivors, E::OrphanLeft])
            }
        };
        if is_explained { Ok(()) } else { Err(format!("it is {phase}, and nothing explains it: {last:?}")) }
    }

    /// Whether its policy resumes what ended so, or has not ended. What was lost after its end had been ordered is as good as
    /// ended by the order.
    fn resumes(&self, truth: &Truth) -> bool {
        let on = |what| self.settings.resume.on.contains(&what);
        let Some(end) = truth.end else { return true };
        match end.class {
            Class::Stopped => false,
            Class::Completed => on(ResumeOn::Completed),
            Class::Failed => on(ResumeOn::Failed) || end.by_policy,
            Class::Lost => on(ResumeOn::Lost) || end.by_policy || truth.is_given_up,
            Class::Limit => on(ResumeOn::Limit),
        }
    }

    /// A limit is reached, or may be.
    fn may_be_spent(&self) -> bool {
        let (resume, ends) = (&self.settings.resume, self.ends());
        let count = ends.len() as u64;
        let lost = ends.iter().filter(|end| end.class == Class::Lost).count() as u64;
        let alike = |deaths: &[End]| deaths.iter().all(|end| end.how == deaths[0].how && end.is_quick);
        is_reached(resume.max_attempts, count)
            || lost >= u64::from(resume.max_pickups)
            || ends.windows(3).any(alike)
            || resume.wall_time_max.duration().is_some_and(|limit| self.ran(u64::MAX) >= limit)
            || is_reached(resume.max_attempts_without_progress, count)
    }
}

impl Reference {
    /// An agent begins and has the lock.
    pub(crate) fn agent_began(&mut self, was_away_for: Duration, now: Duration) {
        self.deaf(was_away_for, now);
        self.jobs.iter_mut().for_each(Job::another_agent);
    }

    /// The agent could not hear for this long, until now.
    pub(crate) fn deaf(&mut self, length: Duration, now: Duration) {
        self.deaf += length.saturating_sub(GAP_BLUR);
        self.hears_since = now;
    }

    /// What is not recorded is not believed: everybody is heard anew.
    pub(crate) fn doubts(&mut self, now: Duration) {
        self.hears_since = now;
    }

    /// The machine slept: the pass in which it did may count for as long as it was planned.
    pub(crate) fn slept(&mut self, now: Duration) {
        self.hears_since = now;
        self.slept_blur += GAP_BLUR;
    }

    /// A moment on the longest line that the agent may go by.
    fn on_its_line(&self, moment: Duration) -> Duration {
        (moment + self.slept_blur).saturating_sub(self.deaf)
    }

    /// Word of an attempt reaches the agent.
    pub(crate) fn hear(&mut self, job: usize, status: &Status, sent_at: Duration, now: Duration) {
        let done = status.progress.as_ref().and_then(|progress| progress.done);
        let same = self.jobs[job].word.filter(|word| word.epoch == status.epoch && word.done == done);
        let done_since = same.map_or(status.sequence, |word| word.done_since.min(status.sequence));
        let word = Word {
            epoch: status.epoch,
            sequence: status.sequence,
            done,
            done_since,
            sent_at: self.on_its_line(sent_at),
            measure: Measure {
                silence: status.silence_s.0,
                still: status.still_s.0,
                age: status.running_s.0,
                broken: status.broken,
                repeated: status.sequence - done_since + 1,
            },
            arrived_at: now,
            is_known: true,
        };
        let rank = |word: &Word| (word.epoch, word.sequence, word.measure.silence);
        match &mut self.jobs[job].word {
            Some(known) if rank(known) == rank(&word) => known.is_known = true,
            Some(known) if known.is_known && rank(known) > rank(&word) => {}
            newest => *newest = Some(word),
        }
    }

    /// The longest silence, standstill and age that the agent may take for granted.
    fn longest(&self, job: usize, epoch: u64, now: Duration) -> Measure {
        let job = &self.jobs[job];
        let (at, since) = match job.word.filter(|word| word.epoch == epoch) {
            Some(word) => (word.measure, self.on_its_line(now).saturating_sub(word.sent_at)),
            None => {
                let started = job.attempts.get(&epoch).map_or(now, |truth| truth.started_at);
                (Measure::default(), now.saturating_sub(started))
            }
        };
        at.later(since)
    }

    /// A subject may be called so only where it is true.
    pub(crate) fn may_be(&self, job: usize, epoch: u64, verdict: Verdict, phase: Phase, now: Duration) -> Claim {
        let Some(truth) = self.jobs[job].attempts.get(&epoch) else { return Ok(()) };
        let settings = &self.jobs[job].settings;
        let Measure { silence, still, broken, repeated, .. } = self.longest(job, epoch, now);
        let lives = truth.work_lives || truth.supervisor_lives;
        let stands_still = settings.hung_after.duration().is_some_and(|limit| still >= limit);
        let repeats = matches!(settings.looping_after, CountLimit::At(limit) if repeated >= limit);
        let is_true = match verdict {
            // What is paused is not judged: it keeps what it was called before.
            Verdict::Stale | Verdict::Late | Verdict::Missing | Verdict::Hung if phase == Phase::Paused => true,
            Verdict::Dead => !lives,
            Verdict::Orphaned => !truth.supervisor_lives,
            Verdict::Ended => truth.end.is_some() || !lives,
            Verdict::Stale => silence >= settings.ttl.0,
            Verdict::Late => silence > settings.interval.0,
            Verdict::Missing => phase != Phase::Running || silence >= settings.start_within.0,
            Verdict::Hung => broken || stands_still || repeats,
            Verdict::Waiting | Verdict::Alive | Verdict::Failing | Verdict::Unknown => true,
        };
        if is_true {
            return Ok(());
        }
        Err(format!("epoch {epoch} is called {verdict}, and is silent for {silence:?}, still for {still:?}: {truth:?}"))
    }

    /// It may be ended by its policy only where that is truly due, whatever the agent was told.
    pub(crate) fn may_end(&self, job: usize, epoch: u64, reason: StopReason, truth: Measure, now: Duration) -> Claim {
        let of = &self.jobs[job];
        let settings = &of.settings;
        let is_over = |limit: Limit, passed: Duration| limit.duration().is_some_and(|limit| passed >= limit);
        let started_at = of.attempts.get(&epoch).map_or(now, |truth| truth.started_at);
        let age = now.saturating_sub(started_at) + self.slept_blur;
        let is_due = match reason {
            StopReason::Stale => truth.silence >= settings.ttl.0,
            StopReason::Hung => {
                let repeats = matches!(settings.looping_after, CountLimit::At(limit) if truth.repeated >= limit);
                truth.broken || repeats || is_over(settings.hung_after, truth.still)
            }
            StopReason::Limit => {
                is_over(settings.run_for, age) || is_over(settings.resume.wall_time_max, of.ran(epoch) + age)
            }
            StopReason::Commanded | StopReason::Superseded => true,
        };
        if is_due { Ok(()) } else { Err(format!("it is ended because {reason:?}, and it is so: {truth:?}")) }
    }

    /// Whoever has been silent or has stood still for too long is not called alive by an agent that hears and has judged it
    /// without a pause since then; and does not run on where its policy ends it.
    pub(crate) fn must_be_seen(&self, job: usize, seen: &Seen, now: Duration) -> Claim {
        let (Some(verdict), epoch, since) = (seen.verdict, seen.epoch, seen.phase_since) else { return Ok(()) };
        let of = &self.jobs[job];
        let tells = |word: &Word| word.is_known && word.epoch == epoch && word.sequence > 0;
        let Some(word) = of.word.filter(tells) else { return Ok(()) };
        let is_calm = matches!(verdict, Verdict::Alive | Verdict::Late | Verdict::Waiting);
        let on = |what| verdict != Verdict::Unknown && of.settings.resume.on.contains(&what);
        // Where many fall silent together, the agent doubts itself first, and all have their time once more.
        let times = if self.jobs.len() >= MANY { 2 } else { 1 };
        let sure = now.saturating_sub(word.arrived_at.max(self.hears_since).max(since));
        let is_silent = sure > of.settings.ttl.0 * times + SLACK && of.settings.beats != Beats::Presence;
        if is_silent && (is_calm || on(ResumeOn::Stale)) {
            return Err(format!("it runs on and is called {verdict} after a silence of more than {sure:?}"));
        }
        let still_since = word.arrived_at.saturating_sub(word.measure.still);
        let still = now.saturating_sub(still_since.max(self.hears_since).max(since));
        match of.settings.hung_after.duration() {
            Some(limit) if still > limit * times + SLACK && (is_calm || on(ResumeOn::Hung)) => {
                Err(format!("it runs on and is called {verdict}, and stands still for more than {still:?}"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn is_reached(limit: CountLimit, count: u64) -> bool {
    matches!(limit, CountLimit::At(limit) if count >= limit)
}
