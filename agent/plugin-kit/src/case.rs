//! A case: what a plugin is called with, and what it has to answer. A file of TOML.

mod expect;
mod nouns;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use latido_plugin_host::{Entries, Kind, Output, Situation, Subject};
use serde_json::{Map, Value};

pub(crate) use expect::Expect;
pub(crate) use nouns::{KINDS, VERDICTS, field_name};
use table::{Node, Table, Wrong};

/// What a case's clock shows unless it says something else: 2026-01-01T00:00:00Z.
pub const NOW_MS: u64 = 1_767_225_600_000;

/// What a capability may be called in `deny`.
const CAPABILITIES: [&str; 5] = ["sql", "files", "http", "state", "workspace"];

/// Why a case cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// the file
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// It says what no case says.
    #[error("take {}:{line}: {what}", path.display())]
    Wrong {
        /// the file
        path: PathBuf,
        /// the line, from 1
        line: usize,
        /// what is wrong, and what was probably meant
        what: String,
    },
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name: the file's, without its ending.
    pub name: String,
    /// What it shows, in words.
    pub about: Option<String>,
    pub(crate) now_ms: u64,
    pub(crate) seed: u64,
    pub(crate) settings: Value,
    pub(crate) deny: Vec<String>,
    pub(crate) workspace: BTreeMap<String, String>,
    pub(crate) state: BTreeMap<String, String>,
    pub(crate) limits: Bounds,
    pub(crate) http: Vec<HttpStep>,
    pub(crate) calls: Vec<Call>,
    pub(crate) queries: Vec<Query>,
    pub(crate) files: Vec<FileCheck>,
}

/// What all calls of a case together may use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) fuel: Option<u64>,
    pub(crate) memory: Option<u64>,
    pub(crate) calls: Option<u64>,
}

/// The answer to one request, and what is expected of that.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpStep {
    pub(crate) line: usize,
    pub(crate) method: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) body_contains: Option<String>,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) fail: Option<String>,
}

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) line: usize,
    pub(crate) action: Action,
    pub(crate) expect: Expect,
    pub(crate) capabilities: Option<Vec<String>>,
}

/// What is called.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// What came of the settings.
    Configure,
    Write(Box<Entries>),
    Flush,
    Evaluate(u64, Vec<Subject>),
    Decide(Box<Situation>),
    Observe(Output),
    /// Another instance.
    Restart,
}

impl Action {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Write(_) => "write",
            Self::Flush => "flush",
            Self::Evaluate(..) => "evaluate",
            Self::Decide(_) => "decide",
            Self::Observe(_) => "observe",
            Self::Restart => "restart",
        }
    }

    /// The kind that has it; none where every kind has.
    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Configure | Self::Restart => None,
            Self::Write(_) | Self::Flush => Some(Kind::Sink),
            Self::Evaluate(..) => Some(Kind::Rule),
            Self::Decide(_) | Self::Observe(_) => Some(Kind::Strategy),
        }
    }
}

/// What a database holds in the end.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) line: usize,
    pub(crate) database: String,
    pub(crate) sql: String,
    pub(crate) rows: Value,
}

/// What a file holds in the end.
#[derive(Clone, Debug)]
pub(crate) struct FileCheck {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) text: Option<String>,
    pub(crate) contains: Option<String>,
}

impl Case {
    /// Reads a case for a plugin of this kind.
    ///
    /// # Errors
    ///
    /// Names the file and the line, and for a key that nobody knows the nearest one that is known.
    pub fn read(path: &Path, kind: Kind) -> Result<Self, CaseError> {
        let text = fs::read_to_string(path).map_err(|source| CaseError::Read { path: path.to_owned(), source })?;
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self::parse(&name, &text, kind).map_err(|Wrong { line, what }| CaseError::Wrong {
            path: path.to_owned(),
            line,
            what,
        })
    }

    /// Whether it has settings that the plugin is to take.
    pub(crate) fn takes_settings(&self) -> bool {
        let refuses = self.calls.first().is_some_and(|call| {
            matches!(call.action, Action::Configure) && !matches!(call.expect, Expect::Answer | Expect::Matches(_))
        });
        !refuses && self.settings.as_object().is_some_and(|settings| !settings.is_empty())
    }

    fn parse(name: &str, text: &str, kind: Kind) -> Result<Self, Wrong> {
        let mut table = Table::parse(text)?;
        let now_ms = table.time("now")?.unwrap_or(NOW_MS);
        let case = Self {
            name: name.to_owned(),
            about: table.text("about")?,
            now_ms,
            seed: table.whole("seed")?.unwrap_or(0),
            settings: settings(&mut table)?,
            deny: deny(&mut table)?,
            workspace: table.texts("workspace")?.into_iter().collect(),
            state: table.texts("state")?.into_iter().collect(),
            limits: limits(&mut table)?,
            http: table.list("http")?.into_iter().map(http).collect::<Result<_, _>>()?,
            calls: table.list("call")?.into_iter().map(|node| call(node, now_ms, kind)).collect::<Result<_, _>>()?,
            queries: table.list("query")?.into_iter().map(query).collect::<Result<_, _>>()?,
            files: table.list("file")?.into_iter().map(file).collect::<Result<_, _>>()?,
        };
        table.done()?;
        if case.calls.is_empty() {
            return Err(Wrong::at(1, "it has no [[call]]: a case calls the plugin at least once"));
        }
        let late = case.calls.iter().skip(1).find(|call| matches!(call.action, Action::Configure));
        match late {
            Some(call) => {
                Err(Wrong::at(call.line, "`configure` is the first call or none: `restart` configures again"))
            }
            None => Ok(case),
        }
    }
}

