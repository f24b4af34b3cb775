//! The jobs' folders: looked at when somebody says that they changed, and now and then without being told.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use latido_driver::{AttemptName, Fact, FoundState};
use latido_policy::Life;
use latido_protocol::SubjectName;
use latido_protocol::files::Start;
use latido_protocol::layout::StateDir;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::activity::Running;
use super::attempt::{self, Watched};
use super::second_look::{SecondLooks, Stamp};
use crate::actions::BY;
use crate::clock;
use crate::driver_thread::{DriverHandle, Ended};
use crate::found::{self, Found};
use crate::jobs::ledger::LedgerKey;

/// Every change is told by the one who made it; this finds those whose maker died before telling.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Jobs share their turns to be looked at by chance; so many looks go on at once.
const TURNS: usize = 32;

/// Between two looks at a launch that somebody else has begun.
const LAUNCH_LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why a job's folder could not be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LookError {
    /// The agent is ending.
    #[error("look at the job: the agent is ending")]
    Ending,
    /// The jobs' folder cannot be read.
    #[error("list the jobs")]
    Unlisted(#[source] std::io::Error),
    /// Its files cannot be read.
    #[error("look at the job {job}: {detail}")]
    Unreadable {
        /// which
        job: SubjectName,
        /// why
        detail: String,
    },
}

impl From<Ended> for LookError {
    fn from(_: Ended) -> Self {
        Self::Ending
    }
}

/// Looks at folders, and keeps one watch for each attempt that runs.
#[derive(Clone)]
pub(crate) struct Jobs {
    inner: Arc<Inner>,
}

/// The watch of an attempt that runs.
struct Watch {
    epoch: u64,
    task: AbortHandle,
    /// whose activity is sampled
    running: Option<Running>,
}

struct Inner {
    state: StateDir,
    driver: DriverHandle,
    watched: Mutex<BTreeMap<SubjectName, Watch>>,
    second_looks: SecondLooks,
    /// one look at a job at a time: what was read first is told first, or an old wish would undo a later one
    turns: [tokio::sync::Mutex<()>; TURNS],
    /// all that was there at the agent's start has been told of
    recovered: watch::Sender<bool>,
}

impl Jobs {
    pub(crate) fn new(state: StateDir, driver: DriverHandle) -> Self {
        Self {
            inner: Arc::new(Inner {
                state,
                driver,
                watched: Mutex::default(),
                second_looks: SecondLooks::default(),
                turns: Default::default(),
                recovered: watch::Sender::new(false),
            }),
        }
    }

    pub(crate) fn state(&self) -> &StateDir {
        &self.inner.state
    }

    pub(crate) fn driver(&self) -> &DriverHandle {
        &self.inner.driver
    }

    /// Looks at one job's folder and returns when what it says has been judged. Until the agent knows what it found at its
    /// start nobody comes in between, who would take the slot of a job that runs or the place of one that waits.
    pub(crate) async fn look_at(&self, job: SubjectName) -> Result<(), LookError> {
        self.recovered().await;
        let state = self.inner.state.clone();
        let name = job.clone();
        let mut hasher = DefaultHasher::new();
        job.hash(&mut hasher);
        let turn = usize::try_from(hasher.finish() % TURNS as u64).unwrap_or_default();
        let _turn = self.inner.turns[turn].lock().await;
        let look = move || (Stamp::of(&state.job(&name)), found::look(&state, &name));
        let (stamp, found) = match tokio::task::spawn_blocking(look).await {
            Ok((stamp, Ok(found))) => (stamp, found),
            Ok((_, Err(detail))) => return Err(LookError::Unreadable { job, detail }),
            Err(_) => return Err(LookError::Ending),
        };
        self.judge(job, stamp, found).await
    }

    /// Waits until all that was there at the agent's start has been told of.
    pub(crate) async fn recovered(&self) {
        // The sender lives in here, so it is never gone before its receivers.
        let mut recovered = self.inner.recovered.subscribe();
        let _known = recovered.wait_for(|recovered| *recovered).await.map(|_| ());
    }

