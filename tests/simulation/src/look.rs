//! What the files and processes of a job say to who looks at them.

use latido_driver::{FoundAttempt, FoundJob, FoundState};
use latido_policy::Life;
use latido_protocol::Class;
use latido_protocol::files::{Identity, Spent};

use crate::disk::Files;
use crate::world::World;

/// Whether an attempt exists, as far as a look can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existence {
    Launching,
    Running,
    Orphaned,
    Dead,
    Ended,
    Unknown,
}

impl World {
    pub(crate) fn files(&mut self, job: usize, number: u32) -> Option<&mut Files> {
        self.disk.folders.get_mut(&job)?.attempts.get_mut(&number)
    }

    pub(crate) fn disk_is_full(&self) -> bool {
        self.now() < self.weather.disk_full
    }

    /// Who holds a lock that is held lives.
    pub(crate) fn lock_is_held(&self, job: usize) -> bool {
        let folder = self.disk.folders.get(&job);
        folder.is_some_and(|folder| folder.lock.iter().any(|holder| self.host.lives(*holder)))
    }

    pub(crate) fn recorded_supervisor(&self, job: usize, number: u32) -> Option<Identity> {
        self.disk.folders.get(&job)?.attempts.get(&number)?.start.supervisor.clone()
    }

    pub(crate) fn existence(&self, job: usize, number: u32) -> Existence {
        let Some(files) = self.disk.folders.get(&job).and_then(|folder| folder.attempts.get(&number)) else {
            return Existence::Dead;
        };
        if files.end.is_some() {
            return Existence::Ended;
        }
        if self.now() < self.weather.blind {
            return Existence::Unknown;
        }
        let of = &self.attempts[files.attempt];
        let (supervisor_lives, work_lives) = (of.supervisor.is_some(), of.work.is_some());
        match &files.start.supervisor {
            Some(identity) if self.host.find(identity).is_some() && files.start.process.is_none() => {
                Existence::Launching
            }
            Some(identity) if self.host.find(identity).is_some() => Existence::Running,
            Some(_) if work_lives => Existence::Orphaned,
            Some(_) => Existence::Dead,
            None if supervisor_lives || self.lock_is_held(job) && !work_lives => Existence::Launching,
            None if work_lives => Existence::Orphaned,
            None => Existence::Dead,
        }
    }

    /// A look at a job's folder; `None` when it is gone.
    pub(crate) fn look(&self, job: usize) -> Option<FoundJob> {
        let folder = self.disk.folders.get(&job)?;
        let ends = || folder.attempts.values().filter_map(|files| files.end.as_ref());
        let pickups = ends().filter(|end| end.outcome.class == Class::Lost).count();
        let latest = folder.latest();
        let earlier = folder.attempts.range(..latest);
        let attempt = folder.attempts.get(&latest).map(|files| {
            let state = match (self.existence(job, latest), files.end.clone()) {
                (_, Some(end)) => FoundState::Ended(Box::new(end)),
                (Existence::Launching, None) => FoundState::Launching,
                (Existence::Running, None) => FoundState::Running,
                (Existence::Orphaned, None) => FoundState::Unattended(Life::Alive),
                (Existence::Dead, None) => FoundState::Unattended(Life::Gone),
                (Existence::Ended | Existence::Unknown, None) => FoundState::Unattended(Life::Unknown),
            };
            let asked = matches!(state, FoundState::Running).then(|| self.asked_status(files.attempt)).flatten();
            FoundAttempt {
                start: files.start.clone(),
                status: asked.map(|asked| *asked).or_else(|| files.status.clone()),
                state,
            }
        });
        Some(FoundJob {
            job: folder.job.clone(),
            wanted: folder.wanted.clone(),
            epoch: folder.epoch(),
            pickups: u32::try_from(pickups).unwrap_or(u32::MAX),
            earlier: earlier.filter_map(|(_, files)| Some((files.start.clone(), files.end.clone()?))).collect(),
            spent_before: Spent::default(),
            attempt,
        })
    }
}
