//! The control socket: clients of the same user ask, the agent answers; one JSON object a line.
//!
//! No client, line or frame stops the loop that accepts: each connection is a task of its own, the length of a line
//! is bounded while reading, and a client that does not read is dropped at a deadline.

use std::sync::PoisonError;
use std::time::Duration;

use latido_plugin_kit::Recorded;
use latido_protocol::alerts::AlertRequest;
use latido_protocol::control::{Answer, Envelope, ErrorKind, REQUEST_MAX, Request};
use latido_protocol::status::{AgentStatus, StatusDocument};
use latido_protocol::{FORMAT_VERSION, SubjectName};
use latido_store::Store;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::jobs::Jobs;
use super::watched::{self, WatchRefused};
use crate::clock;
use crate::driver_thread::DriverHandle;
use crate::place::Door;
use crate::plugins::Registry;

/// Connections at a time; more wait in the kernel's queue. Each costs a task and a buffer of [`REQUEST_MAX`] at most.
const CLIENTS_MAX: usize = 128;

/// A client has this long to read an answer, and to finish a request it began.
const CLIENT_DEADLINE: Duration = Duration::from_secs(10);

/// Between two looks whether clients still find the socket.
const DOOR_LOOK_EVERY: Duration = Duration::from_secs(2);

/// Journal entries read from the store at a time.
const ENTRIES_AT_A_TIME: usize = 256;

/// What the control socket answers from.
#[derive(Clone)]
pub(crate) struct Control {
    pub(crate) driver: DriverHandle,
    pub(crate) jobs: Jobs,
    pub(crate) plugins: Registry,
    pub(crate) about: std::sync::Arc<About>,
    pub(crate) sequence: tokio::sync::watch::Receiver<u64>,
}

/// The agent about itself.
pub(crate) struct About {
    pub(crate) identity: latido_protocol::files::Identity,
    pub(crate) started_at: latido_protocol::WallTime,
    pub(crate) journal: String,
    /// why the config as it is cannot be in force
    pub(crate) config_refused: std::sync::Mutex<Option<String>>,
}

