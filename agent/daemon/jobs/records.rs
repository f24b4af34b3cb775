//! Reads what a job's folder says, never believing: damage gives a message and the best that can be rebuilt.

use std::fs;
use std::io;
use std::path::Path;

use latido_protocol::disk::{self, ReadError};
use latido_protocol::files::{Busy, End, Heartbeat, JobFile, Start, Status, Wanted};
use latido_protocol::layout::{AttemptDir, JobDir, StateDir};
use latido_protocol::{FORMAT_VERSION, Progress, Span, SubjectName};
use serde::de::DeserializeOwned;

/// What the files of a job say.
#[derive(Clone, Debug)]
pub struct JobRecords {
    /// what was asked for, with the budget that a person gave it since; `None` when that cannot be read
    pub job: Option<JobFile>,
    /// what is wanted; `None` when that cannot be read
    pub wanted: Option<Wanted>,
    /// the numbers of its attempts, rising
    pub attempts: Vec<u32>,
    /// what could not be read, in words, each with the name of its file
    pub damaged: Vec<String>,
}

/// What the files of one attempt say.
#[derive(Clone, Debug)]
pub struct AttemptRecords {
    /// its number
    pub number: u32,
    /// its folder
    pub folder: AttemptDir,
    /// who runs it
    pub start: Option<Start>,
    /// its latest beat; rebuilt from its sampled beats where the file is damaged
    pub status: Option<Status>,
    /// how it ended
    pub end: Option<End>,
    /// true when there is an ending that cannot be read
    pub end_is_damaged: bool,
    /// why its status cannot be read where a later latido wrote it, in words
    pub later: Option<String>,
}

/// True when the content itself is bad: reading it again will not help, and it may be rebuilt.
pub fn is_damage(error: &ReadError) -> bool {
    matches!(
        error,
        ReadError::Empty { .. }
            | ReadError::ZeroFilled { .. }
            | ReadError::Torn { .. }
            | ReadError::NotOurs { .. }
            | ReadError::TooLarge { .. }
    )
}

fn read<T: DeserializeOwned>(path: &Path, damaged: &mut Vec<String>) -> Option<T> {
    disk::read(path).unwrap_or_else(|error| {
        damaged.push(format!("cannot {}", latido_protocol::chain(&error)));
        None
    })
}