    /// Tells what was found of a job, and returns when it has been judged.
    async fn judge(&self, job: SubjectName, stamp: Stamp, found: Option<Found>) -> Result<(), LookError> {
        let Some(Found { job: mut found, doubt }) = found else {
            self.unwatch(&job);
            self.inner.second_looks.removed(&job);
            self.inner.driver.tell(Fact::JobRemoved { job }).await?;
            return Ok(self.inner.driver.ask(|_| ()).await?);
        };
        let watch = found.attempt.as_ref().and_then(|attempt| match attempt.state {
            FoundState::Running => Some(attempt.start.clone()),
            FoundState::Launching => {
                self.look_again(job.clone());
                None
            }
            FoundState::Unattended(_) | FoundState::Ended(_) => None,
        });
        self.inner.second_looks.found(stamp, &found);
        let doubted = found.attempt.as_ref().map(|attempt| AttemptName::of(&attempt.start)).zip(doubt);
        if let Some((attempt, _)) = &doubted
            && self.is_known(attempt.clone()).await?
        {
            // What is told of it again would say for a moment that it can be heard.
            found.attempt = None;
        }
        self.inner.driver.tell(Fact::JobFound(Box::new(found))).await?;
        if let Some((attempt, detail)) = doubted {
            self.inner.driver.tell(Fact::LookFailed { attempt, detail }).await?;
        }
        if let Some(start) = watch {
            self.watch(start);
        }
        // Judged when the question is answered: facts told before it are applied before it.
        Ok(self.inner.driver.ask(|_| ()).await?)
    }

    /// Whether the driver has been told of this attempt.
    async fn is_known(&self, attempt: AttemptName) -> Result<bool, Ended> {
        let known = move |driver: &mut latido_driver::Driver<_>| {
            let statuses = driver.subjects(std::slice::from_ref(&attempt.job));
            statuses.first().is_some_and(|status| (status.attempt, status.epoch) == (attempt.number, attempt.epoch))
        };
        self.inner.driver.ask(known).await
    }

    /// Looks at every folder and tells of all jobs, in the order in which it is their turn, and answers which of them could
    /// not be read: they are said in the log and left alone. Called once, at the agent's start.
    pub(crate) async fn recover(&self) -> Result<BTreeSet<SubjectName>, LookError> {
        let recovered = self.recover_all().await;
        self.inner.recovered.send_replace(true);
        recovered
    }

    async fn recover_all(&self) -> Result<BTreeSet<SubjectName>, LookError> {
        let state = self.inner.state.clone();
        let looked = tokio::task::spawn_blocking(move || look_at_all(&state)).await;
        let Looked { found, unread } = looked.map_err(|_| LookError::Ending)?.map_err(LookError::Unlisted)?;
        let found = self.inner.driver.ask(move |driver| in_turn(found, |job| driver.line(job))).await?;
        for (stamp, found) in found {
            let job = found.job.job.name.clone();
            if let Err(error) = self.judge(job.clone(), stamp, Some(found)).await {
                tracing::error!(%job, %error, "cannot judge a job");
            }
        }
        Ok(unread)
    }

    /// Looks at one job's folder; where that is not possible, the log says so.
    pub(crate) async fn look_and_log(&self, job: SubjectName) {
        if let Err(error) = self.look_at(job.clone()).await {
            tracing::error!(%job, %error, "cannot judge a job");
        }
    }

    /// Looks at every folder each time it is asked to.
    pub(crate) async fn look_when_asked(self, mut asked: UnboundedReceiver<()>) {
        while asked.recv().await.is_some() {
            let state = self.inner.state.clone();
            let listed = tokio::task::spawn_blocking(move || crate::jobs::records::job_names(&state)).await;
            for job in listed.ok().and_then(Result::ok).unwrap_or_default() {
                self.look_and_log(job).await;
            }
        }
    }