impl Control {
    /// Accepts until it is dropped. A socket that was removed is bound again.
    pub(crate) async fn serve(self, mut listener: UnixListener, mut door: Door) {
        let clients = std::sync::Arc::new(Semaphore::new(CLIENTS_MAX));
        loop {
            let Ok(place) = std::sync::Arc::clone(&clients).acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = tokio::time::sleep(DOOR_LOOK_EVERY) => {
                    if let Some(again) = made_again(&door) {
                        (door, listener) = again;
                    }
                    continue;
                }
            };
            match accepted {
                Ok((stream, _)) => {
                    let control = self.clone();
                    tokio::spawn(async move {
                        if is_same_user(&stream) {
                            control.connection(stream).await;
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    // Out of descriptors, as a rule: clients wait in the kernel's queue meanwhile.
                    tracing::warn!(%error, "cannot accept a client of the control socket");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn connection(&self, stream: UnixStream) {
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::with_capacity(4096, read);
        loop {
            let mut line = Vec::new();
            let limit = u64::try_from(REQUEST_MAX).unwrap_or(u64::MAX) + 1;
            let got = (&mut read).take(limit).read_until(b'\n', &mut line).await;
            if !matches!(got, Ok(1..)) {
                return;
            }
            if line.last() != Some(&b'\n') {
                let message = if line.len() > REQUEST_MAX {
                    format!("read a request of more than {REQUEST_MAX} bytes")
                } else {
                    "read half a request".to_owned()
                };
                let _gone = send(&mut write, &refused(&message)).await;
                return;
            }
            let request = match parse(&line) {
                Ok(request) => request,
                Err(message) => {
                    if send(&mut write, &refused(&message)).await.is_err() {
                        return;
                    }
                    continue;
                }
            };
            if self.answer(request, &mut write).await.is_err() {
                return;
            }
        }
    }

    async fn answer(&self, request: Request, write: &mut OwnedWriteHalf) -> Result<(), Gone> {
        let answer = match request {
            Request::Hello => Answer::Hello { agent: env!("CARGO_PKG_VERSION").to_owned(), pid: std::process::id() },
            Request::Status { subjects } => {
                // Who is not found yet would be missing, and all would look well.
                self.jobs.recovered().await;
                match self.document(subjects).await {
                    Ok(document) => Answer::Status { document: Box::new(document) },
                    Err(error) => refused(&error),
                }
            }
            Request::Changed { job } => match self.jobs.look_at(job).await {
                Ok(()) => Answer::Done,
                Err(error) => refused(&error),
            },
            Request::Registry { question } => match self.driver.ask_registry(question).await {
                Ok(reply) => Answer::Registry { reply },
                Err(error) => refused(&error),
            },
            Request::Workers => match self.driver.ask(|driver| driver.workers()).await {
                Ok(status) => Answer::Workers { status: Box::new(status) },
                Err(error) => refused(&error),
            },
            Request::ReloadPlugin { plugin } => match self.plugins.reload(&plugin).await {
                Ok(()) => Answer::Done,
                Err(why) => refused(&why),
            },
            Request::RecordPlugin { plugin, length } => match self.plugins.record(&plugin, length.0).await {
                Ok(Recorded { case, golden, calls, is_cut }) => Answer::Recorded { case, golden, calls, is_cut },
                Err(why) => refused(&why),
            },
            Request::Signal { subject, signal, run_id, state } => {
                // Behind those that were kept, and not before its check is defined.
                self.jobs.recovered().await;
                done(watched::signal(&self.driver, subject, signal, run_id, state).await)
            }
            Request::Pause { subject, length } => done(watched::pause(&self.driver, subject, length).await),
            Request::Unpause { subject } => done(watched::unpause(&self.driver, subject).await),
            Request::Alerts { ask } => self.alerts(ask).await,
            Request::Events { after, follow } => return self.events(after, follow, write).await,
        };
        send(write, &answer).await
    }

    async fn alerts(&self, ask: AlertRequest) -> Answer {
        match self.driver.ask(move |driver| driver.handle_alert_request(ask, clock::wall())).await {
            Ok(Ok(document)) => Answer::Alerts { document: Box::new(document) },
            Ok(Err(refused)) => self::refused(&latido_protocol::chain(&refused)),
            Err(error) => refused(&error),
        }
    }

    async fn document(&self, subjects: Vec<SubjectName>) -> Result<StatusDocument, crate::driver_thread::Ended> {
        let mut plugins = self.plugins.statuses();
        let about = std::sync::Arc::clone(&self.about);
        self.driver
            .ask(move |driver| {
                let at = clock::wall();
                let sequence = driver.store().last_sequence().unwrap_or(0);
                for plugin in &mut plugins {
                    plugin.queue = plugin.cursor.map(|cursor| sequence.saturating_sub(cursor));
                    if plugin.kind == "sink" {
                        plugin.lost = driver.store().cursor(&plugin.name).map_or(plugin.lost, |cursor| cursor.lost);
                    }
                }
                let agent = AgentStatus {
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    identity: about.identity.clone(),
                    started_at: about.started_at,
                    swept_at: at,
                    journal: about.journal.clone(),
                    sequence,
                    plugins,
                    config_refused: about.config_refused.lock().unwrap_or_else(PoisonError::into_inner).clone(),
                };
                let subjects = driver.subjects(&subjects);
                StatusDocument { version: FORMAT_VERSION, agent: Some(agent), at, subjects }
            })
            .await
    }

    async fn events(&self, mut after: u64, follow: bool, write: &mut OwnedWriteHalf) -> Result<(), Gone> {
        let mut sequence = self.sequence.clone();
        let journal = self.about.journal.clone();
        loop {
            sequence.mark_unchanged();
            let rows = self
                .driver
                .ask(move |driver| driver.store().entries_after(after, &[], ENTRIES_AT_A_TIME))
                .await
                .map_err(|_| Gone)?;
            let rows = match rows {
                Ok(rows) => rows,
                Err(error) => return send(write, &refused(&error)).await,
            };
            let more = rows.len() == ENTRIES_AT_A_TIME;
            for row in rows {
                after = row.sequence;
                if let Some(entry) = crate::journal::entry(&row, &journal) {
                    send(write, &Answer::Entry { entry: Box::new(entry) }).await?;
                }
            }
            if !more && !follow {
                return send(write, &Answer::Done).await;
            }
            if !more && sequence.changed().await.is_err() {
                return Err(Gone);
            }
        }
    }
}

/// Binds a socket again that cannot be found any more.
fn made_again(door: &Door) -> Option<(Door, UnixListener)> {
    if door.is_there() {
        return None;
    }
    let made = door.make_again().map_err(|error| latido_protocol::chain(&error)).and_then(|(door, listener)| {
        let listener = listener.set_nonblocking(true).and_then(|()| UnixListener::from_std(listener));
        listener.map(|listener| (door, listener)).map_err(|error| error.to_string())
    });
    match made {
        Ok(made) => {
            tracing::warn!("the control socket was removed, and is bound again");
            Some(made)
        }
        Err(error) => {
            tracing::error!(
                error,
                "the control socket was removed, and cannot be bound again; nobody reaches this agent"
            );
            None
        }
    }
}

/// The client is gone, or does not read.
struct Gone;

fn done(result: Result<(), WatchRefused>) -> Answer {
    match result {
        Ok(()) => Answer::Done,
        Err(error) => Answer::Error { kind: error.kind(), message: error.to_string() },
    }
}

fn refused(why: &impl std::fmt::Display) -> Answer {
    Answer::Error { kind: ErrorKind::Refused, message: why.to_string() }
}

fn is_same_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

fn parse(line: &[u8]) -> Result<Request, String> {
    #[derive(serde::Deserialize)]
    struct Version {
        version: u32,
    }
    let version: Version = serde_json::from_slice(line).map_err(|error| format!("read the request: {error}"))?;
    if version.version > FORMAT_VERSION {
        return Err(format!(
            "understand a request of version {}; this agent knows versions up to {FORMAT_VERSION}",
            version.version
        ));
    }
    serde_json::from_slice::<Envelope>(line)
        .map(|envelope| envelope.request)
        .map_err(|error| format!("read the request: {error}"))
}

async fn send(write: &mut OwnedWriteHalf, answer: &Answer) -> Result<(), Gone> {
    let mut line = serde_json::to_vec(answer).map_err(|_| Gone)?;
    line.push(b'\n');
    match tokio::time::timeout(CLIENT_DEADLINE, write.write_all(&line)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}
