//! What has to hold after every pass of the driver, and what once the faults have stopped.

use std::time::Duration;

use latido_driver::{AttemptName, Fact, Order, Output};
use latido_protocol::attempt::StopReason;
use latido_protocol::files::{ResumeOn, Want};
use latido_protocol::status::{Phase, SubjectStatus, Verdict};
use latido_protocol::{Limit, SubjectName, WallTime};
use latido_store::Store;

use crate::journal::Journal;
use crate::world::World;

/// Phases that pass may last this long in calm: a grace, a kill, a scan, and a slow machine.
const PASSING: Duration = Duration::from_secs(60);

/// A job in backoff may wait this long: the longest that a strategy asks for, and the longest delay between launches.
const WAITING: Duration = Duration::from_secs(400);

/// Why a job may wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Excuse {
    StrategyHeld,
    StrategyGaveUp,
    Survivors,
    OrphanLeft,
}

/// What was last seen of a subject.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) verdict: Option<Verdict>,
    pub(crate) phase: Option<Phase>,
    pub(crate) phase_since: Duration,
    /// when its last pause ended, as far as this agent knows
    unpaused_at: Duration,
    pub(crate) epoch: u64,
    /// it is over or given up, and nobody asked for more
    pub(crate) is_over: bool,
    /// what the last word of a person was, and when
    pub(crate) wanted: Option<(Want, WallTime)>,
    launched: u64,
    pub(crate) journal: Journal,
}

impl World {
    pub(crate) fn job_of(&self, name: &str) -> Option<usize> {
        // Who is named by a number is looked for there.
        let number = name.rsplit('-').next().and_then(|number| number.parse::<usize>().ok())?;
        self.specs.get(number).filter(|spec| spec.name.as_str() == name).map(|_| number)
    }

    /// What has to hold after a pass of the newest agent.
    pub(crate) fn check_step(&mut self, index: usize, output: &Output) {
        let unexpected = self.agents[index].driver.unexpected_count();
        if unexpected > 0 {
            self.fail("nothing is unexpected", format_args!("{unexpected} events contradict what was told before"));
        }
        if !output.changed.is_empty() {
            for status in self.agents[index].driver.subjects(&output.changed) {
                self.check_subject(&status);
            }
        }
        for order in &output.orders {
            self.check_order(order);
        }
        if output.last_sequence > self.checked_sequence {
            self.check_journal();
        }
        if !self.is_steady() {
            self.check_silence();
        }
    }

    /// Looks at every subject, also at those of which nothing changed since the store was last written.
    pub(crate) fn see_all(&mut self) {
        let agent = self.agents.iter().find(|agent| Some(agent.process) == self.disk.agent_lock);
        for status in agent.map(|agent| agent.driver.subjects(&[])).unwrap_or_default() {
            self.check_subject(&status);
        }
    }

    fn check_subject(&mut self, status: &SubjectStatus) {
        let (Some(job), now) = (self.job_of(status.name.as_str()), self.now()) else { return };
        self.note(|_| {
            let next = status.next.as_ref().map(|next| format!("; next: {}", next.what)).unwrap_or_default();
            format!("{} is {} and {}: {}{next}", status.name, status.verdict, status.phase, status.reason)
        });
        let seen = &mut self.seen[job];
        if seen.phase != Some(status.phase) || seen.epoch != status.epoch {
            seen.phase_since = now;
        }
        if (seen.phase, status.phase) == (Some(Phase::Paused), Phase::Running) {
            seen.unpaused_at = now;
        }
        let is_fresh = seen.verdict.is_some_and(|before| before != status.verdict) && status.phase == Phase::Running;
        let uncounted_until = seen.unpaused_at.max(self.doubted_at);
        (seen.verdict, seen.phase, seen.epoch) = (Some(status.verdict), Some(status.phase), status.epoch);
        seen.is_over |= matches!(status.phase, Phase::Ended | Phase::Stuck);
        if status.phase == Phase::Running {
            let truth = self.reference.jobs[job].attempts.get_mut(&status.epoch);
            truth.into_iter().for_each(|truth| truth.is_given_up = false);
        }
        if self.disk.folders.contains_key(&job) && self.reference.jobs[job].attempts.contains_key(&status.epoch) {
            let claim = self.reference.may_be(job, status.epoch, status.verdict, status.phase, now);
            self.expect("nothing is called what it is not", job, claim);
            let counts = now.saturating_sub(uncounted_until) >= self.specs[job].settings.ttl.0;
            if is_fresh && status.verdict == Verdict::Stale && !counts && uncounted_until > Duration::ZERO {
                self.fail("a pause and a store that is away count for nobody", &status.reason);
            }
            let lost = self.reference.jobs[job].lost_count();
            let claim = if status.pickups > lost {
                Err(format!("{} pickups, and {lost} were lost", status.pickups))
            } else {
                Ok(())
            };
            self.expect("pickups count what was lost", job, claim);
        }
    }