    /// Looks for what nobody told, for ever: folders that came, went or changed, and what could not be told before.
    pub(crate) async fn look_now_and_then(self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if self.look_again_at_all().await.is_err() {
                return;
            }
        }
    }

    /// Looks once at what deserves a second look.
    pub(crate) async fn look_again_at_all(&self) -> Result<(), Ended> {
        let jobs = self.clone();
        let due = tokio::task::spawn_blocking(move || jobs.due()).await.map_err(|_| Ended)?;
        let Some((listed, due)) = due else { return Ok(()) };
        let (known, in_doubt) = self.inner.driver.ask(|driver| (driver.names(), driver.in_doubt())).await?;
        self.mark_presence();
        let gone = known.into_iter().filter(|job| !listed.contains(job));
        for job in due.into_iter().chain(in_doubt).chain(gone).collect::<BTreeSet<_>>() {
            self.look_and_log(job).await;
        }
        Ok(())
    }

    /// The jobs' folders that there are, and those among them that are to be looked at.
    fn due(&self) -> Option<(BTreeSet<SubjectName>, Vec<SubjectName>)> {
        let (state, second_looks) = (&self.inner.state, &self.inner.second_looks);
        second_looks.enter_in_ledger(state, BY);
        let listed = crate::jobs::records::job_names(state).ok()?.into_iter().collect();
        let due = second_looks.due(state, &listed);
        Some((listed, due))
    }

    /// Marks in the lock's file when the agent last looked around, for whoever asks when it no longer does.
    fn mark_presence(&self) {
        let at = std::time::UNIX_EPOCH + Duration::from_millis(clock::wall().as_millis());
        let lock = std::fs::File::options().append(true).open(self.inner.state.agent_lock());
        // A mark that cannot be made is an old one: whoever asks hears that.
        let _old = lock.and_then(|file| file.set_modified(at));
    }

    /// Watches a running attempt, unless it is watched already.
    pub(crate) fn watch(&self, start: Start) {
        let (job, epoch) = (start.job.clone(), start.epoch);
        let running = start.process.clone().map(|process| Running {
            attempt: AttemptName::of(&start),
            process,
            supervisor: start.supervisor.clone(),
        });
        let mut watched = self.inner.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.get(&job).is_some_and(|watch| watch.epoch >= epoch && !watch.task.is_finished()) {
            return;
        }
        let jobs = self.clone();
        let task = tokio::spawn(async move { jobs.watch_to_the_end(start).await });
        if let Some(before) = watched.insert(job, Watch { epoch, task: task.abort_handle(), running }) {
            before.task.abort();
        }
    }

    /// The attempts that are watched at present.
    pub(crate) fn running(&self) -> Vec<Running> {
        let watched = self.inner.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let live = watched.values().filter(|watch| !watch.task.is_finished());
        live.filter_map(|watch| watch.running.clone()).collect()
    }

    async fn watch_to_the_end(&self, start: Start) {
        let directory = self.inner.state.job(&start.job).attempt(start.attempt);
        match attempt::watch(&self.inner.driver, &start, &directory).await {
            Watched::Ended => self.inner.second_looks.ended(LedgerKey::of(&start)),
            Watched::Gone => self.supervisor_gone(start).await,
            Watched::Unknown(detail) => {
                let attempt = AttemptName::of(&start);
                let _agent_ends = self.inner.driver.tell(Fact::LookFailed { attempt, detail }).await;
            }
        }
    }

    async fn supervisor_gone(&self, start: Start) {
        let attempt = AttemptName::of(&start);
        let state = self.inner.state.clone();
        let process = tokio::task::spawn_blocking(move || found::life(&state, &start)).await.unwrap_or(Life::Unknown);
        let _agent_ends = self.inner.driver.tell(Fact::SupervisorGone { attempt, process }).await;
    }

    fn look_again(&self, job: SubjectName) {
        let jobs = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LAUNCH_LOOK_EVERY).await;
            // Boxed: a look may order another one.
            let look: std::pin::Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(jobs.look_at(job.clone()));
            if let Err(error) = look.await {
                tracing::debug!(%job, %error, "the launch could not be looked at");
            }
        });
    }

    fn unwatch(&self, job: &SubjectName) {
        let mut watched = self.inner.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watch) = watched.remove(job) {
            watch.task.abort();
        }
    }

    /// Ends all watches.
    pub(crate) fn stop(&self) {
        let mut watched = self.inner.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for watch in std::mem::take(&mut *watched).into_values() {
            watch.task.abort();
        }
    }
}

/// What a look at all folders found.
#[derive(Default)]
struct Looked {
    found: Vec<(Stamp, Found)>,
    unread: BTreeSet<SubjectName>,
}

fn look_at_all(state: &StateDir) -> std::io::Result<Looked> {
    let mut looked = Looked::default();
    for job in crate::jobs::records::job_names(state)? {
        let stamp = Stamp::of(&state.job(&job));
        match found::look(state, &job) {
            Ok(found) => looked.found.extend(found.map(|found| (stamp, found))),
            Err(detail) => {
                tracing::error!(%job, detail, "cannot judge a job");
                looked.unread.insert(job);
            }
        }
    }
    Ok(looked)
}

fn in_turn(mut found: Vec<(Stamp, Found)>, line: impl Fn(&SubjectName) -> Option<u64>) -> Vec<(Stamp, Found)> {
    found.sort_by_cached_key(|(_, found)| found::turn(&found.job, line(&found.job.job.name)));
    found
}
