//! The newest beats of workers, as the store keeps them: those that wait, and in a round everybody's.

use std::time::Duration;

use latido_policy::{Moment, Registry, WorkerId};
use latido_store::{Beat, BeatBatch, BeatsKept};

use super::{Registrar, WRITE_EVERY};

/// How long a round takes where there is nothing else to bound it: it costs a million workers that beat every 30 s half as
/// much again.
const ROUND_FOR: Duration = Duration::from_secs(60);

/// Workers of a round that a batch has room for at least, so that a few are through at once.
const ROUND_STEP_MIN: u32 = 1024;

/// Beats that are given together at most, and as many again of a round. Nobody is judged meanwhile: to put so many together
/// and on the disk takes a few milliseconds, and when they are there they do not wait for the second to be over.
const BEATS_MAX: u32 = 4096;

impl Registrar {
    /// The beats that are due to be kept, if any are.
    pub(crate) fn beats(&self, registry: &Registry) -> Option<BeatBatch<'_>> {
        if !self.beats_are_due {
            return None;
        }
        let (first, end) = (self.round.map_or(0, |first| first.0), self.round_end());
        let waiting = self.notes.waiting().take(BEATS_MAX as usize).filter(|worker| !(first..end).contains(&worker.0));
        let workers = waiting.chain((first..end).map(WorkerId));
        let beats = workers.filter_map(|worker| self.kept_beat(worker, registry)).collect();
        Some(BeatBatch { beats, ends_round: self.round.is_some() && end >= self.workers.numbers_end() })
    }

    /// Takes note that those beats are kept.
    pub(crate) fn beats_were_kept(&mut self, kept: BeatsKept) {
        let end = self.round_end();
        self.round = self.round.filter(|_| end < self.workers.numbers_end()).map(|_| WorkerId(end));
        if self.round.is_none() && kept.wants_round {
            self.round = Some(WorkerId(0));
        }
        self.notes.kept(BEATS_MAX as usize);
        self.beats_are_due = false;
    }

    /// Whether beats wait for the disk.
    pub(super) fn beats_wait(&self) -> bool {
        self.notes.waiting().len() > 0 || self.round.is_some()
    }

    /// Whether enough wait for a batch of their own.
    pub(super) fn beats_are_many(&self) -> bool {
        self.notes.waiting().len() >= BEATS_MAX as usize
    }

    /// Lets beats be given that have waited for long enough, or are many.
    pub(super) fn note_due_beats(&mut self, now: Moment) {
        let waited = self.beats_given_at.map_or(WRITE_EVERY, |given| now.since(given));
        if self.beats_are_due || !self.beats_wait() || waited < WRITE_EVERY && !self.beats_are_many() {
            return;
        }
        (self.beats_are_due, self.beats_given_at) = (true, Some(now));
        let all = u128::from(self.workers.numbers_end());
        let share = all * waited.min(ROUND_FOR).as_millis() / ROUND_FOR.as_millis();
        self.round_step = u32::try_from(share).unwrap_or(u32::MAX).clamp(ROUND_STEP_MIN, BEATS_MAX);
    }

    /// Where the round's next batch ends; without a round nobody is in it.
    fn round_end(&self) -> u32 {
        let Some(first) = self.round else { return 0 };
        let all = self.workers.numbers_end();
        first.0.saturating_add(self.round_step).min(all)
    }

    /// The newest beat of a worker that lives; before the first its row says all, and of a dead one too.
    fn kept_beat(&self, worker: WorkerId, registry: &Registry) -> Option<Beat<'_>> {
        let (view, note) = (registry.worker(worker)?, self.notes.of(worker)?);
        let heard_at = view.heard_at.filter(|_| !view.standing.is_dead())?;
        Some(Beat {
            name: self.workers.name(worker.0)?.as_str(),
            epoch: view.epoch.0,
            at_ms: note.beat_at.map(|at| at.as_millis()),
            heard_ms: self.line.millis(heard_at),
            sequence: view.sequence,
            state: note.state.as_deref(),
            active_job: note.active_job.as_deref(),
            errors: view.errors.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use latido_protocol::WallTime;
    use latido_protocol::registry::{Question, Registration, WorkerBeat};

    use super::*;
    use crate::registry::Carried;

    /// A registry of so many workers that have beaten once, with those beats kept.
    fn beaten(count: u32) -> (Registry, Registrar) {
        let now = Moment::ORIGIN;
        let (mut registry, mut registrar) = (Registry::default(), Registrar::new(now));
        let worker = |number: u32| format!("w{number}").parse().unwrap();
        let registrations = (0..count).map(|number| {
            Question::Register(Registration {
                worker: worker(number),
                group: "executor".parse().unwrap(),
                instance: None,
                interval_s: None,
                ttl_s: None,
                missed: None,
                start_within_s: None,
                host: None,
                pid: None,
            })
        });
        let beats = (0..count).map(|number| {
            let (epoch, sequence, state, active_job) = (None, None, None, None);
            Question::Beat(WorkerBeat { worker: worker(number), epoch, sequence, state, active_job, errors: 0 })
        });
        for (ticket, question) in (0..).zip(registrations.chain(beats)) {
            for event in registrar.ask(ticket, question, WallTime::from_millis(7)).unwrap() {
                registry.handle_event(event, now);
            }
            let mut carried = Carried::default();
            while let Some(action) = registry.poll_action() {
                registrar.carry(action, &registry, &mut carried);
            }
            registrar.settle(&registry);
        }
        registrar.flush(&registry, now);
        (registry, registrar)
    }

    #[test]
    fn beats_that_were_not_kept_are_given_again() {
        let (registry, mut registrar) = beaten(3);
        let names = |registrar: &Registrar| -> Option<Vec<String>> {
            let batch = registrar.beats(&registry)?;
            Some(batch.beats.iter().map(|beat| beat.name.to_owned()).collect())
        };
        let all = names(&registrar);
        assert_eq!(all, Some(["w0", "w1", "w2"].map(str::to_owned).to_vec()));
        assert_eq!(names(&registrar), all);
        registrar.beats_were_kept(BeatsKept::default());
        assert_eq!(names(&registrar), None);
    }

    #[test]
    fn a_round_gives_everybodys_beat_once_and_says_when_it_is_over() {
        let (registry, mut registrar) = beaten(3_000);
        registrar.beats_were_kept(BeatsKept { wants_round: true });
        let (mut given, mut batches) = (BTreeMap::<String, u32>::new(), Vec::new());
        for second in 1..=5 {
            registrar.flush(&registry, Moment::ORIGIN.after(WRITE_EVERY * second));
            let Some(batch) = registrar.beats(&registry) else { break };
            batch.beats.iter().for_each(|beat| *given.entry(beat.name.to_owned()).or_default() += 1);
            batches.push((batch.beats.len(), batch.ends_round));
            let is_over = batch.ends_round;
            registrar.beats_were_kept(BeatsKept { wants_round: !is_over });
        }
        assert_eq!(batches, [(1024, false), (1024, false), (952, true)]);
        assert!(given.len() == 3_000 && given.values().all(|count| *count == 1));
    }

    #[test]
    fn beats_that_are_many_do_not_wait_and_go_some_at_a_time() {
        let (registry, mut registrar) = beaten(10_000);
        let mut given = Vec::new();
        for millis in [0, 1, 2, 3, 999, 1001] {
            registrar.flush(&registry, Moment::ORIGIN.after(Duration::from_millis(millis)));
            let count = registrar.beats(&registry).map(|batch| batch.beats.len());
            if count.is_some() {
                registrar.beats_were_kept(BeatsKept::default());
            }
            given.push(count);
        }
        assert_eq!(given, [Some(4096), Some(4096), None, None, None, Some(1808)]);
    }
}
