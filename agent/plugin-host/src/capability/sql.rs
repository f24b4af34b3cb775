//! `sql`: SQLite databases by name, with an authorizer that lets through what is known to stay inside the file.

mod authorizer;
mod rows;
mod size;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, ToSql};
use serde_json::json;
use tokio::sync::Mutex;

use super::FileId;
use crate::bindings::v0_2::sink::latido::plugin::sql::{Host, SqlError, Step, Value};
use crate::guest::Guest;
use crate::probe::sql_row;
use crate::spec::{Durability, Limits, SqlGrant};
use authorizer::Authorizer;
use rows::Packed;

/// Statements that stay prepared in one database: a sink has about one for each kind of entry.
const STATEMENTS: usize = 32;

/// How long a statement waits for another process's lock. Shorter than every wall limit, so that `busy` is answered.
const BUSY: Duration = Duration::from_secs(1);

/// How many instructions of SQLite's machine pass between two looks at whether the call was given up.
const LOOK_EVERY: i32 = 10_000;

/// Rows of one result. Each costs the guest an allocation.
const RESULT_ROWS: usize = 100_000;

/// Limits on what one statement may be, all far above what a sink needs and far below SQLite's own.
const STATEMENT_LIMITS: [(Limit, i32); 9] = [
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LENGTH, 16 << 20),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 256 << 10),
    (Limit::SQLITE_LIMIT_COLUMN, 500),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 50),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 10),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Rows of values as guests have them one by one.
pub(crate) type Rows = Vec<Vec<Value>>;

/// A database that was granted; opened at the first use.
pub(crate) struct Database {
    grant: SqlGrant,
    pages: u32,
    result_max: usize,
    /// The lock is waited for without a thread, and held by the one that works.
    open: Arc<Mutex<Option<Open>>>,
    /// its file was moved away or removed since the instance that uses it was made
    moved: Arc<AtomicBool>,
}

struct Open {
    connection: Connection,
    authorizer: Authorizer,
    log: size::Log,
    /// the file as it was when it was opened
    file: Option<FileId>,
}

impl Database {
    pub(crate) fn new(grant: SqlGrant, limits: &Limits) -> Self {
        Self {
            grant,
            pages: limits.sql_pages,
            result_max: limits.sql_result,
            open: Arc::default(),
            moved: Arc::default(),
        }
    }

    /// Whether its file was moved away or removed, once. What an instance had made ready in it is not in the next one.
    pub(crate) fn take_moved(&self) -> bool {
        self.moved.swap(false, Ordering::Relaxed)
    }

    /// Works with the database on a thread that may block. When the call is given up, the work is interrupted and rolled
    /// back.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Open) -> Result<T, SqlError> + Send + 'static,
    ) -> Result<T, SqlError> {
        let mut slot = Arc::clone(&self.open).lock_owned().await;
        let (grant, pages) = (self.grant.clone(), self.pages);
        let given_up = GivenUp(Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&given_up.0);
        let moved = Arc::clone(&self.moved);
        let done = tokio::task::spawn_blocking(move || {
            // Moved away or removed from outside: what is written there reaches nobody.
            if slot.as_ref().is_some_and(|open| !open.file.is_some_and(|file| file.is_at(&grant.path))) {
                *slot = None;
                moved.store(true, Ordering::Relaxed);
                return Err(SqlError::Failed("its file was moved away or removed; the plugin begins anew".into()));
            }
            if slot.is_none() {
                *slot = Some(open(&grant, pages)?);
            }
            let Some(database) = slot.as_mut() else { return Err(SqlError::Failed("the database is not open".into())) };
            let look = move || flag.load(Ordering::Relaxed);
            database.connection.progress_handler(LOOK_EVERY, Some(look)).map_err(|error| failed(&error, None))?;
            work(database)
        })
        .await;
        drop(given_up);
        done.unwrap_or_else(|_| Err(SqlError::Failed("the host failed at the statement".into())))
    }
}

/// Tells the thread that works when nobody waits for its answer any longer.
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs one statement once for each row of parameters, all in one transaction, and says how many rows it changed.
pub(crate) async fn execute_each(
    guest: &mut Guest,
    database: String,
    statement: String,
    rows: Rows,
) -> Result<u64, SqlError> {
    let Some(watch) = guest.watch() else { return execute_rows(guest, database, statement, rows).await };
    let mut arguments = json!({ "database": database, "statement": statement });
    match rows.as_slice() {
        [row] => arguments["parameters"] = sql_row(row),
        rows => arguments["rows"] = rows.iter().map(|row| sql_row(row)).collect(),
    }
    watch.around("sql", "execute", arguments, execute_rows(guest, database, statement, rows)).await
}

