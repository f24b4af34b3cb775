//! The newest beats of workers, as the store keeps them: those that wait, and in a round everybody's.

use latido_policy::{Registry, WorkerId};
use latido_store::{Beat, BeatBatch, BeatsKept};

use super::Registrar;

/// Batches in which a round is given, at most: with one a second it takes a minute, and costs a million workers that beat
/// every 30 s half as much again.
const ROUND_BATCHES: u32 = 60;

/// Workers of one such batch at least, so that a few are through at once.
const ROUND_STEP_MIN: u32 = 1024;

impl Registrar {
    /// The beats that are due to be kept, if any are.
    pub(crate) fn beats(&self, registry: &Registry) -> Option<BeatBatch<'_>> {
        if !self.beats_are_due {
            return None;
        }
        let (first, end) = (self.round.map_or(0, |first| first.0), self.round_end());
        let in_turn = (first..end).map(WorkerId).filter(|worker| !self.dirty.contains(worker));
        let workers = self.dirty.iter().copied().chain(in_turn);
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
        self.dirty.clear();
        self.beats_are_due = false;
    }

    /// Where the round's next batch ends; without a round nobody is in it.
    fn round_end(&self) -> u32 {
        let Some(first) = self.round else { return 0 };
        let all = self.workers.numbers_end();
        first.0.saturating_add(all.div_ceil(ROUND_BATCHES).max(ROUND_STEP_MIN)).min(all)
    }

    /// The newest beat of a worker that lives; before the first its row says all, and of a dead one too.
    fn kept_beat(&self, worker: WorkerId, registry: &Registry) -> Option<Beat<'_>> {
        let (view, note) = (registry.worker(worker)?, self.notes.get(&worker)?);
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

    use latido_policy::Moment;
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
            registrar.flush(&registry, Moment::ORIGIN.after(crate::registry::WRITE_EVERY * second));
            let Some(batch) = registrar.beats(&registry) else { break };
            batch.beats.iter().for_each(|beat| *given.entry(beat.name.to_owned()).or_default() += 1);
            batches.push((batch.beats.len(), batch.ends_round));
            let is_over = batch.ends_round;
            registrar.beats_were_kept(BeatsKept { wants_round: !is_over });
        }
        assert_eq!(batches, [(1024, false), (1024, false), (952, true)]);
        assert!(given.len() == 3_000 && given.values().all(|count| *count == 1));
    }
}
