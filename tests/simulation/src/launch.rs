//! How an attempt is launched, by the agent or by a person: lock, epoch, folder, supervisor, its word.

use std::time::Duration;

use latido_driver::{AttemptName, Fact};
use latido_policy::LaunchFailure;
use latido_protocol::files::{Start, Want, Wanted};
use latido_protocol::{FORMAT_VERSION, Outcome};

use crate::attempt::{Attempt, SupervisorDeed};
use crate::disk::Files;
use crate::host::{Process, Role};
use crate::look::Existence;
use crate::task::{Settled, TURN, Task};
use crate::world::{Event, World};

/// How long a supervisor's word is waited for.
const LAUNCH_WITHIN: Duration = Duration::from_secs(10);

/// One launch on its way.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    job: usize,
    /// the attempt that was decided on, and is answered about
    ordered: Option<AttemptName>,
    by_hand: bool,
    /// an agent carries out what a person asked for
    resumed_by_hand: bool,
    because: String,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Settle,
    Prepare,
    Spawn { number: u32, epoch: u64 },
    Wait { number: u32, attempt: usize, since: Duration },
    Refused { number: u32, tries: u32 },
}

impl Launch {
    pub(crate) fn ordered(job: usize, attempt: AttemptName, because: String, resumed_by_hand: bool) -> Self {
        Self { job, ordered: Some(attempt), by_hand: false, resumed_by_hand, because, stage: Stage::Settle }
    }

    pub(crate) fn by_hand(job: usize, attempt: AttemptName) -> Self {
        let because = "resumed by hand".to_owned();
        Self { job, ordered: Some(attempt), by_hand: true, resumed_by_hand: false, because, stage: Stage::Settle }
    }

    fn at(self, stage: Stage) -> Task {
        Task::Launch(Self { stage, ..self })
    }
}

impl World {
    pub(crate) fn launch(&mut self, owner: Process, launch: Launch) {
        match launch.stage {
            Stage::Settle => self.settle_previous(owner, launch),
            Stage::Prepare => self.prepare(owner, launch),
            Stage::Spawn { number, epoch } => self.spawn(owner, launch, number, epoch),
            Stage::Wait { number, attempt, since } => self.await_word(owner, launch, number, attempt, since),
            Stage::Refused { number, tries } => self.record_refusal(owner, launch, number, tries),
        }
    }

    /// Who does not get the lock writes nothing; who has it brings the attempt before to its end.
    fn settle_previous(&mut self, owner: Process, launch: Launch) {
        let job = launch.job;
        if !self.disk.folders.contains_key(&job) {
            return self.refuse(owner, &launch, LaunchFailure::Unreadable);
        }
        if self.lock_is_held(job) {
            return self.refuse(owner, &launch, LaunchFailure::Locked);
        }
        let latest = self.disk.folders.get(&job).map_or(0, |folder| folder.latest());
        if latest > 0 {
            let left = self.files(job, latest).map(|files| files.attempt);
            if left.is_some_and(|left| self.attempts[left].work.is_some()) {
                return self.refuse(owner, &launch, LaunchFailure::Locked);
            }
            match self.settle(owner, job, latest, None) {
                Settled::Ended => {}
                Settled::Refused(_) => return self.refuse(owner, &launch, LaunchFailure::Failed),
                Settled::Died => return,
            }
        }
        self.disk.folders.entry(job).and_modify(|folder| _ = folder.lock.insert(owner));
        self.soon(owner, launch.at(Stage::Prepare));
    }

    /// Number and epoch, each on the disk before the next.
    fn prepare(&mut self, owner: Process, launch: Launch) {
        let job = launch.job;
        let Some(folder) = self.disk.folders.get(&job) else {
            return self.refuse(owner, &launch, LaunchFailure::Unreadable);
        };
        let is_paused =
            folder.wanted.want == Want::Pause && folder.wanted.until.is_none_or(|until| until > self.host.wall());
        if !launch.by_hand && (folder.wanted.want == Want::Stop || is_paused) {
            return self.refuse(owner, &launch, LaunchFailure::NotWanted);
        }
        let next = (folder.latest() + 1, folder.epoch() + 1);
        let (number, epoch) = launch.ordered.as_ref().map_or(next, |ordered| (ordered.number, ordered.epoch));
        if number != next.0 || epoch < next.1 {
            return self.refuse(owner, &launch, LaunchFailure::Superseded);
        }
        if self.disk_is_full() {
            return self.refuse(owner, &launch, LaunchFailure::Failed);
        }
        // A resume stays wanted until the attempt that it asks for has its folder.
        let want = if folder.wanted.want == Want::Resume { Want::Resume } else { Want::Run };
        let wanted = Wanted {
            version: FORMAT_VERSION,
            want,
            epoch,
            at: self.host.wall(),
            until: None,
            by: "a launch".to_owned(),
            budget: None,
        };
        let alive = self.record(owner, "makes an epoch durable", |world| {
            world.disk.folders.entry(job).and_modify(|folder| folder.wanted = wanted);
            let claim = world.reference.jobs[job].give(epoch);
            world.expect("epochs never fall and are given once", job, claim);
        });
        if alive {
            self.soon(owner, launch.at(Stage::Spawn { number, epoch }));
        }
    }

