//! The capabilities of 0.1, each carried out by that of 0.2: grants and limits are the same.

use super::super::same::{Same, cases, record};
use super::super::v0_2::sink::latido::plugin as new;
use super::super::v0_2::strategy::latido::plugin::workspace as new_workspace;
use super::sink::latido::plugin as old;
use super::strategy::latido::plugin::workspace as old_workspace;
use crate::capability::{sql as databases, workspace as directories};
use crate::guest::Guest;

use new::{files as new_files, http as new_http, log as new_log, sql as new_sql, state as new_state};
use old::{files as old_files, http as old_http, log as old_log, sql as old_sql, state as old_state};

cases!(old_log::Level => new_log::Level { Debug, Info, Warning, Error });
cases!(old_sql::Value => new_sql::Value { Null, Integer(value), Real(value), Text(value), Blob(value) });
cases!(new_sql::Value => old_sql::Value { Null, Integer(value), Real(value), Text(value), Blob(value) });
cases!(new_sql::SqlError => old_sql::SqlError { Denied(what), Busy, Full, Failed(why) });
cases!(new_files::FileError => old_files::FileError { Denied(what), Full, Failed(why) });
cases!(old_http::Part => new_http::Part { Plain(text), Secret(name) });
record!(old_http::Header => new_http::Header { name, value });
record!(new_http::ResponseHeader => old_http::ResponseHeader { name, value });
record!(new_http::Response => old_http::Response { status, headers, body });
record!(new_workspace::Entry => old_workspace::Entry { size, modified, directory });
cases!(new_workspace::WorkspaceError => old_workspace::WorkspaceError { Denied(what), NotFound, TooLarge, Failed(why) });

// Interfaces of nouns alone: nothing in them can be called.
impl old::types::Host for Guest {}
impl old::journal::Host for Guest {}

impl old_log::Host for Guest {
    async fn write(&mut self, level: old_log::Level, message: String) {
        new_log::Host::write(self, level.same(), message).await;
    }
}

impl old_sql::Host for Guest {
    async fn execute(
        &mut self,
        database: String,
        statement: String,
        rows: Vec<Vec<old_sql::Value>>,
    ) -> Result<u64, old_sql::SqlError> {
        databases::execute_each(self, database, statement, rows.same()).await.map_err(Same::same)
    }

    async fn query(
        &mut self,
        database: String,
        statement: String,
        parameters: Vec<old_sql::Value>,
    ) -> Result<Vec<Vec<old_sql::Value>>, old_sql::SqlError> {
        let answer = new_sql::Host::query(self, database, statement, parameters.same()).await;
        answer.map(Same::same).map_err(Same::same)
    }
}

impl old_files::Host for Guest {
    async fn append(&mut self, file: String, lines: Vec<String>) -> Result<(), old_files::FileError> {
        if lines.iter().any(|line| line.contains('\n')) {
            return Err(old_files::FileError::Failed("a line holds a line feed".to_owned()));
        }
        let lines = lines.into_iter().map(|line| line + "\n").collect();
        new_files::Host::append(self, file, lines).await.map_err(Same::same)
    }
}

impl old_http::Host for Guest {
    /// One request and its answer: a redirect is answered with.
    async fn send(&mut self, request: old_http::Request) -> Result<old_http::Response, old_http::HttpError> {
        let old_http::Request { method, url, headers, body, signature } = request;
        let body = if body.is_empty() { Vec::new() } else { vec![new_http::BodyPart::Bytes(body)] };
        let request = new_http::Request {
            method,
            url: url.same(),
            headers: headers.same(),
            body,
            signature: signature.same(),
            within: None,
            redirects: 0,
        };
        new_http::Host::send(self, request).await.map(Same::same).map_err(Same::same)
    }
}

impl Same<new_http::Signature> for old_http::Signature {
    fn same(self) -> new_http::Signature {
        let Self { header, prefix, secret } = self;
        new_http::Signature {
            algorithm: "hmac-sha256".to_owned(),
            secret,
            before: String::new(),
            header,
            prefix,
            form: new_http::SignatureForm::Hex,
        }
    }
}

impl Same<old_http::HttpError> for new_http::HttpError {
    fn same(self) -> old_http::HttpError {
        match self {
            Self::Denied(what) => old_http::HttpError::Denied(what),
            Self::Timeout => old_http::HttpError::Timeout,
            // 0.1 has no other case with words.
            Self::Unreachable(why) | Self::Failed(why) => old_http::HttpError::Unreachable(why),
            Self::TooLarge => old_http::HttpError::TooLarge,
        }
    }
}

impl old_state::Host for Guest {
    async fn get(&mut self, key: String) -> Result<Option<Vec<u8>>, old_state::StateError> {
        new_state::Host::get(self, key).await.map_err(Same::same)
    }

    async fn set(&mut self, key: String, value: Option<Vec<u8>>) -> Result<(), old_state::StateError> {
        new_state::Host::set(self, key, value).await.map_err(Same::same)
    }
}

impl Same<old_state::StateError> for new_state::StateError {
    fn same(self) -> old_state::StateError {
        match self {
            // 0.1 has no other case with words.
            Self::Denied(why) | Self::Failed(why) => old_state::StateError::Denied(why),
            Self::Full => old_state::StateError::Full,
        }
    }
}

impl old_workspace::Host for Guest {
    async fn look(&mut self, path: String) -> Result<old_workspace::Entry, old_workspace::WorkspaceError> {
        new_workspace::Host::look(self, path).await.map(Same::same).map_err(Same::same)
    }

    async fn read(&mut self, path: String) -> Result<Vec<u8>, old_workspace::WorkspaceError> {
        directories::read_whole(self, path).await.map_err(Same::same)
    }
}
