//! Keeps the journal and the write-ahead log within their bounds, in small steps.

use std::time::Duration;

use latido_driver::Fact;
use latido_store::{JournalBound, Store};

use crate::driver_thread::DriverHandle;

/// The journal may be longer than its bound by what comes in this time.
const TRIM_EVERY: Duration = Duration::from_secs(60);

/// Entries removed at a time: some milliseconds of work, between which everything else goes on.
const STEP: usize = 1000;

/// Trims for ever. What a sink loses by it is counted in its cursor, journalled and logged.
pub(crate) async fn now_and_then(driver: DriverHandle, entries_max: u64) {
    loop {
        tokio::time::sleep(TRIM_EVERY).await;
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
                let _ending = driver.tell(Fact::Noted { what: "sink-loss".to_owned(), detail }).await;
            }
            if !trimmed.more {
                break;
            }
        }
        let _ended = driver.ask(|driver| driver.store().checkpoint()).await;
    }
}
