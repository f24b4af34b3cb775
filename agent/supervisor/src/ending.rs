//! What the ending was, and its record.

use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_process::cgroup::{self, OutOfMemory};
use latido_process::lock;
use latido_process::run::{self, Ending};
use latido_protocol::attempt::StopReason;
use latido_protocol::disk::{self, ReadError, WriteError};
use latido_protocol::files::{End, LedgerLine, Rusage, Spent, Start};
use latido_protocol::layout::{AttemptDir, StateDir};
use latido_protocol::{Class, FORMAT_VERSION, Limit, Outcome, OutcomeKind, Progress, Span};

use crate::clock;
use crate::sockets;
use crate::stop::{self, Cleared, Order};

/// Why an ending is not yet on the disk.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("record the ending")]
    Write { source: WriteError },
    #[error("look for the ending in the ledger")]
    Ledger { source: ReadError },
    #[error("find the state directory of the attempt")]
    Layout,
}

/// Judges what happened, from how the first process ended and who had ordered its end.
pub(crate) fn judge(
    ending: Ending,
    order: Option<&Order>,
    errno: Option<i32>,
    out_of_memory: Option<OutOfMemory>,
) -> Outcome {
    let mut outcome = match ending {
        Ending::Exited(code) => Outcome::exited(code),
        Ending::Signaled(signal) | Ending::Dumped(signal) => Outcome::signaled(signal, &stop::signal_name(signal)),
    };
    if matches!(ending, Ending::Dumped(_)) {
        outcome.detail.push_str(" (core dumped)");
    }
    if let Some(errno) = errno.filter(|_| outcome.class == Class::Failed) {
        let meaning = std::io::Error::from_raw_os_error(errno);
        outcome.detail.push_str(&format!("; it had said: {meaning}"));
    }
    let how = match ending {
        Ending::Exited(code) => format!("exit status {code}"),
        Ending::Signaled(signal) => stop::signal_name(signal),
        Ending::Dumped(signal) => format!("{} (core dumped)", stop::signal_name(signal)),
    };
    let (class, why) = match order {
        None => {
            return out_of_memory
                .map_or_else(|| outcome.clone(), |found| for_want_of_memory(outcome.clone(), found, &how));
        }
        Some(Order::Request(StopReason::Commanded, by)) => return outcome.by_order(format!("stopped by {by}; {how}")),
        Some(Order::Request(StopReason::Limit, by)) => (Class::Limit, format!("limit reached, ended by {by}")),
        Some(Order::Request(StopReason::Stale, by)) => (Class::Lost, format!("stale, ended by {by}")),
        Some(Order::Request(StopReason::Hung, by)) => (Class::Lost, format!("hung, ended by {by}")),
        Some(Order::Request(StopReason::Superseded, by)) => (Class::Lost, format!("superseded, ended by {by}")),
        Some(Order::RunFor(limit)) => (Class::Limit, format!("run_for of {} is over", Limit::After(*limit))),
        Some(Order::Outside) => (Class::Lost, "SIGTERM to the supervisor from outside".to_owned()),
    };
    outcome.class = class;
    outcome.detail = format!("{why}; {how}");
    outcome
}

/// What the ending was if the kernel killed processes of the attempt, and of it alone, for want of memory. One that went
/// on to a good end without them has ended well.
fn for_want_of_memory(outcome: Outcome, found: OutOfMemory, how: &str) -> Outcome {
    if outcome.class == Class::Completed {
        let detail =
            format!("{}; {} of its processes were killed for want of memory", outcome.detail, found.killed_count);
        return Outcome { detail, ..outcome };
    }
    let limit = found.memory_max.filter(|_| found.limit_met_count > 0);
    let (class, whose) = match limit {
        Some(limit) => (Class::Limit, format!("its limit of {limit} bytes (memory_max)")),
        // Its limit was not met: the machine, or a cgroup above, had none left.
        None => (Class::Failed, "the machine had none left".to_owned()),
    };
    let detail = format!("out of memory: {whose}; processes killed: {}; {how}", found.killed_count);
    Outcome { kind: OutcomeKind::OutOfMemory, class, detail, ..outcome }
}

