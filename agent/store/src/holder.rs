//! Who writes. A store is taken by one agent after another, and whoever took it before another did writes nothing more: an
//! agent that slept while its lock was lost must not overwrite what its successor recorded.

use rusqlite::Connection;

/// What a handle is to the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Holder {
    /// it reads, and writes beside whoever holds the store
    #[default]
    Nobody,
    /// its next write takes the store
    Taking,
    /// it took the store, and has this number
    Numbered(i64),
}

/// Says what the handle is once this transaction is done; `None`: another has taken the store since.
pub(crate) fn hold(connection: &Connection, holder: Holder) -> rusqlite::Result<Option<Holder>> {
    match holder {
        Holder::Nobody => Ok(Some(holder)),
        Holder::Taking => {
            let sql = "update journal set holder = holder + 1 where one = 1 returning holder";
            let number = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            Ok(Some(Holder::Numbered(number)))
        }
        Holder::Numbered(number) => {
            let mut query = connection.prepare_cached("select holder from journal where one = 1")?;
            let found: i64 = query.query_row([], |row| row.get(0))?;
            Ok((found == number).then_some(holder))
        }
    }
}