/// The names of all jobs, sorted. Folders whose names are no job's are not looked at, and links are not followed.
///
/// # Errors
/// When the folder is there and cannot be read.
pub fn job_names(state: &StateDir) -> io::Result<Vec<SubjectName>> {
    let mut names = Vec::new();
    let entries = match fs::read_dir(state.jobs()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Some(name) = entry.file_name().to_str().and_then(|name| name.parse().ok())
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The numbers of a job's attempts, rising.
///
/// # Errors
/// When the folder is there and cannot be read.
pub fn attempt_numbers(folder: &JobDir) -> io::Result<Vec<u32>> {
    let entries = match fs::read_dir(folder.attempts()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        numbers.extend(entry?.file_name().to_str().and_then(JobDir::attempt_number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// True when there is a folder of this name that is not a link. One that cannot be looked at is there: only what is known
/// to be gone counts as removed.
pub fn exists(folder: &JobDir) -> bool {
    match fs::symlink_metadata(folder.path()) {
        Ok(metadata) => metadata.is_dir(),
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    }
}

/// Reads a job's own files.
pub fn read_job(folder: &JobDir) -> JobRecords {
    let mut damaged = Vec::new();
    let mut job: Option<JobFile> = read(&folder.job(), &mut damaged);
    if job.is_none() && damaged.is_empty() {
        damaged.push(format!("cannot read {}: it is missing", folder.job().display()));
    }
    let before = damaged.len();
    let wanted: Option<Wanted> = read(&folder.wanted(), &mut damaged);
    if let (Some(job), Some(budget)) = (&mut job, wanted.as_ref().and_then(|wanted| wanted.budget)) {
        job.settings.resume.budget = budget;
    }
    if wanted.is_none() && damaged.len() == before {
        damaged.push(format!("cannot read {}: it is missing", folder.wanted().display()));
    }
    let attempts = attempt_numbers(folder).unwrap_or_else(|error| {
        damaged.push(format!("cannot read {}: {error}", folder.attempts().display()));
        Vec::new()
    });
    JobRecords { job, wanted, attempts, damaged }
}

/// Reads the files of one attempt.
pub fn read_attempt(folder: &JobDir, number: u32, damaged: &mut Vec<String>) -> AttemptRecords {
    let attempt = folder.attempt(number);
    let mut start: Option<Start> = read(&attempt.start(), damaged);
    if start.is_some() && start.as_ref().is_some_and(|start| start.attempt != number) {
        damaged.push(format!("cannot use {}: it belongs to another attempt", attempt.start().display()));
        start = None;
    }
    let (end, end_is_damaged) = match disk::read::<End>(&attempt.end()) {
        Ok(end) => (end, false),
        Err(error) => {
            damaged.push(format!("cannot {}", latido_protocol::chain(&error)));
            (None, is_damage(&error))
        }
    };
    let mut later = None;
    let status = match disk::read::<Status>(&attempt.status()) {
        Ok(status) => status,
        Err(error) => {
            let cannot = format!("cannot {}", latido_protocol::chain(&error));
            later = matches!(error, ReadError::NewerVersion { .. }).then(|| cannot.clone());
            damaged.push(cannot);
            rebuilt_status(&attempt, start.as_ref(), damaged)
        }
    };
    AttemptRecords { number, folder: attempt, start, status, end, end_is_damaged, later }
}

/// The latest sampled beat in place of a status that cannot be read.
fn rebuilt_status(attempt: &AttemptDir, start: Option<&Start>, damaged: &mut Vec<String>) -> Option<Status> {
    let start = start?;
    let mut last: Option<Heartbeat> = None;
    let mut torn = Vec::new();
    let read = disk::for_each_line::<Heartbeat>(&attempt.heartbeats(), |number, record| match record {
        Some(record) => last = Some(record),
        None => torn.push(number),
    });
    if let Err(error) = read {
        damaged.push(format!("cannot {}", latido_protocol::chain(&error)));
    }
    if let Some(number) = torn.first() {
        damaged.push(format!(
            "cannot read line {number} of {} ({} damaged in all)",
            attempt.heartbeats().display(),
            torn.len()
        ));
    }
    let beat = last?;
    Some(Status {
        version: FORMAT_VERSION,
        job: start.job.clone(),
        attempt: start.attempt,
        epoch: start.epoch,
        at: beat.at,
        sequence: beat.sequence,
        last_beat: Some(beat.at),
        progress_changed: None,
        progress: beat.progress,
        state: beat.state,
        errors: beat.errors,
        ready: false,
        broken: false,
        silence_s: Span::default(),
        still_s: Span::default(),
        running_s: Span::default(),
        output_bytes: 0,
        idle_s: None,
        excuse: None,
        spent: beat.spent,
        stopping: false,
        suspended_since: None,
        survivors: Vec::new(),
        trouble: latido_protocol::Trouble::default(),
    })
}

/// `busy.json`, which names a supervisor although `start.json` may not be readable.
pub fn read_busy(folder: &JobDir) -> Option<Busy> {
    read(&folder.busy(), &mut Vec::new())
}

/// The highest epoch that the files of any attempt show. Epochs rise with the attempts' numbers, so the latest attempt
/// that can be read tells it.
pub fn highest_attempt_epoch(folder: &JobDir) -> u64 {
    let of = |number: &u32| {
        let attempt = folder.attempt(*number);
        let start = read::<Start>(&attempt.start(), &mut Vec::new()).map(|start| start.epoch);
        start.or_else(|| read::<End>(&attempt.end(), &mut Vec::new()).map(|end| end.epoch))
    };
    let busy = read_busy(folder).map_or(0, |busy| busy.epoch);
    attempt_numbers(folder).unwrap_or_default().iter().rev().find_map(of).unwrap_or(0).max(busy)
}

/// The last checkpoint that any attempt is known to have reached; empty when there is none.
pub fn last_checkpoint(folder: &JobDir, attempts: &[u32]) -> String {
    let of = |progress: Option<&Progress>| progress.and_then(|progress| progress.checkpoint.clone());
    attempts
        .iter()
        .rev()
        .find_map(|number| {
            let records = read_attempt(folder, *number, &mut Vec::new());
            let ended = records.end.as_ref().and_then(|end| of(end.progress.as_ref()));
            let beat = records.status.as_ref().and_then(|status| of(status.progress.as_ref()));
            // What an attempt was handed is the last of all before it.
            let handed = records.start.map(|start| start.checkpoint);
            ended.or(beat).or(handed)
        })
        .unwrap_or_default()
}

/// The endings of a job's attempts, in order; an attempt without a readable one has `None`.
pub fn endings(folder: &JobDir, attempts: &[u32]) -> Vec<(u32, Option<End>)> {
    attempts.iter().map(|number| (*number, read(&folder.attempt(*number).end(), &mut Vec::new()))).collect()
}