fn settings(table: &mut Table) -> Result<Value, Wrong> {
    let Some(node) = table.take("settings") else { return Ok(Value::Object(Map::new())) };
    let json = node.json();
    node.table()?;
    Ok(json)
}

fn deny(table: &mut Table) -> Result<Vec<String>, Wrong> {
    let mut denied = Vec::new();
    for node in table.list("deny")? {
        let line = node.line;
        let name = node.text()?;
        if !CAPABILITIES.contains(&name.as_str()) {
            let known = CAPABILITIES.join(", ");
            return Err(Wrong::at(line, format!("there is no capability `{name}` to deny; it is one of {known}")));
        }
        denied.push(name);
    }
    Ok(denied)
}

fn limits(table: &mut Table) -> Result<Bounds, Wrong> {
    let Some(node) = table.take("limits") else { return Ok(Bounds::default()) };
    let mut table = node.table()?;
    let bounds = Bounds { fuel: table.whole("fuel")?, memory: table.whole("memory")?, calls: table.whole("calls")? };
    table.done()?;
    Ok(bounds)
}

fn http(node: Node) -> Result<HttpStep, Wrong> {
    let line = node.line;
    let mut table = node.table()?;
    let status = table.small("status")?.unwrap_or(200);
    let step = HttpStep {
        line,
        method: table.text("method")?,
        url: table.text("url")?,
        body_contains: table.text("body_contains")?,
        status: u16::try_from(status)
            .map_err(|_| Wrong::at(line, format!("`status` is {status}; it is at most 999")))?,
        headers: table.texts("headers")?,
        body: table.text("body")?.unwrap_or_default(),
        fail: table.text("fail")?,
    };
    table.done()?;
    let ways = ["timeout", "unreachable", "too-large", "failed", "denied"];
    match &step.fail {
        Some(way) if !ways.contains(&way.as_str()) => {
            Err(Wrong::at(line, format!("`fail` is \"{way}\"; it is one of {}", ways.join(", "))))
        }
        Some(_) | None => Ok(step),
    }
}

fn call(node: Node, now: u64, kind: Kind) -> Result<Call, Wrong> {
    let line = node.line;
    let mut table = node.table()?;
    let mut actions = Vec::new();
    if table.take("configure").is_some() {
        actions.push(Action::Configure);
    }
    if let Some(node) = table.take("write") {
        actions.push(Action::Write(Box::new(nouns::batch(node, now)?)));
    }
    if table.take("flush").is_some() {
        actions.push(Action::Flush);
    }
    if let Some(node) = table.take("evaluate") {
        actions.push(evaluate(node, now)?);
    }
    if let Some(node) = table.take("decide") {
        actions.push(Action::Decide(Box::new(nouns::situation(node, now)?)));
    }
    if let Some(node) = table.take("observe") {
        actions.push(Action::Observe(nouns::output(node)?));
    }
    if table.take("restart").is_some() {
        actions.push(Action::Restart);
    }
    let expect = Expect::read(&mut table, line)?;
    let capabilities = table.take("capabilities").map(nouns::texts).transpose()?;
    table.done()?;
    let (Some(action), true) = (actions.pop(), actions.is_empty()) else {
        let known = "configure, write, flush, evaluate, decide, observe, restart";
        return Err(Wrong::at(line, format!("a [[call]] has one of {known}, and this one has not exactly one")));
    };
    match action.kind() {
        Some(other) if other != kind => {
            Err(Wrong::at(line, format!("a {kind} has no `{}`; a {other} has", action.name())))
        }
        Some(_) | None => Ok(Call { line, action, expect, capabilities }),
    }
}

fn evaluate(node: Node, now: u64) -> Result<Action, Wrong> {
    let mut table = node.table()?;
    let now = table.time("now")?.unwrap_or(now);
    let subjects = table.list("subjects")?.into_iter().map(|node| nouns::subject(node, now));
    let subjects = subjects.collect::<Result<_, _>>()?;
    table.done()?;
    Ok(Action::Evaluate(now, subjects))
}

fn query(node: Node) -> Result<Query, Wrong> {
    let line = node.line;
    let mut table = node.table()?;
    let query = Query {
        line,
        database: table.need("database")?.text()?,
        sql: table.need("sql")?.text()?,
        rows: table.need("rows")?.json(),
    };
    table.done()?;
    Ok(query)
}

fn file(node: Node) -> Result<FileCheck, Wrong> {
    let line = node.line;
    let mut table = node.table()?;
    let check = FileCheck {
        line,
        name: table.need("name")?.text()?,
        text: table.text("text")?,
        contains: table.text("contains")?,
    };
    table.done()?;
    Ok(check)
}