/// What there is to record beside the outcome.
pub(crate) struct Facts {
    pub(crate) outcome: Outcome,
    pub(crate) progress: Option<Progress>,
    pub(crate) spent: Spent,
    pub(crate) stopped_for: Option<StopReason>,
    /// what was looked at for the proof
    pub(crate) cleared: Cleared,
    /// bytes of output that the log could not take
    pub(crate) lost: u64,
    /// how long the process ran, where it did and was collected
    pub(crate) ran_for: Option<Duration>,
}

/// Makes the record. Everything of the attempt has to be collected before.
pub(crate) fn compose(attempt: &AttemptDir, start: &Start, facts: Facts) -> End {
    let proof = prove(attempt, start, &facts);
    let usage = run::usage_of_collected();
    End {
        version: FORMAT_VERSION,
        job: start.job.clone(),
        attempt: start.attempt,
        epoch: start.epoch,
        started_at: start.started_at,
        ended_at: clock::wall(),
        outcome: facts.outcome,
        rusage: facts.ran_for.map(|_| Rusage {
            user_s: whole_micros(usage.user),
            system_s: whole_micros(usage.system),
            max_rss_kib: usage.max_rss_kib,
        }),
        progress: facts.progress,
        recorded_by: "supervisor".to_owned(),
        proof,
        stopped_for: facts.stopped_for,
        spent: facts.spent,
        ran_s: facts.ran_for.map(Span),
    }
}

/// Writes the record, then the ledger's line. It may be called again after an error: what is done is not done twice.
pub(crate) fn record(attempt: &AttemptDir, start: &Start, end: &End) -> Result<(), RecordError> {
    let ledger = ledger(attempt).ok_or(RecordError::Layout)?;
    match disk::create(&attempt.end(), end) {
        // The line follows the file, so without the file there was no line: a long ledger is not read for every ending.
        Ok(()) => append(&ledger, start, end)?,
        // What has ended never changes: whoever recorded it before was right, and it may have been this very call.
        Err(WriteError::Exists { .. }) => append_once(&ledger, start, end)?,
        Err(source) => return Err(RecordError::Write { source }),
    }
    Ok(())
}

/// Takes away what only a running attempt has: its cgroup, `busy.json` and the sockets.
pub(crate) fn clear_away(attempt: &AttemptDir, start: &Start) {
    // With a survivor in it, it stays, and the next attempt of the job finds it.
    start.cgroup.as_ref().map(cgroup::remove);
    // An index of what is recorded above; whoever finds it later checks it.
    if let Some(job) = attempt.job() {
        let _ = std::fs::remove_file(job.busy());
    }
    sockets::remove(&start.sockets);
}

/// The supervisor holds the job's lock, so it is the one writer for this job; the check is for a crash between the two
/// files.
fn append_once(ledger: &Path, start: &Start, end: &End) -> Result<(), RecordError> {
    let mut present = false;
    disk::for_each_line::<LedgerLine>(ledger, |_, line| {
        present |= line
            .is_some_and(|line| line.job == start.job && line.attempt == start.attempt && line.epoch == start.epoch);
    })
    .map_err(|source| RecordError::Ledger { source })?;
    if present { Ok(()) } else { append(ledger, start, end) }
}

/// The ledger of the state directory that an attempt lies in.
fn ledger(attempt: &AttemptDir) -> Option<PathBuf> {
    let job = attempt.job()?;
    let state = job.path().parent()?.parent()?;
    Some(StateDir::new(state).ledger())
}

/// Puts the line of the attempt before on the disk, once another one runs. So at most one line of a job is ever missing after a
/// loss of power, that of its latest attempt, which an agent looks for.
pub(crate) fn sync_earlier(attempt: &AttemptDir) {
    // A ledger that cannot be synced is tried again by the next attempt.
    let _ = ledger(attempt).map(|ledger| disk::sync_file(&ledger));
}

