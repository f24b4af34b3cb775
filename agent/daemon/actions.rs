//! Carries out the driver's orders and tells what came of them. Nothing is decided here: an order names everything.

use std::time::Duration;

use latido_driver::{AttemptName, Fact, Order};
use latido_policy::LaunchFailure;
use latido_process::identity::{self, Look};
use latido_process::lock::Lock;
use latido_protocol::attempt::{Answer, Ground, Request, StopReason};
use latido_protocol::{Span, SubjectName, disk, files};
use tokio::sync::mpsc;

use crate::clock;
use crate::jobs::client::{self, ATTEMPT_WITHIN};
use crate::jobs::launch::{self, LaunchError, LaunchOrder, Launched, Ordered};
use crate::jobs::recover::{self, OrphanError};
use crate::plugins::Registry;
use crate::sources::jobs::Jobs;

/// How the agent signs what it writes.
pub(crate) const BY: &str = "the agent";

/// Between two tries to reach a supervisor that has to end its job and does not answer: it may be stopped by a signal.
const STOP_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Between two tries to record a loss on a disk that is full or away.
const RECORD_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Turns the driver's orders into tasks. The policy gives one order a job at a time, so they need no order here.
#[derive(Clone)]
pub(crate) struct Actions {
    jobs: Jobs,
    plugins: Registry,
}

impl Actions {
    pub(crate) fn new(jobs: Jobs, plugins: Registry) -> Self {
        Self { jobs, plugins }
    }

    pub(crate) async fn carry_out(self, mut orders: mpsc::UnboundedReceiver<Order>) {
        while let Some(order) = orders.recv().await {
            let actions = self.clone();
            tokio::spawn(async move {
                let Some(fact) = actions.act(order).await else { return };
                // What stood in the way of a launch is looked at, so that the next decision knows of it.
                let refused =
                    if let Fact::LaunchRefused { attempt, .. } = &fact { Some(attempt.job.clone()) } else { None };
                let _agent_ends = actions.jobs.driver().tell(fact).await;
                if let Some(job) = refused {
                    actions.jobs.look_and_log(job).await;
                }
            });
        }
    }

    async fn act(&self, order: Order) -> Option<Fact> {
        match order {
            Order::Launch { attempt, because, by_hand, command } => {
                self.launch(attempt, because, by_hand, command).await
            }
            Order::AskStrategy { attempt, strategy, by_hand, because: _ } => {
                Some(self.plugins.ask_strategy(&strategy, attempt, by_hand).await)
            }
            Order::EndAttempt { attempt, grace, ground, reason, because } => {
                self.end_attempt(attempt, grace, ground, reason, because).await;
                None
            }
            Order::EndOrphan { attempt, grace, because: _ } => Some(self.end_orphan(attempt, grace).await),
            Order::RecordLost { attempt, because: _ } => Some(self.record_lost(attempt).await),
            Order::CheckGroupLock { ticket, group } => Some(self.check_group_lock(ticket, group).await),
        }
    }

    /// A lock that cannot be looked at is not known to be held.
    async fn check_group_lock(&self, ticket: u64, group: SubjectName) -> Fact {
        let path = self.jobs.state().group_lock(&group);
        let is_held = blocking(move || Lock::is_held(&path)).await.is_some_and(|held| held.unwrap_or(false));
        Fact::GroupLockSeen { ticket, group, is_held }
    }

    async fn launch(
        &self,
        attempt: AttemptName,
        because: String,
        resumed_by_hand: bool,
        command: Option<Vec<String>>,
    ) -> Option<Fact> {
        let state = self.jobs.state().clone();
        let ordered = attempt.clone();
        let launched = blocking(move || {
            let order = LaunchOrder {
                because,
                by: BY.to_owned(),
                ordered: Some(Ordered { attempt: ordered.number, epoch: ordered.epoch }),
                command,
                by_hand: false,
                resumed_by_hand,
                lock: None,
            };
            let launched = launch::launch(&state, &ordered.job, order, clock::wall());
            let directory = state.job(&ordered.job).attempt(ordered.number);
            // What the launch has just written; without it there is nothing to tell but how it went.
            let start = disk::read::<files::Start>(&directory.start()).ok().flatten();
            let start = start.filter(|start| start.epoch == ordered.epoch);
            let end = disk::read::<files::End>(&directory.end()).ok().flatten();
            let end = end.filter(|end| end.epoch == ordered.epoch);
            (launched, start.map(Box::new), end.map(Box::new))
        })
        .await?;
        match launched {
            (Ok(Launched::Started { .. }), Some(start), _) => {
                self.jobs.watch((*start).clone());
                Some(Fact::AttemptStarted { start })
            }
            // Also where the supervisor failed: then the attempt has its ending from this launch.
            (Ok(Launched::Failed { .. }) | Err(_), start, Some(end)) => Some(Fact::AttemptEnded { start, end }),
            (Ok(launched), _, _) => {
                let detail = format!("cannot read back the files of the attempt after {launched:?}");
                Some(Fact::LookFailed { attempt, detail })
            }
            (Err(error), _, None) => {
                let failure = launch_failure(&error);
                let detail = latido_protocol::chain(&error);
                tracing::warn!(?attempt, ?failure, detail, "the launch did not take place");
                Some(Fact::LaunchRefused { attempt, failure, detail })
            }
        }
    }