    /// Whoever is silent is seen to be.
    fn check_silence(&mut self) {
        let now = self.now();
        for job in 0..self.specs.len() {
            let seen = &self.seen[job];
            if seen.phase == Some(Phase::Running) {
                let claim = self.reference.must_be_seen(job, seen, now);
                self.expect("silence is seen", job, claim);
            }
        }
    }

    fn check_order(&mut self, order: &Order) {
        let (attempt, check) = match order {
            Order::Launch { attempt, .. } => (attempt, "nothing is launched that may not be"),
            Order::AskStrategy { attempt, .. } => (attempt, "a strategy is asked about what has ended"),
            Order::EndAttempt { attempt, .. } => (attempt, "nothing is ended without a reason"),
            Order::EndOrphan { attempt, .. } => (attempt, "an orphan has no supervisor"),
            Order::RecordLost { attempt, .. } => (attempt, "what is recorded as lost is dead"),
            Order::CheckGroupLock { .. } => return,
        };
        let Some(job) = self.job_of(attempt.job.as_str()) else { return };
        if !self.disk.folders.contains_key(&job) {
            return;
        }
        let claim = match order {
            Order::Launch { attempt, by_hand, .. } => self.launch_claim(job, attempt, *by_hand),
            Order::AskStrategy { attempt, .. } => {
                let truth = self.reference.jobs[job].attempt(attempt.epoch);
                if truth.end.is_some() { Ok(()) } else { Err("its attempt has no ending".to_owned()) }
            }
            Order::EndAttempt { attempt, reason, .. } => {
                // An order that waited for the store may come when what it was about is over.
                let stands = self.seen[job].phase == Some(Phase::Draining);
                let truth = self.reference.jobs[job].attempt(attempt.epoch);
                truth.is_given_up |= stands && matches!(reason, StopReason::Stale | StopReason::Hung);
                self.end_claim(job, attempt, *reason)
            }
            Order::EndOrphan { attempt, .. } => {
                let lives = self.reference.jobs[job].attempt(attempt.epoch).supervisor_lives;
                if lives { Err("its supervisor lives".to_owned()) } else { Ok(()) }
            }
            Order::RecordLost { attempt, .. } => {
                let truth = self.reference.jobs[job].attempt(attempt.epoch);
                let lives = truth.supervisor_lives || truth.work_lives;
                if lives { Err("something of it lives".to_owned()) } else { Ok(()) }
            }
            Order::CheckGroupLock { .. } => Ok(()),
        };
        self.expect(check, job, claim);
    }

