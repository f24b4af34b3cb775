//! The jobs' folders: looked at when somebody says that they changed, and now and then without being told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use latido_driver::{AttemptName, Fact, FoundState};
use latido_policy::Life;
use latido_protocol::SubjectName;
use latido_protocol::files::Start;
use latido_protocol::layout::StateDir;
use tokio::task::AbortHandle;

use super::attempt::{self, Watched};
use crate::driver_thread::{DriverHandle, Ended};
use crate::found;

/// Every change is told by the one who made it; this finds those whose maker died before telling.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Between two looks at a launch that somebody else has begun.
const LAUNCH_LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why a job's folder could not be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LookError {
    /// The agent is ending.
    #[error("look at the job: the agent is ending")]
    Ending,
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

struct Inner {
    state: StateDir,
    driver: DriverHandle,
    watched: Mutex<BTreeMap<SubjectName, (u64, AbortHandle)>>,
}

impl Jobs {
    pub(crate) fn new(state: StateDir, driver: DriverHandle) -> Self {
        Self { inner: Arc::new(Inner { state, driver, watched: Mutex::default() }) }
    }

    pub(crate) fn state(&self) -> &StateDir {
        &self.inner.state
    }

    pub(crate) fn driver(&self) -> &DriverHandle {
        &self.inner.driver
    }

    /// Looks at one job's folder and returns when what it says has been judged.
    pub(crate) async fn look_at(&self, job: SubjectName) -> Result<(), LookError> {
        let state = self.inner.state.clone();
        let name = job.clone();
        let looked = tokio::task::spawn_blocking(move || found::look(&state, &name)).await;
        let found = match looked {
            Ok(Ok(found)) => found,
            Ok(Err(detail)) => return Err(LookError::Unreadable { job, detail }),
            Err(_) => return Err(LookError::Ending),
        };
        let Some(found) = found else {
            self.unwatch(&job);
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
        self.inner.driver.tell(Fact::JobFound(Box::new(found))).await?;
        if let Some(start) = watch {
            self.watch(start);
        }
        // Judged when the question is answered: facts told before it are applied before it.
        Ok(self.inner.driver.ask(|_| ()).await?)
    }

    /// Looks at every folder; what cannot be read is said in the log and left alone.
    pub(crate) async fn look_at_all(&self) -> Result<(), Ended> {
        let state = self.inner.state.clone();
        let names =
            tokio::task::spawn_blocking(move || crate::jobs::records::job_names(&state)).await.map_err(|_| Ended)?;
        let names = names.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the jobs' folder");
            Vec::new()
        });
        for job in names {
            if let Err(error) = self.look_at(job.clone()).await {
                tracing::error!(%job, %error, "cannot judge a job");
            }
        }
        Ok(())
    }

    /// Looks for folders that came or went without a word, and at what nobody watches, for ever.
    pub(crate) async fn look_now_and_then(self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let state = self.inner.state.clone();
            let listed = tokio::task::spawn_blocking(move || crate::jobs::records::job_names(&state)).await;
            let Ok(Ok(listed)) = listed else { continue };
            let listed: BTreeSet<SubjectName> = listed.into_iter().collect();
            let Ok((known, in_doubt)) = self.inner.driver.ask(|driver| (driver.names(), driver.in_doubt())).await
            else {
                return;
            };
            let known: BTreeSet<SubjectName> = known.into_iter().collect();
            for job in listed.symmetric_difference(&known).chain(&in_doubt) {
                if let Err(error) = self.look_at(job.clone()).await {
                    tracing::error!(%job, %error, "cannot judge a job");
                }
            }
        }
    }

    /// Watches a running attempt, unless it is watched already.
    pub(crate) fn watch(&self, start: Start) {
        let (job, epoch) = (start.job.clone(), start.epoch);
        let mut watched = self.inner.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.get(&job).is_some_and(|(known, task)| *known >= epoch && !task.is_finished()) {
            return;
        }
        let jobs = self.clone();
        let task = tokio::spawn(async move { jobs.watch_to_the_end(start).await });
        if let Some((_, before)) = watched.insert(job, (epoch, task.abort_handle())) {
            before.abort();
        }
    }

    async fn watch_to_the_end(&self, start: Start) {
        let directory = self.inner.state.job(&start.job).attempt(start.attempt);
        match attempt::watch(&self.inner.driver, &start, &directory).await {
            Watched::Ended => {}
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
        if let Some((_, task)) = watched.remove(job) {
            task.abort();
        }
    }

    /// Ends all watches.
    pub(crate) fn stop(&self) {
        let mut watched = self.inner.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, task) in std::mem::take(&mut *watched).into_values() {
            task.abort();
        }
    }
}
