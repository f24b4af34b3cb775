//! The ledger: one line for each ended attempt, named for ever by job, attempt and epoch.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use latido_protocol::SubjectName;
use latido_protocol::disk::{self, RECORD_MAX};
use latido_protocol::files::{End, LedgerLine, Start};
use latido_protocol::layout::StateDir;

/// What names a line for ever.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LedgerKey {
    pub(crate) job: SubjectName,
    pub(crate) attempt: u32,
    pub(crate) epoch: u64,
}

impl LedgerKey {
    pub(crate) fn of(start: &Start) -> Self {
        Self { job: start.job.clone(), attempt: start.attempt, epoch: start.epoch }
    }
}

/// Hands on the lines of one job. Others are told by their bytes and not decoded: the ledger grows with every attempt of
/// every job, and this is asked before each launch.
fn for_each_of(state: &StateDir, job: &SubjectName, mut take: impl FnMut(LedgerLine)) -> io::Result<()> {
    let mark = format!("\"{job}\"").into_bytes();
    for_each(state, |line| {
        if line.windows(mark.len()).any(|window| window == mark)
            && let Ok(record) = serde_json::from_slice::<LedgerLine>(line)
            && record.job == *job
        {
            take(record);
        }
    })
}

fn for_each(state: &StateDir, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let file = match File::open(state.ledger()) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        // A longer line is damage; its pieces are no records either.
        if reader.by_ref().take(RECORD_MAX as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        take(&line);
    }
}

/// Those of the attempts that have no line. The ledger is read once for all of them.
///
/// # Errors
/// When the ledger is there and cannot be read.
pub(crate) fn missing(state: &StateDir, ended: &BTreeSet<LedgerKey>) -> io::Result<BTreeSet<LedgerKey>> {
    let mut missing = ended.clone();
    for_each(state, |line| {
        if let Ok(LedgerLine { job, attempt, epoch, .. }) = serde_json::from_slice(line) {
            missing.remove(&LedgerKey { job, attempt, epoch });
        }
    })?;
    Ok(missing)
}

/// The highest epoch that the ledger tells of a job of this name, also one that was removed: 0 when there is none. A new
/// job of the name goes on from there, so that no epoch is ever given twice under one name.
///
/// # Errors
/// When the ledger is there and cannot be read.
pub fn highest_epoch(state: &StateDir, job: &SubjectName) -> io::Result<u64> {
    let mut highest = 0;
    for_each_of(state, job, |line| highest = highest.max(line.epoch))?;
    Ok(highest)
}

/// True when an attempt's line is there.
///
/// # Errors
/// When the ledger is there and cannot be read.
pub fn holds(state: &StateDir, end: &End) -> io::Result<bool> {
    let mut found = false;
    for_each_of(state, &end.job, |line| found |= line.attempt == end.attempt && line.epoch == end.epoch)?;
    Ok(found)
}

/// Appends an attempt's line, durably. The caller holds the job's lock and has looked that it is not there.
///
/// # Errors
/// When it cannot be written.
pub fn append(state: &StateDir, end: &End, because: String) -> Result<(), disk::WriteError> {
    disk::append_line(&state.ledger(), &LedgerLine::of(end, because), true)
}

/// Puts the lines on the disk that were appended. Whoever removes the endings that a line could be made from does it first.
///
/// # Errors
/// When the file system refuses.
pub(crate) fn sync(state: &StateDir) -> Result<(), disk::WriteError> {
    disk::sync_file(&state.ledger())
}

#[cfg(test)]
mod tests {
    use latido_protocol::{FORMAT_VERSION, Outcome, WallTime};

    use latido_protocol::files::Spent;

    use super::*;

    #[test]
    fn a_line_is_found_by_job_attempt_and_epoch_beside_damage_and_other_jobs() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::new(folder.path());
        let end = |job: &str, attempt, epoch| End {
            version: FORMAT_VERSION,
            job: job.parse().unwrap(),
            attempt,
            epoch,
            started_at: None,
            ended_at: WallTime::from_millis(0),
            outcome: Outcome::exited(0),
            rusage: None,
            progress: None,
            recorded_by: "a test".to_owned(),
            proof: "none".to_owned(),
            stopped_for: None,
            spent: Spent::default(),
            ran_s: None,
        };
        assert_eq!(highest_epoch(&state, &"a".parse().unwrap()).unwrap(), 0);
        append(&state, &end("a", 1, 1), "first".to_owned()).unwrap();
        append(&state, &end("ab", 1, 9), "first".to_owned()).unwrap();
        let torn = std::fs::read(state.ledger()).unwrap();
        std::fs::write(state.ledger(), [&torn[..], b"{\"job\":\"a\",\"attempt\":7"].concat()).unwrap();
        append(&state, &end("a", 2, 4), "resumed".to_owned()).unwrap();
        assert_eq!(highest_epoch(&state, &"a".parse().unwrap()).unwrap(), 4);
        assert!(holds(&state, &end("a", 2, 4)).unwrap());
        assert!(!holds(&state, &end("a", 2, 5)).unwrap());
        assert!(!holds(&state, &end("b", 1, 1)).unwrap());
        let key = |job: &str, attempt, epoch| LedgerKey { job: job.parse().unwrap(), attempt, epoch };
        let ended = BTreeSet::from([key("a", 1, 1), key("a", 2, 5), key("ab", 1, 9), key("b", 1, 1)]);
        assert_eq!(missing(&state, &ended).unwrap(), BTreeSet::from([key("a", 2, 5), key("b", 1, 1)]));
    }
}
