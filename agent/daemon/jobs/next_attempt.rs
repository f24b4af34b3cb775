//! The next attempt of a job: decided on under the short lock, and put on the disk before anything runs.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use latido_process::identity;
use latido_protocol::files::{JobFile, Start, Want, Wanted};
use latido_protocol::layout::{AttemptDir, JobDir};
use latido_protocol::{FORMAT_VERSION, SubjectName, WallTime, disk};

use super::launch::{LaunchOrder, Ordered, host_name};
use super::launch_error::LaunchError;
use super::prepared::{Prepared, PublishError};
use super::records;
use super::sockets;
use super::wanted::{self, Short};

/// An attempt that may be recorded, under the job's short lock.
pub(super) struct Decided<'a> {
    job: &'a SubjectName,
    order: &'a LaunchOrder,
    pub(super) given: Ordered,
    at: WallTime,
    short: Short,
    wanted: Wanted,
}

/// Gives the attempt its number and its epoch.
///
/// # Errors
/// When it is not wanted, or another one is next. Nothing was written.
pub(super) fn decide<'a>(
    job: &'a SubjectName,
    folder: &JobDir,
    order: &'a LaunchOrder,
    at: WallTime,
) -> Result<Decided<'a>, LaunchError> {
    let wanted_error = |source| LaunchError::Wanted { job: job.clone(), source };
    let short = wanted::take_short(folder).map_err(wanted_error)?;
    let wanted = short.read(at).map_err(wanted_error)?;
    let paused = wanted.want == Want::Pause && wanted.until.is_none_or(|until| until > at);
    if !order.by_hand && (wanted.want == Want::Stop || paused) {
        return Err(LaunchError::NotWanted { job: job.clone(), want: wanted.want });
    }
    let attempts =
        records::attempt_numbers(folder).map_err(|source| LaunchError::Folder { path: folder.attempts(), source })?;
    let next = Ordered {
        attempt: attempts.last().copied().unwrap_or(0).saturating_add(1),
        epoch: wanted.epoch.saturating_add(1),
    };
    let given = order.ordered.unwrap_or(next);
    if given.attempt != next.attempt || given.epoch < next.epoch {
        return Err(LaunchError::Superseded { job: job.clone(), epoch: given.epoch, highest: wanted.epoch });
    }
    Ok(Decided { job, order, given, at, short, wanted })
}

impl Decided<'_> {
    /// Puts its epoch, its folder and its record on the disk, each before the next.
    ///
    /// # Errors
    /// When the disk does not take them. What there is of it is no attempt; its epoch may be spent.
    pub(super) fn record(self, folder: &JobDir, file: &JobFile, notes: Vec<String>) -> Result<(), LaunchError> {
        let Self { job, order, given, at: launched_at, short, wanted } = self;
        let wanted_error = |source| LaunchError::Wanted { job: job.clone(), source };
        let by = if order.by_hand { order.by.clone() } else { wanted.by.clone() };
        // A wish is as old as it was: an agent takes one with another moment for another wish.
        let at = if order.by_hand { launched_at } else { wanted.at };
        let run = Wanted { want: Want::Run, epoch: given.epoch, at, until: None, by, ..wanted };
        let begun = |by_hand| Begun { given, by_hand, at: launched_at, notes };
        // By hand it may say something else than before, and that is kept. Else it is the epoch alone that is new, and the
        // attempt's own record is durable before anything runs.
        if order.by_hand {
            short.write(&run).map_err(wanted_error)?;
            return record_start(job, folder, file, order, begun(true));
        }
        // A resume stays wanted until the attempt that it asks for has its folder, also one that was ordered before.
        let is_asked_for = wanted.want == Want::Resume;
        let want = if is_asked_for { Want::Resume } else { Want::Run };
        short.write_whole(&Wanted { want, ..run.clone() }).map_err(wanted_error)?;
        record_start(job, folder, file, order, begun(order.resumed_by_hand || is_asked_for))?;
        if is_asked_for {
            short.write_whole(&run).map_err(wanted_error)?;
        }
        Ok(())
    }
}

/// What the record of an attempt says beside its job and the order.
struct Begun {
    given: Ordered,
    /// a person asks for it
    by_hand: bool,
    at: WallTime,
    /// what was found before it
    notes: Vec<String>,
}

fn record_start(
    job: &SubjectName,
    folder: &JobDir,
    file: &JobFile,
    order: &LaunchOrder,
    Begun { given, by_hand, at, notes }: Begun,
) -> Result<(), LaunchError> {
    let attempts = records::attempt_numbers(folder).unwrap_or_default();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let sockets =
        sockets::make_folder(runtime.as_deref()).map_err(|source| LaunchError::Sockets { job: job.clone(), source })?;
    let record = Start {
        version: FORMAT_VERSION,
        job: job.clone(),
        attempt: given.attempt,
        epoch: given.epoch,
        host: host_name(),
        launched_at: at,
        starter: identity::own().map_err(|source| LaunchError::Identity { job: job.clone(), source })?,
        because: order.because.clone(),
        by_hand,
        command: order.command.clone().unwrap_or_else(|| file.command.clone()),
        directory: file.directory.clone(),
        checkpoint: records::last_checkpoint(folder, &attempts),
        sockets: sockets.clone(),
        supervisor: None,
        process: None,
        started_at: None,
        cgroup: None,
        notes,
    };
    let written = publish_attempt(folder, &record);
    if written.is_err() {
        // An attempt without a record never was one; its epoch stays spent.
        sockets::remove_folder(&sockets);
    }
    written
}

/// The attempt's folder appears with its record in it.
fn publish_attempt(folder: &JobDir, record: &Start) -> Result<(), LaunchError> {
    let path = folder.attempt(record.attempt).path().to_owned();
    let refuse = |source| LaunchError::Folder { path: path.clone(), source };
    let unrecorded = |source| LaunchError::Record { job: record.job.clone(), attempt: record.attempt, source };
    let attempts = folder.attempts();
    match fs::DirBuilder::new().mode(0o700).create(&attempts) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(refuse(error)),
        Ok(()) | Err(_) => {}
    }
    let prepared = Prepared::make(&attempts).map_err(refuse)?;
    disk::replace_quick(&AttemptDir::new(prepared.path()).start(), record).map_err(unrecorded)?;
    prepared.publish(&path).map_err(|error| match error {
        PublishError::Exists => refuse(io::ErrorKind::AlreadyExists.into()),
        PublishError::Sync(source) => unrecorded(source),
        PublishError::Name(source) => refuse(source),
    })
}