    fn spawn(&mut self, owner: Process, launch: Launch, number: u32, epoch: u64) {
        let job = launch.job;
        let Some(starter) = self.host.running(owner).map(|running| running.identity.clone()) else { return };
        if self.disk_is_full() || !self.disk.folders.contains_key(&job) {
            return self.refuse(owner, &launch, LaunchFailure::Failed);
        }
        let is_asked_for = self.disk.folders.get(&job).is_some_and(|folder| folder.wanted.want == Want::Resume);
        let start = Start {
            version: FORMAT_VERSION,
            job: self.name(job).clone(),
            attempt: number,
            epoch,
            host: "here".to_owned(),
            launched_at: self.host.wall(),
            starter,
            because: launch.because.clone(),
            by_hand: launch.by_hand || launch.resumed_by_hand || is_asked_for,
            command: vec!["work".to_owned()],
            directory: "/".into(),
            checkpoint: String::new(),
            sockets: "/run/x".into(),
            supervisor: None,
            process: None,
            started_at: None,
            cgroup: None,
            notes: vec![],
        };
        let attempt = self.attempts.len();
        self.attempts.push(Attempt::new(job, number, epoch));
        let alive = self.record(owner, "makes the attempt's folder", |world| {
            let files = Files { attempt, start, status: None, end: None };
            world.disk.folders.entry(job).and_modify(|folder| _ = folder.attempts.insert(number, files));
        });
        if !alive {
            return;
        }
        if is_asked_for {
            let alive = self.record(owner, "takes the resume back", |world| {
                world.disk.folders.entry(job).and_modify(|folder| folder.wanted.want = Want::Run);
            });
            if !alive {
                return;
            }
        }
        let supervisor = self.host.start(Role::Supervisor { attempt });
        self.attempts[attempt].supervisor = Some(supervisor);
        self.reference.jobs[job].attempt(epoch).supervisor_lives = true;
        self.disk.folders.entry(job).and_modify(|folder| {
            folder.lock.remove(&owner);
            folder.lock.insert(supervisor);
        });
        let delay = self.chance.delay.between(Duration::from_millis(1), Duration::from_millis(30));
        self.after(delay, Event::Supervisor { attempt, deed: SupervisorDeed::RecordItself });
        self.later(owner, TURN, launch.at(Stage::Wait { number, attempt, since: self.now() }));
    }

    fn await_word(&mut self, owner: Process, launch: Launch, number: u32, attempt: usize, since: Duration) {
        let job = launch.job;
        if self.attempts[attempt].reported {
            let start = self.files(job, number).map(|files| Box::new(files.start.clone()));
            let epoch = self.attempts[attempt].epoch;
            if let Some(start) = start.filter(|_| self.is_agent(owner)) {
                self.watch(owner, job, number, epoch);
                self.send(owner, Fact::AttemptStarted { start });
            }
            return self.finish_command(owner, job);
        }
        if self.attempts[attempt].supervisor.is_none() {
            return self.soon(owner, launch.at(Stage::Refused { number, tries: 0 }));
        }
        if self.now() > since + LAUNCH_WITHIN {
            return self.refuse(owner, &launch, LaunchFailure::Failed);
        }
        self.later(owner, TURN, launch.at(Stage::Wait { number, attempt, since }));
    }

    /// The supervisor never reported: its attempt gets an ending of its own, where that is possible.
    fn record_refusal(&mut self, owner: Process, launch: Launch, number: u32, tries: u32) {
        const TRIES: u32 = 10;
        let job = launch.job;
        let is_free = !self.lock_is_held(job) && self.existence(job, number) != Existence::Ended;
        if is_free {
            let outcome = Outcome::launch_failed("the supervisor failed");
            if self.settle(owner, job, number, Some(outcome)) == Settled::Died {
                return;
            }
        } else if tries < TRIES && self.existence(job, number) != Existence::Ended {
            return self.later(owner, TURN, launch.at(Stage::Refused { number, tries: tries + 1 }));
        }
        let start = self.files(job, number).map(|files| Box::new(files.start.clone()));
        let end = self.files(job, number).and_then(|files| files.end.clone()).map(Box::new);
        if let (true, Some(end)) = (self.is_agent(owner), end) {
            return self.send(owner, Fact::AttemptEnded { start, end });
        }
        self.refuse(owner, &launch, LaunchFailure::Failed);
    }

    /// The launch did not take place: the lock is given back, and the agent is told.
    fn refuse(&mut self, owner: Process, launch: &Launch, failure: LaunchFailure) {
        if let Some(folder) = self.disk.folders.get_mut(&launch.job) {
            folder.lock.remove(&owner);
        }
        self.note(|world| format!("launch of {} is refused: {failure:?}", world.name(launch.job)));
        if let (true, Some(attempt)) = (self.is_agent(owner), launch.ordered.clone()) {
            self.send(owner, Fact::LaunchRefused { attempt, failure, detail: format!("{failure:?}") });
            // What stands in the way is looked at.
            self.soon(owner, Task::Look { job: launch.job });
        }
        self.finish_command(owner, launch.job);
    }

    fn is_agent(&self, owner: Process) -> bool {
        self.host.running(owner).is_some_and(|running| running.role == Role::Agent)
    }
}
