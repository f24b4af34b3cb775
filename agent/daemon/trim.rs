//! Keeps the journal and the write-ahead log within their bounds, in small steps.

use std::collections::BTreeSet;
use std::time::Duration;

use latido_driver::{Fact, Finding};
use latido_protocol::SubjectName;
use latido_protocol::journal::Severity;
use latido_store::{JournalBound, Store};

use crate::driver_thread::DriverHandle;

/// The journal may be longer than its bound by what comes in this time.
const TRIM_EVERY: Duration = Duration::from_secs(60);

/// Entries removed at a time: some milliseconds of work, between which everything else goes on.
const STEP: usize = 1000;

/// Trims now, and then for ever. What a sink loses by it is counted in its cursor, journalled and logged.
pub(crate) async fn now_and_then(driver: DriverHandle, entries_max: u64) {
    let mut losing: BTreeSet<String> = BTreeSet::new();
    loop {
        // Over is what was not seen again: a sink that loses nothing more has caught up, or has nothing to lose.
        for sink in std::mem::take(&mut losing) {
            alert(&driver, &sink, Vec::new()).await;
        }
        loop {
            let keep = JournalBound { entries_max, step: STEP };
            let Ok(trimmed) = driver.ask(move |driver| driver.store().trim(keep)).await else { return };
            let trimmed = match trimmed {
                Ok(trimmed) => trimmed,
                Err(error) => {
                    tracing::warn!(%error, "cannot trim the journal; tried again in a minute");
                    break;
                }
            };
            for (sink, lost) in &trimmed.lost {
                let detail = format!("sink {sink} was too far behind and lost {lost} entries");
                tracing::error!("{detail}");
                let _ending = driver.tell(Fact::Noted { what: "sink-loss".to_owned(), detail: detail.clone() }).await;
                alert(&driver, sink, vec![finding(sink, detail)]).await;
                losing.insert(sink.clone());
            }
            if !trimmed.more {
                break;
            }
        }
        let _ended = driver.ask(|driver| driver.store().checkpoint()).await;
        tokio::time::sleep(TRIM_EVERY).await;
    }
}

/// Entries that a sink never gets are somebody's business.
fn finding(sink: &str, summary: String) -> Finding {
    Finding { key: "sink-loss".to_owned(), subject: subject(sink), severity: Severity::Critical, summary }
}

/// What the alert is about. Not the sink itself: a fault of it is found, and is over, at other moments.
fn subject(sink: &str) -> String {
    format!("journal.{sink}")
}

async fn alert(driver: &DriverHandle, sink: &str, findings: Vec<Finding>) {
    // A sink's name that makes no subject's name cannot be asked about: the journal entry tells of it all the same.
    if let Ok(subject) = subject(sink).parse::<SubjectName>() {
        let fact = Fact::RuleAnswered { rule: "agent".to_owned(), subjects: vec![subject], findings };
        let _ending = driver.tell(fact).await;
    }
}