/// The disk is not waited for: `end.json` is on it, and an agent that misses the line makes it from there.
fn append(ledger: &Path, start: &Start, end: &End) -> Result<(), RecordError> {
    let line = LedgerLine::of(end, start.because.clone());
    disk::append_line(ledger, &line, false).map_err(|source| RecordError::Write { source })
}

fn prove(attempt: &AttemptDir, start: &Start, facts: &Facts) -> String {
    let mut proof = match (&start.process, facts.ran_for) {
        (Some(process), Some(_)) => {
            format!("process {} (start time {}) collected by its supervisor", process.pid, process.start_time)
        }
        (Some(_), None) | (None, _) => "nothing was started".to_owned(),
    };
    if facts.ran_for.is_some() {
        proof.push_str(&looked_at(&facts.cleared));
    }
    let own = std::process::id();
    let lock = attempt.job().map(|job| job.lock());
    let others: Vec<_> = match lock.filter(|_| !facts.cleared.survivors().is_empty()) {
        Some(lock) => lock::holders(&lock).into_iter().filter(|pid| *pid != own).map(|pid| pid.to_string()).collect(),
        None => Vec::new(),
    };
    if others.is_empty() {
        proof.push_str("; the job's lock is held by the supervisor, which ends with this record");
    } else {
        proof.push_str(&format!("; the job's lock is also held by {}", others.join(", ")));
    }
    if facts.lost > 0 {
        proof.push_str(&format!("; {} bytes of output were lost, the log could not be written", facts.lost));
    }
    proof
}

/// What was truly looked at, and nothing more.
fn looked_at(cleared: &Cleared) -> String {
    match cleared {
        Cleared::Childless => "; its supervisor, to which what it leaves comes, has no other child".to_owned(),
        Cleared::Scanned(left) if left.is_empty() => {
            "; no process of the attempt is left in its group, session, descent or mark".to_owned()
        }
        Cleared::Scanned(left) => format!("; still there after SIGKILL: {}", stop::list(left)),
        Cleared::Unseen => {
            "; SIGKILL was sent to its group, and what else may be left could not be looked at: no look at \
                            /proc succeeded"
                .to_owned()
        }
    }
}

fn whole_micros(duration: Duration) -> Span {
    Span(Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_decides_the_class_and_the_ending_stays() {
        let by = || "a test".to_owned();
        let killed = Ending::Signaled(9);
        let cases = [
            (None, Class::Lost),
            (Some(Order::Request(StopReason::Commanded, by())), Class::Stopped),
            (Some(Order::Request(StopReason::Limit, by())), Class::Limit),
            (Some(Order::Request(StopReason::Stale, by())), Class::Lost),
            (Some(Order::Request(StopReason::Hung, by())), Class::Lost),
            (Some(Order::Request(StopReason::Superseded, by())), Class::Lost),
            (Some(Order::RunFor(Duration::from_secs(60))), Class::Limit),
            (Some(Order::Outside), Class::Lost),
        ];
        for (order, class) in cases {
            let outcome = judge(killed, order.as_ref(), None, None);
            assert_eq!((outcome.class, outcome.signal), (class, Some(9)), "{order:?}");
            let ended = judge(Ending::Exited(0), order.as_ref(), None, None);
            assert_eq!(ended.class, if order.is_some() { class } else { Class::Completed }, "{order:?}");
        }
        assert!(judge(Ending::Exited(1), None, Some(2), None).detail.contains("No such file"));
    }

    #[test]
    fn a_proof_says_what_was_looked_at() {
        let scanned = looked_at(&Cleared::Scanned(Vec::new()));
        let left = looked_at(&Cleared::Scanned(vec![latido_process::identity::own().unwrap()]));
        assert!(scanned.contains("no process of the attempt is left"), "{scanned}");
        assert!(left.contains(&format!("still there after SIGKILL: {}", std::process::id())), "{left}");
        for cleared in [Cleared::Childless, Cleared::Unseen] {
            let text = looked_at(&cleared);
            assert!(!text.contains("no process of the attempt is left"), "{text}");
        }
        assert!(looked_at(&Cleared::Unseen).contains("could not be looked at"));
    }
}
