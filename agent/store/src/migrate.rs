//! Brings a database file to the shape this program knows; forward only.

use rusqlite::{Connection, TransactionBehavior};

/// Stands in the header of every database of latido ("lati"), so that another program's database is not taken for one.
pub(crate) const APPLICATION_ID: u32 = 0x6c61_7469;

/// Every step, in order. The version of a file is the number of steps it has taken.
const STEPS: [&str; 7] = [
    include_str!("../migrations/sqlite/0001_rows_and_journal.sql"),
    include_str!("../migrations/sqlite/0002_alert_standing.sql"),
    include_str!("../migrations/sqlite/0003_registry.sql"),
    include_str!("../migrations/sqlite/0004_beats.sql"),
    include_str!("../migrations/sqlite/0005_baseline.sql"),
    include_str!("../migrations/sqlite/0006_deaths.sql"),
    include_str!("../migrations/sqlite/0007_holder.sql"),
];

/// The version of a file that has taken every step.
pub(crate) const KNOWN: u32 = STEPS.len() as u32;

/// What the header of a database says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// nobody has written to it
    Empty,
    /// latido has, at this version
    Latido(u32),
    /// another program has
    Foreign,
}

/// Reads what the file is, without changing it, and all of it at one moment: another program may be making it.
pub(crate) fn origin(connection: &Connection) -> rusqlite::Result<Origin> {
    let connection = connection.unchecked_transaction()?;
    let application: u32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if application == APPLICATION_ID {
        return Ok(Origin::Latido(version));
    }
    let tables: u32 = connection.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
    Ok(if application == 0 && version == 0 && tables == 0 { Origin::Empty } else { Origin::Foreign })
}

/// Takes the steps that are missing, each as one transaction. Two programs that do so at once take each step once.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    for (done, step) in (0u32..).zip(STEPS) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version == done {
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", done + 1)?;
        }
        transaction.commit()?;
    }
    Ok(())
}
