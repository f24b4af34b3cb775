//! What is only watched: told to the driver from the config, signalled and paused by clients.

use latido_driver::{Fact, Kept, Signaled, WatchFact};
use latido_policy::Signal;
use latido_protocol::control::{CheckSignal, ErrorKind};
use latido_protocol::status::SubjectKind;
use latido_protocol::{KeptSignal, Progress, Span, SubjectName, WallTime};

use super::processes;
use crate::clock;
use crate::driver_thread::{DriverHandle, Ended};
use crate::settings::Settings;

/// Bytes of a run's id: two UUIDs fit, and a few of them are kept for each check.
const RUN_ID_MAX: usize = 128;

/// Tells the driver what the config watches, before anything else of the same name can be found.
pub(crate) async fn define(settings: &Settings, driver: &DriverHandle) {
    let checks = settings.checks.iter().map(|(name, check)| WatchFact::CheckDefined(Box::new(check.definition(name))));
    let processes =
        settings.processes.iter().map(|(name, process)| WatchFact::ProcessDefined(process.definition(name)));
    for fact in checks.chain(processes).collect::<Vec<_>>() {
        let _ended = driver.tell(Fact::Watched(Box::new(fact))).await;
    }
}

/// Looks at the processes of the config for ever.
pub(crate) async fn look(settings: &Settings, driver: &DriverHandle) -> tokio::task::JoinSet<()> {
    let mut looking = tokio::task::JoinSet::new();
    for (name, process) in &settings.processes {
        let subject = name.clone();
        let seen = driver.ask(move |driver| driver.process_seen(&subject)).await.ok().flatten();
        looking.spawn(processes::watch(driver.clone(), name.clone(), process.named_by.clone(), seen));
    }
    looking
}

/// Why a request about what is only watched was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchRefused {
    #[error("find a check {0}")]
    NoCheck(SubjectName),
    #[error("find a check or a watched process {0}")]
    NotWatched(SubjectName),
    #[error("take a signal for {0}: it is a watched process, which sends none")]
    SendsNone(SubjectName),
    #[error("take the signal: a run's id has 1 to {RUN_ID_MAX} bytes")]
    RunIdSize,
    #[error("take the signal: its state is longer than {max} bytes", max = Progress::TEXT_MAX)]
    StateSize,
    #[error(transparent)]
    Ended(#[from] Ended),
}

impl WatchRefused {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::NoCheck(_) | Self::NotWatched(_) => ErrorKind::Unknown,
            Self::SendsNone(_) | Self::RunIdSize | Self::StateSize | Self::Ended(_) => ErrorKind::Refused,
        }
    }
}

/// Takes a signal of a check.
pub(crate) async fn signal(
    driver: &DriverHandle,
    check: SubjectName,
    signal: CheckSignal,
    run_id: Option<String>,
    state: Option<String>,
) -> Result<(), WatchRefused> {
    take(driver, Signaled { check, signal: translated(signal), run_id, state, kept: None }).await
}

/// Takes a signal that was kept while no agent ran, as [`signal`] does.
pub(crate) async fn kept_signal(driver: &DriverHandle, signal: KeptSignal) -> Result<(), WatchRefused> {
    let KeptSignal { id, at, check, signal, run_id, state } = signal;
    take(driver, Signaled { check, signal: translated(signal), run_id, state, kept: Some(Kept { id, at }) }).await
}

async fn take(driver: &DriverHandle, signaled: Signaled) -> Result<(), WatchRefused> {
    let Signaled { check, run_id, state, .. } = &signaled;
    if run_id.as_ref().is_some_and(|id| id.is_empty() || id.len() > RUN_ID_MAX) {
        return Err(WatchRefused::RunIdSize);
    }
    if state.as_ref().is_some_and(|state| state.len() > Progress::TEXT_MAX) {
        return Err(WatchRefused::StateSize);
    }
    match kind(driver, check).await? {
        Some(SubjectKind::Check) => {}
        Some(SubjectKind::Process) => return Err(WatchRefused::SendsNone(check.clone())),
        Some(SubjectKind::Job | SubjectKind::Worker) | None => return Err(WatchRefused::NoCheck(check.clone())),
    }
    told(driver, WatchFact::Signaled(signaled)).await
}

fn translated(signal: CheckSignal) -> Signal {
    match signal {
        CheckSignal::Start => Signal::Started,
        CheckSignal::Success => Signal::Succeeded,
        CheckSignal::Fail => Signal::Failed,
        CheckSignal::ExitStatus { status } => Signal::Exited(status),
        CheckSignal::Log => Signal::Logged,
    }
}

/// Pauses what is only watched.
pub(crate) async fn pause(
    driver: &DriverHandle,
    subject: SubjectName,
    length: Option<Span>,
) -> Result<(), WatchRefused> {
    known(driver, &subject).await?;
    let until = length.map(|length| {
        let length = u64::try_from(length.0.as_millis()).unwrap_or(u64::MAX);
        WallTime::from_millis(clock::wall().as_millis().saturating_add(length))
    });
    told(driver, WatchFact::PauseWanted { subject, until }).await
}

/// Ends a pause.
pub(crate) async fn unpause(driver: &DriverHandle, subject: SubjectName) -> Result<(), WatchRefused> {
    known(driver, &subject).await?;
    told(driver, WatchFact::UnpauseWanted { subject }).await
}

async fn known(driver: &DriverHandle, subject: &SubjectName) -> Result<(), WatchRefused> {
    match kind(driver, subject).await? {
        Some(_) => Ok(()),
        None => Err(WatchRefused::NotWatched(subject.clone())),
    }
}

async fn kind(driver: &DriverHandle, subject: &SubjectName) -> Result<Option<SubjectKind>, Ended> {
    let subject = subject.clone();
    driver.ask(move |driver| driver.watched_kind(&subject)).await
}

/// Tells a fact and waits until it is judged and written down.
async fn told(driver: &DriverHandle, fact: WatchFact) -> Result<(), WatchRefused> {
    driver.tell(Fact::Watched(Box::new(fact))).await?;
    Ok(driver.ask(|_| ()).await?)
}