    fn launch_claim(&mut self, job: usize, attempt: &AttemptName, by_hand: bool) -> Result<(), String> {
        self.reference.jobs[job].may_launch(by_hand, attempt.epoch, self.host.now)?;
        let seen = &mut self.seen[job];
        if seen.is_over {
            return Err("it is over, and nobody asked for more".to_owned());
        }
        if attempt.epoch <= seen.launched {
            return Err(format!("epoch {} is ordered after {}", attempt.epoch, seen.launched));
        }
        seen.launched = attempt.epoch;
        if self.slot_is_taken(job) {
            return Err("its slot is taken".to_owned());
        }
        let rows = self.store.with(|kept| kept.memory.subjects()).unwrap_or_default();
        let is_durable = rows.iter().any(|row| row.name == attempt.job.as_str() && row.epoch >= attempt.epoch);
        if is_durable { Ok(()) } else { Err("its intent is not in the store".to_owned()) }
    }

    /// The jobs that count against a slot of this one.
    fn sharing(&self, job: usize) -> impl Iterator<Item = usize> {
        let slots = &self.specs[job].settings.slots;
        let shares = move |other: &usize| {
            *other != job && self.specs[*other].settings.slots.iter().any(|slot| slots.contains(slot))
        };
        (0..self.specs.len()).filter(shares)
    }

    /// Whether something that held a slot of this one ended a moment ago, which nobody may have seen yet.
    fn slot_was_taken(&self, job: usize) -> bool {
        let lately = self.now().saturating_sub(PASSING);
        self.sharing(job).any(|other| self.reference.jobs[other].attempts.values().any(|truth| truth.gone_at > lately))
    }

    /// A slot holds one attempt: what lives, as far as the agent knows of it, or is on its way.
    fn slot_is_taken(&self, job: usize) -> bool {
        self.sharing(job).any(|other| {
            let is_launched = matches!(self.seen[other].phase, Some(Phase::Launching | Phase::Draining));
            is_launched || self.reference.jobs[other].is_known_to_live(self.now())
        })
    }

    fn end_claim(&self, job: usize, attempt: &AttemptName, reason: StopReason) -> Result<(), String> {
        let of = &self.reference.jobs[job];
        let on = |what| of.settings.resume.on.contains(&what);
        let is_asked_for = match reason {
            StopReason::Commanded => of.told == Some(Want::Stop),
            StopReason::Stale => on(ResumeOn::Stale),
            StopReason::Hung => on(ResumeOn::Hung),
            StopReason::Limit => {
                [of.settings.run_for, of.settings.resume.wall_time_max].iter().any(|limit| *limit != Limit::None)
            }
            StopReason::Superseded => of.attempts.range(attempt.epoch + 1..).next().is_some(),
        };
        if is_asked_for { Ok(()) } else { Err(format!("it is ended because {reason:?}, and nobody asked for that")) }
    }

    /// Rules find what verdicts say.
    pub(crate) fn ask_rule(&mut self, owner: crate::host::Process, subjects: Vec<SubjectName>) {
        use latido_driver::Finding;
        let Some(agent) = self.agent_mut(owner) else { return };
        let findings = agent.driver.subjects(&subjects).into_iter().filter_map(|status| {
            let is_bad =
                matches!(status.verdict, Verdict::Stale | Verdict::Missing | Verdict::Hung | Verdict::Orphaned);
            is_bad.then(|| Finding {
                key: status.verdict.to_string(),
                subject: status.name.to_string(),
                severity: latido_protocol::journal::Severity::Warning,
                summary: status.reason,
            })
        });
        let findings = findings.collect();
        self.send(owner, Fact::RuleAnswered { rule: "liveness".to_owned(), subjects, findings });
    }

    /// What has to hold when the faults have stopped for long enough.
    pub(crate) fn check_rest(&mut self) {
        self.see_all();
        for job in 0..self.specs.len() {
            if self.disk.folders.contains_key(&job) {
                let claim = self.rest_claim(job);
                self.expect("what is over is over, and what is not goes on", job, claim);
                let claim = self.record_claim(job);
                self.expect("what ended is recorded once everywhere", job, claim);
            }
        }
    }