    /// Asks until somebody answers: the end itself is seen by the watch on the supervisor's process.
    async fn end_attempt(
        &self,
        attempt: AttemptName,
        grace: Duration,
        ground: Option<Ground>,
        reason: StopReason,
        because: String,
    ) {
        let directory = self.jobs.state().job(&attempt.job).attempt(attempt.number);
        loop {
            let (directory, because) = (directory.clone(), because.clone());
            let asked = blocking(move || {
                // The ending is there: nothing is left to be asked.
                if matches!(disk::read::<files::End>(&directory.end()), Ok(Some(_))) {
                    return true;
                }
                let Ok(Some(start)) = disk::read::<files::Start>(&directory.start()) else {
                    return !directory.path().is_dir();
                };
                let request = Request::Stop {
                    grace: Some(Span(grace)),
                    force: false,
                    ground,
                    because: reason,
                    by: format!("{BY}: {because}"),
                };
                match client::ask_attempt(&start.sockets.join("control"), &request, ATTEMPT_WITHIN) {
                    // A refusal says that there are beats or progress: word of them comes, and is judged.
                    Ok(Answer::Stopping | Answer::Error { .. }) => true,
                    Ok(_) | Err(client::AskError::Deadline { .. } | client::AskError::Closed { .. }) => false,
                    // Nobody can be asked. While the supervisor lives that may pass; its end is told by the watch on it.
                    Err(_) => start.supervisor.is_none_or(|it| matches!(identity::look(&it), Look::Gone { .. })),
                }
            })
            .await;
            if asked != Some(false) {
                return;
            }
            tokio::time::sleep(STOP_AGAIN_AFTER).await;
        }
    }

    async fn end_orphan(&self, attempt: AttemptName, grace: Duration) -> Fact {
        let folder = self.jobs.state().job(&attempt.job);
        let orphan = attempt.clone();
        let ended = blocking(move || recover::end_orphan(&orphan.job, &folder, orphan.number, grace)).await;
        match ended {
            Some(Ok(())) => Fact::OrphanEnded { attempt, survivors: Vec::new() },
            Some(Err(OrphanError::Survivors { living, .. })) => {
                Fact::OrphanEnded { attempt, survivors: living_pids(&living) }
            }
            Some(Err(error)) => Fact::LookFailed { attempt, detail: latido_protocol::chain(&error) },
            None => Fact::LookFailed { attempt, detail: "the agent is ending".to_owned() },
        }
    }

    /// Tries until it can be recorded: what is proven lost is resumed only then.
    async fn record_lost(&self, attempt: AttemptName) -> Fact {
        loop {
            let (state, lost) = (self.jobs.state().clone(), attempt.clone());
            let recorded =
                blocking(move || recover::record_lost(&state, &lost.job, lost.number, BY, clock::wall())).await;
            let failed = match recorded {
                Some(Ok(end)) => return Fact::AttemptEnded { start: None, end: Box::new(end) },
                Some(Err(error)) => {
                    let failed = Fact::LookFailed { attempt: attempt.clone(), detail: latido_protocol::chain(&error) };
                    if !error.may_pass() {
                        return failed;
                    }
                    failed
                }
                None => return Fact::LookFailed { attempt, detail: "the agent is ending".to_owned() },
            };
            if self.jobs.driver().tell(failed.clone()).await.is_err() {
                return failed;
            }
            tokio::time::sleep(RECORD_AGAIN_AFTER).await;
        }
    }
}

fn living_pids(living: &[crate::jobs::inspect::Living]) -> Vec<u32> {
    living.iter().map(|process| process.pid).collect()
}

/// What a refused launch means to the policy.
fn launch_failure(error: &LaunchError) -> LaunchFailure {
    match error {
        LaunchError::Locked { .. } | LaunchError::Survivors { .. } | LaunchError::Unrecorded { .. } => {
            LaunchFailure::Locked
        }
        LaunchError::NotWanted { .. } => LaunchFailure::NotWanted,
        LaunchError::Superseded { .. } => LaunchFailure::Superseded,
        LaunchError::NoJob { .. } => LaunchFailure::Unreadable,
        LaunchError::Unknown { .. }
        | LaunchError::Previous { .. }
        | LaunchError::Wanted { .. }
        | LaunchError::Lock { .. }
        | LaunchError::NoDirectory { .. }
        | LaunchError::Sockets { .. }
        | LaunchError::Folder { .. }
        | LaunchError::Record { .. }
        | LaunchError::NoSupervisor { .. }
        | LaunchError::Supervisor { .. }
        | LaunchError::Silent { .. }
        | LaunchError::Identity { .. } => LaunchFailure::Failed,
    }
}

/// Runs what waits for a disk or for processes where it holds nobody up. `None` when the agent is ending.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