async fn execute_rows(guest: &mut Guest, database: String, statement: String, rows: Rows) -> Result<u64, SqlError> {
    let Some(granted) = guest.capabilities.databases.get(&database) else { return Err(not_granted(&database)) };
    granted
        .with(move |open| {
            in_transaction(open, |connection, refused| {
                let mut prepared = connection.prepare_cached(&statement).map_err(|error| refused(&error))?;
                let mut changed = 0;
                for row in &rows {
                    bind(&mut prepared, row, refused)?;
                    changed += prepared.raw_execute().map_err(|error| refused(&error))? as u64;
                }
                Ok(changed)
            })
        })
        .await
}

impl Host for Guest {
    async fn execute(&mut self, database: String, statement: String, parameters: Vec<Value>) -> Result<u64, SqlError> {
        execute_each(self, database, statement, vec![parameters]).await
    }

    async fn execute_all(&mut self, database: String, steps: Vec<Step>) -> Result<u64, SqlError> {
        let Some(watch) = self.watch() else { return execute_steps(self, database, steps).await };
        let told = |step: &Step| json!({ "statement": step.statement, "rows": rows::told(&step.rows) });
        let arguments = json!({ "database": database, "steps": steps.iter().map(told).collect::<Vec<_>>() });
        watch.around("sql", "execute-all", arguments, execute_steps(self, database, steps)).await
    }

    async fn query(&mut self, database: String, statement: String, parameters: Vec<Value>) -> Result<Rows, SqlError> {
        let Some(watch) = self.watch() else { return query_rows(self, database, statement, parameters).await };
        let arguments = json!({ "database": database, "statement": statement, "parameters": sql_row(&parameters) });
        watch.around("sql", "query", arguments, query_rows(self, database, statement, parameters)).await
    }
}

async fn execute_steps(guest: &mut Guest, database: String, steps: Vec<Step>) -> Result<u64, SqlError> {
    let Some(granted) = guest.capabilities.databases.get(&database) else { return Err(not_granted(&database)) };
    granted.with(move |open| in_transaction(open, |connection, refused| run_all(connection, &steps, refused))).await
}

async fn query_rows(
    guest: &mut Guest,
    database: String,
    statement: String,
    parameters: Vec<Value>,
) -> Result<Rows, SqlError> {
    let Some(granted) = guest.capabilities.databases.get(&database) else { return Err(not_granted(&database)) };
    let result_max = granted.result_max;
    granted.with(move |open| query(open, &statement, &parameters, result_max)).await
}

fn not_granted(database: &str) -> SqlError {
    SqlError::Denied(format!("the database `{database}` is not granted"))
}

/// Opens a database, sets what the host decides, and only then puts the authorizer in its place.
fn open(grant: &SqlGrant, pages: u32) -> Result<Open, SqlError> {
    let mut connection = Connection::open(&grant.path).map_err(|error| opening(&grant.path, &error))?;
    let authorizer = Authorizer::default();
    set_up(&mut connection, grant.durability, pages, &authorizer).map_err(|error| opening(&grant.path, &error))?;
    let file = std::fs::metadata(&grant.path).ok().map(|found| FileId::of(&found));
    // SQLite puts the log beside the file itself, where a link may have led elsewhere.
    let log = size::Log::of(connection.path().map_or(grant.path.as_path(), Path::new));
    Ok(Open { connection, authorizer, log, file })
}

fn opening(path: &Path, error: &rusqlite::Error) -> SqlError {
    match failed(error, None) {
        SqlError::Failed(why) => SqlError::Failed(format!("cannot open {}: {why}", path.display())),
        known @ (SqlError::Denied(_) | SqlError::Busy | SqlError::Full) => known,
    }
}

fn set_up(
    connection: &mut Connection,
    durability: Durability,
    pages: u32,
    authorizer: &Authorizer,
) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    size::prepare(connection)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    let synchronous = match durability {
        Durability::Disk => "FULL",
        Durability::Process => "NORMAL",
    };
    connection.execute_batch(&format!("PRAGMA synchronous = {synchronous}; PRAGMA temp_store = MEMORY"))?;
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    for (limit, value) in STATEMENT_LIMITS {
        connection.set_limit(limit, value)?;
    }
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    let judge = authorizer.clone();
    connection.authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| judge.judge(&context)))
}

