//! The agent's lives, from the lock to the last write. A config that is read again begins another life under the same lock.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use latido_driver::{Driver, Fact};
use latido_protocol::layout::StateDir;
use latido_store::{OpenError, Store, StoreError};
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, JoinSet};

use crate::actions::Actions;
use crate::clock;
use crate::driver_thread::{DriverHandle, Flows};
use crate::first_process::{RUN_ON, collect_what_comes, is_first_process, of_jobs};
use crate::place::{Place, PlaceError};
use crate::plugins::Registry;
use crate::recording::{self, Beside};
use crate::reload::{Config, Reloading, note_files};
use crate::settings::Settings;
use crate::sources::activity;
use crate::sources::control::{About, Control};
use crate::sources::database;
use crate::sources::jobs::Jobs;
use crate::sources::saved::Files;
use crate::sources::{kept_signals, watched};

const VERSION: &str = env!("CARGO_PKG_VERSION");

type Thread<T> = std::thread::JoinHandle<T>;

/// Why the agent ended otherwise than by order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The state directory, its lock or its socket.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The store cannot be opened.
    #[error(transparent)]
    OpenStore(#[from] OpenError),
    /// A damaged store could not be set aside.
    #[error("set the damaged store {path} aside")]
    SetAside {
        /// the database
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
    /// The store opened and cannot be read.
    #[error("read the store {path}")]
    ReadStore {
        /// the database
        path: PathBuf,
        /// what it said
        source: StoreError,
    },
    /// Another agent has taken the store over, which it can where this one's lock was lost.
    #[error("go on watching")]
    TakenOver {
        /// what the store said
        source: StoreError,
    },
    /// The system refused a thread, a runtime, a signal handler or its own identity.
    #[error("start the agent: {what}")]
    System {
        /// what was asked for
        what: &'static str,
        /// what the system said
        source: io::Error,
    },
    /// The driver's thread panicked: a fault of latido.
    #[error("go on: the driver's thread has panicked")]
    Panicked,
    /// Which jobs there are cannot be told, so that none of them can be watched; who is not found is not gone.
    #[error("find the jobs: it could not {detail}")]
    Unrecovered {
        /// what was tried and why it failed
        detail: String,
    },
    /// Something without which the agent only looks alive has ended: a fault of latido.
    #[error("go on: what {part} has ended")]
    PartEnded {
        /// what it did
        part: &'static str,
    },
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> AgentError {
    move |source| AgentError::System { what, source }
}

/// Runs the agent of a state directory until SIGTERM or SIGINT. Jobs are left running.
///
/// SIGHUP, and a save of its file, calls `config.reread`. What that answers is in force from then on, if its plugins can be
/// loaded: a life ends, and another begins under the same lock, with the same socket, as after a restart. Where it answers why
/// not, in words, that is logged and everything stays as it is.
///
/// With `once` it recovers, judges and acts on what identity, lock and the supervisors' own measure prove, and ends.
///
/// # Errors
/// Another agent holds the directory, the store cannot be opened, or the system refuses what is needed to start.
pub fn run(mut settings: Settings, state: StateDir, once: bool, config: &Config<'_>) -> Result<(), AgentError> {
    latido_process::descriptors::raise();
    let mut place = Place::take(&state)?;
    let mut signals = None;
    loop {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .thread_keep_alive(std::time::Duration::from_secs(2))
            .build()
            .map_err(system("a runtime"))?;
        let entered = runtime.enter();
        let signals = match &mut signals {
            Some(signals) => signals,
            none => none.insert(Signals::new().map_err(system("a signal handler"))?),
        };
        drop(entered);
        let life = Life { settings, state: state.clone(), place, once };
        match begin(&runtime, life, signals, config)? {
            Ended::ByOrder => return Ok(()),
            Ended::ForAnother { settings: next, place: kept } => (settings, place) = (*next, kept),
        }
    }
}

/// What tells the agent to end or to read its config again. It outlives a life, so that no signal between two is missed.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// What a life begins with.
struct Life {
    settings: Settings,
    state: StateDir,
    place: Place,
    once: bool,
}

/// How a life ended that did not fail.
enum Ended {
    ByOrder,
    /// with what is in force in the next, and the place that it goes on in
    ForAnother {
        settings: Box<Settings>,
        place: Place,
    },
}

fn begin(runtime: &Runtime, life: Life, signals: &mut Signals, config: &Config<'_>) -> Result<Ended, AgentError> {
    let Life { settings, state, .. } = &life;
    let (store, remark) = database::open(state)?;
    let journal = store.journal_id().to_owned();
    let read_store = |source| AgentError::ReadStore { path: state.database(), source };
    let decided = settings.driver_settings();
    let mut driver = Driver::with_settings(store, &decided).map_err(read_store)?;
    let mut recording = None;
    if settings.agent.recording.enabled {
        let (recorder, beside) =
            recording::start(state.recording(), settings.agent.recording).map_err(system("a thread"))?;
        driver.record_to(Box::new(recorder), decided, clock::wall()).map_err(read_store)?;
        recording = Some(beside);
    }
    let identity = latido_process::identity::own()
        .map_err(|error| AgentError::System { what: "its own identity", source: io::Error::other(error) })?;
    let about = Arc::new(About { identity, started_at: clock::wall(), journal, config_refused: Mutex::default() });
    let (driver, flows) = DriverHandle::start(driver).map_err(system("a thread"))?;
    runtime.block_on(live(life, driver, flows, about, (remark, recording), signals, config))
}

async fn live(
    life: Life,
    driver: DriverHandle,
    flows: Flows,
    about: Arc<About>,
    (remark, recording): (Option<String>, Option<Beside>),
    signals: &mut Signals,
    config: &Config<'_>,
) -> Result<Ended, AgentError> {
    let Life { settings, state, place, once } = life;
    let Flows { orders, changed, sequence, thread } = flows;
    let opened = database::Opened::at(state.database());
    let listener = place.listener().and_then(UnixListener::from_std).map_err(system("its socket"))?;

    // Before anything is loaded from them: what is saved later is another file than the one that was loaded.
    let files = note_files(&settings, &state, config.file).await;
    let jobs = Jobs::new(state.clone(), driver.clone());
    let (written, completing) =
        recording.map(|Beside { thread, looks }| (thread, tokio::spawn(jobs.clone().look_when_asked(looks)))).unzip();
    let plugins =
        Registry::start(&settings, driver.clone(), (jobs.state(), &config.compiler), sequence.clone(), changed)
            .map_err(system("its plugins' threads"))?;
    let actions = Actions::new(jobs.clone(), plugins.clone());
    let mut acting = tokio::spawn(actions.carry_out(orders));
    let mut reloading =
        Reloading::new(config, (&settings, &state), (plugins.clone(), driver.clone()), Arc::clone(&about));
    let control = Control { driver: driver.clone(), jobs: jobs.clone(), plugins: plugins.clone(), about, sequence };
    // Clients are answered while jobs are still being recovered: what they ask waits behind the facts.
    let mut serving = tokio::spawn(control.serve(listener, place.door()));

    note_start(&driver, remark).await;
    let recovered = recover(&settings, &jobs).await;
    let watching = watched::look(&settings, &driver).await;
    tracing::info!(version = VERSION, "the agent watches");

    let result = match recovered {
        Ok(()) if once => {
            acting_is_idle(&driver).await;
            Ok(None)
        }
        Ok(()) => {
            until_ordered((signals, &mut reloading, files), (&mut acting, &mut serving), &jobs, opened, &settings).await
        }
        Err(error) => Err(error),
    };
    drop((watching, reloading));
    completing.iter().chain([&serving, &acting]).for_each(JoinHandle::abort);
    plugins.stop().await;
    jobs.stop();
    let (what, jobs_then) =
        if matches!(result, Ok(Some(_))) { ("config-read-again", RUN_ON) } else { ("stopped", of_jobs()) };
    note(&driver, what, jobs_then.to_owned()).await;
    driver.end().await;
    drop((driver, jobs, plugins, acting, serving));
    let ended = joined(thread, written).await;
    // The place is given up last.
    Ok(ended.and(result)?.map_or(Ended::ByOrder, |settings| Ended::ForAnother { settings, place }))
}

async fn note_start(driver: &DriverHandle, remark: Option<String>) {
    note(driver, "started", format!("latido {VERSION}")).await;
    if let Some(detail) = remark {
        note(driver, "store-set-aside", detail).await;
    }
}

/// Enters a word about the agent itself into the journal.
async fn note(driver: &DriverHandle, what: &str, detail: String) {
    let _ended = driver.tell(Fact::Noted { what: what.to_owned(), detail }).await;
}

/// Waits for the driver's thread, and then for the recording's, which the driver's last line went to.
async fn joined(driver: Thread<Result<(), StoreError>>, recording: Option<Thread<()>>) -> Result<(), AgentError> {
    let join = move || (driver.join(), recording.map_or(Ok(()), Thread::join));
    match tokio::task::spawn_blocking(join).await {
        Ok((Ok(ended), Ok(()))) => ended.map_err(|source| AgentError::TakenOver { source }),
        Ok(_) | Err(_) => Err(AgentError::Panicked),
    }
}

/// Waits for the order to end, and answers what ended by itself before it. Nothing of it does: an agent without one of its
/// tasks would look alive and do nothing, so it ends, and whoever supervises it starts it again. The answer is what is in
/// force in another life, where one is to follow.
async fn until_ordered(
    (signals, reloading, files): (&mut Signals, &mut Reloading<'_>, Option<Files>),
    (acting, serving): (&mut JoinHandle<()>, &mut JoinHandle<()>),
    jobs: &Jobs,
    opened: database::Opened,
    settings: &Settings,
) -> Result<Option<Box<Settings>>, AgentError> {
    let driver = jobs.driver();
    let mut chores = JoinSet::new();
    let mut chore = |part: &'static str, work: Pin<Box<dyn Future<Output = ()> + Send>>| {
        chores.spawn(async move {
            work.await;
            part
        });
    };
    if is_first_process() {
        let ended = signal(SignalKind::child()).map_err(system("a signal handler"))?;
        chore("collects the processes that come to it", Box::pin(collect_what_comes(ended)));
    }
    chore("looks for new jobs", Box::pin(jobs.clone().look_now_and_then()));
    chore(
        "takes in what was signalled without an agent",
        Box::pin(kept_signals::take_in_now_and_then(jobs.state().clone(), driver.clone())),
    );
    chore("samples what attempts do", Box::pin(activity::sample_now_and_then(jobs.clone())));
    chore(
        "bounds the journal",
        Box::pin(crate::trim::now_and_then(driver.clone(), settings.agent.journal_entries_max)),
    );
    chore("looks after the database", Box::pin(database::look_now_and_then(driver.clone(), opened)));
    if let Some(files) = files {
        chore("looks after saved files", Box::pin(files.tell_saves(reloading.ear())));
    }
    let part = tokio::select! {
        _ = signals.terminate.recv() => {
            tracing::info!("SIGTERM: the agent ends, {}", of_jobs());
            return Ok(None);
        }
        _ = signals.interrupt.recv() => {
            tracing::info!("SIGINT: the agent ends, {}", of_jobs());
            return Ok(None);
        }
        settings = reloading.another(&mut signals.hangup) => return Ok(Some(settings)),
        _ = &mut *acting => "carries out what was decided",
        _ = &mut *serving => "answers its clients",
        ended = chores.join_next() => ended.and_then(Result::ok).unwrap_or("is done now and then"),
    };
    tracing::error!("what {part} has ended: the agent ends, jobs run on");
    Err(AgentError::PartEnded { part })
}

/// What follows from what was found is carried out, as far as it needs no waiting: deaths recorded, orphans ended.
async fn acting_is_idle(driver: &DriverHandle) {
    const QUIET_FOR: std::time::Duration = std::time::Duration::from_millis(500);
    const AT_MOST: u32 = 120;
    let mut before = None;
    for _ in 0..AT_MOST {
        tokio::time::sleep(QUIET_FOR).await;
        let Ok(now) = driver.ask(|driver| driver.store().last_sequence().unwrap_or(0)).await else { return };
        if before.replace(now) == Some(now) {
            return;
        }
    }
}

/// Jobs of the config are made, then every folder is looked at: what ended, died or was orphaned while nobody watched
/// is judged like everything else.
async fn recover(settings: &Settings, jobs: &Jobs) -> Result<(), AgentError> {
    watched::define(settings, jobs.driver()).await;
    kept_signals::take_in(jobs.state(), jobs.driver()).await;
    let state = jobs.state().clone();
    let configured = crate::configured::jobs(settings);
    let made = tokio::task::spawn_blocking(move || crate::configured::make_absent(&state, configured)).await;
    if let Ok(remarks) = made {
        for remark in remarks {
            tracing::error!("{remark}");
        }
    }
    let unread = jobs.recover().await;
    let unread = unread.map_err(|error| AgentError::Unrecovered { detail: latido_protocol::chain(&error) })?;
    let _ended = jobs.driver().ask(move |driver| driver.forget_absent(&unread, clock::wall())).await;
    let _ended = jobs.look_again_at_all().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use latido_store::SqliteStore;

    use super::*;

    // rails/solid_queue#751
    #[test]
    fn c116_an_agent_whose_driver_has_died_ends_with_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::new(folder.path().join("state"));
        let place = Place::take(&state).unwrap();
        let store = SqliteStore::open(&state.database()).unwrap();
        let driver = Driver::new(store, Duration::from_secs(300)).unwrap();
        let (driver, flows) = DriverHandle::start(driver).unwrap();
        let identity = latido_process::identity::own().unwrap();
        let about = Arc::new(About {
            identity,
            started_at: clock::wall(),
            journal: "journal".to_owned(),
            config_refused: Mutex::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let doomed = driver.clone();
        let ended = runtime.block_on(async {
            let mut signals = Signals::new().unwrap();
            let life = Life { settings: Settings::default(), state: state.clone(), place, once: false };
            let config = Config { file: None, compiler: None, reread: &|| Err("nobody asks".to_owned()) };
            let life = live(life, driver, flows, about, (None, None), &mut signals, &config);
            let fault = doomed.ask(|_| -> () { panic!("a fault of latido, made by this test") });
            let (ended, _) = tokio::join!(tokio::time::timeout(Duration::from_secs(60), life), fault);
            ended
        });
        assert!(matches!(ended, Ok(Err(AgentError::Panicked))));
    }
}