    fn rest_claim(&self, job: usize) -> Result<(), String> {
        let (seen, of) = (&self.seen[job], &self.reference.jobs[job]);
        let (Some(phase), Some(verdict)) = (seen.phase, seen.verdict) else {
            return Err("the agent knows nothing of it".to_owned());
        };
        let lasted = self.now().saturating_sub(seen.phase_since);
        let wanted = self.disk.folders.get(&job).map(|folder| folder.wanted.want);
        let lives = of.attempts.values().any(|truth| truth.work_lives);
        if wanted == Some(Want::Stop) && lives && lasted > PASSING {
            return Err(format!("a stop does not end: it is {phase} and lives"));
        }
        match phase {
            Phase::Queued if lasted > PASSING && !self.slot_is_taken(job) && !self.slot_was_taken(job) => {
                Err(format!("it has been {phase} for {lasted:?}, and its slot is free"))
            }
            Phase::Pending | Phase::Launching | Phase::Draining if lasted > PASSING => {
                Err(format!("it has been {phase} for {lasted:?}"))
            }
            Phase::BackingOff if lasted > WAITING => Err(format!("it has been {phase} for {lasted:?}")),
            Phase::Pending | Phase::Queued | Phase::Launching | Phase::Draining | Phase::BackingOff => Ok(()),
            Phase::Running => {
                let truth = of.attempts.get(&seen.epoch);
                match truth {
                    Some(truth) if truth.supervisor_lives && verdict == Verdict::Unknown => {
                        Err("nobody looks at it again".to_owned())
                    }
                    Some(truth) if truth.supervisor_lives || lasted < PASSING => Ok(()),
                    Some(truth) if truth.gone_at + PASSING > self.now() => Ok(()),
                    Some(_) | None => Err(format!("it reads {phase} and {verdict}, and nobody runs it")),
                }
            }
            Phase::Paused if wanted == Some(Want::Pause) => Ok(()),
            Phase::Paused => Err("it is paused, and no pause is wanted".to_owned()),
            Phase::Held | Phase::Stuck | Phase::Ended if lasted < PASSING => Ok(()),
            Phase::Held | Phase::Stuck | Phase::Ended => of.explains_rest(&phase.to_string()),
        }
    }

    /// Endings, lines and entries belong together.
    fn record_claim(&self, job: usize) -> Result<(), String> {
        let (seen, of) = (&self.seen[job], &self.reference.jobs[job]);
        let Some(folder) = self.disk.folders.get(&job) else { return Ok(()) };
        for files in folder.attempts.values() {
            let epoch = files.start.epoch;
            let is_fresh = of.attempts.get(&epoch).is_none_or(|truth| truth.gone_at + PASSING > self.now());
            if files.end.is_none() || is_fresh {
                continue;
            }
            if of.attempts.get(&epoch).is_some_and(|truth| truth.lines != 1) {
                return Err(format!("epoch {epoch} has ended and has no line in the ledger"));
            }
            if !seen.journal.ended.contains(&epoch) && !self.had_two_agents {
                return Err(format!("epoch {epoch} has ended and has no entry in the journal"));
            }
        }
        if self.had_two_agents {
            return Ok(());
        }
        match (seen.journal.verdict, seen.journal.phase) {
            (verdict, _) if verdict.is_some() && verdict != seen.verdict => {
                Err(format!("the journal says {verdict:?}, the agent {:?}", seen.verdict))
            }
            (_, phase) if phase.is_some() && phase != seen.phase => {
                Err(format!("the journal says {phase:?}, the agent {:?}", seen.phase))
            }
            _ => Ok(()),
        }
    }
}

impl Seen {
    /// Nobody has looked at it since the agent started.
    pub(crate) fn unsee(&mut self) {
        (self.verdict, self.phase, self.unpaused_at) = (None, None, Duration::ZERO);
    }

    /// Its job is removed: what is made under its name is another.
    pub(crate) fn forget(&mut self) {
        *self = Self { wanted: self.wanted, launched: self.launched, ..Self::default() };
    }
}