/// Does the work in one transaction. Whatever fails rolls all of it back.
fn in_transaction(
    open: &mut Open,
    work: impl FnOnce(&Connection, &dyn Fn(&rusqlite::Error) -> SqlError) -> Result<u64, SqlError>,
) -> Result<u64, SqlError> {
    let Open { connection, authorizer, log, file: _ } = open;
    authorizer.trusted(|| log.keep_short(connection))?;
    let refused = |error: &rusqlite::Error| failed(error, authorizer.refused());
    let transaction = authorizer
        .trusted(|| connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate))
        .map_err(|error| refused(&error))?;
    match work(&transaction, &refused) {
        Ok(changed) => {
            authorizer.trusted(|| transaction.commit()).map_err(|error| refused(&error))?;
            authorizer.trusted(|| size::give_back(connection));
            Ok(changed)
        }
        Err(error) => {
            // A rollback that fails has nothing left to undo, or the connection is of no more use; both show next time.
            drop(authorizer.trusted(|| transaction.rollback()));
            Err(error)
        }
    }
}

/// Runs each step's statement once for each of its rows.
fn run_all(
    connection: &Connection,
    steps: &[Step],
    refused: &dyn Fn(&rusqlite::Error) -> SqlError,
) -> Result<u64, SqlError> {
    let mut changed = 0_u64;
    for step in steps {
        let mut rows = Packed::of(&step.rows);
        let mut prepared = connection.prepare_cached(&step.statement).map_err(|error| refused(&error))?;
        for _ in 0..rows.count()? {
            rows.bind(&mut prepared, refused)?;
            changed += prepared.raw_execute().map_err(|error| refused(&error))? as u64;
        }
    }
    Ok(changed)
}

/// Runs a statement that only reads.
fn query(open: &mut Open, statement: &str, parameters: &[Value], result_max: usize) -> Result<Rows, SqlError> {
    let Open { connection, authorizer, log: _, file: _ } = open;
    let refused = |error: &rusqlite::Error| failed(error, authorizer.refused());
    let mut prepared = connection.prepare_cached(statement).map_err(|error| refused(&error))?;
    if !prepared.readonly() {
        return Err(SqlError::Denied("`query` runs statements that only read; `execute` runs the others".to_owned()));
    }
    bind(&mut prepared, parameters, &refused)?;
    let columns = prepared.column_count();
    let mut result = Rows::new();
    let mut size = 0_usize;
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(|error| refused(&error))? {
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            let value = value(row.get_ref(column).map_err(|error| refused(&error))?)?;
            size += size_of::<Value>() + length(&value);
            values.push(value);
        }
        size += size_of::<Vec<Value>>();
        if size > result_max || result.len() >= RESULT_ROWS {
            return Err(SqlError::Failed(format!("the result exceeds {result_max} bytes or {RESULT_ROWS} rows")));
        }
        result.push(values);
    }
    Ok(result)
}

fn bind(
    statement: &mut CachedStatement<'_>,
    row: &[Value],
    refused: &dyn Fn(&rusqlite::Error) -> SqlError,
) -> Result<(), SqlError> {
    if row.len() != statement.parameter_count() {
        let expected = statement.parameter_count();
        return Err(SqlError::Failed(format!("the statement has {expected} parameters, a row has {}", row.len())));
    }
    for (index, value) in row.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, Parameter(value)).map_err(|error| refused(&error))?;
    }
    Ok(())
}

/// A guest's value on its way into a statement.
struct Parameter<'a>(&'a Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::Real(value) => ValueRef::Real(*value),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
            Value::Blob(value) => ValueRef::Blob(value),
        }))
    }
}

/// A value of the database on its way to the guest. Text that is not UTF-8 is an error, not a panic.
fn value(value: ValueRef<'_>) -> Result<Value, SqlError> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => return Err(SqlError::Failed("a text in the result is not UTF-8".to_owned())),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    })
}

fn length(value: &Value) -> usize {
    match value {
        Value::Null | Value::Integer(_) | Value::Real(_) => 0,
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
    }
}

/// Says to the guest what went wrong. What the authorizer refused goes before SQLite's words for it.
fn failed(error: &rusqlite::Error, refused: Option<String>) -> SqlError {
    if let Some(what) = refused {
        return SqlError::Denied(what);
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => SqlError::Busy,
        Some(ErrorCode::DiskFull) => SqlError::Full,
        Some(_) | None => SqlError::Failed(error.to_string()),
    }
}
