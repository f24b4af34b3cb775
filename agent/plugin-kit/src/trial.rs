//! Runs one case and says what came of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use latido_plugin_host::{CallError, Host, LoadError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;
use serde_json::{Value, json};

use crate::case::{Action, Call, Case, Expect, FileCheck, Query};
use crate::matching::{differences, lines};
use crate::onlooker::{Rules, SeenCall};
use crate::plugin::Plugin;
use crate::stage::{Place, Running, Setting, StageError};
use crate::told;

/// Steps of SQLite's machine after which a query of a case is looked at, and how often: one that never ends is ended.
const QUERY_STEPS: i32 = 1_000_000;
const QUERY_LOOKS: u32 = 100;

/// What came of a case, or of one trial of the conformance suite.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// its name
    pub name: String,
    /// what it shows, in words
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// what is wrong; nothing: it passes
    pub faults: Vec<String>,
    /// instructions that the plugin ran
    pub fuel: u64,
    /// the most memory that it had, in bytes
    pub memory: usize,
    /// capability calls
    pub capabilities: u64,
    /// what it logged
    pub logs: Vec<String>,
    /// how long it took, in milliseconds
    pub took_ms: u64,
    /// whether its golden file was written
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub updated: bool,
    #[serde(skip)]
    pub(crate) transcript: Value,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn passes(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Runs a case in a fresh place.
pub(crate) async fn run(host: &Host, plugin: &Plugin, case: &Case) -> Result<Report, StageError> {
    run_by(host, plugin, case, None).await
}

/// The same with rules that answer what the plugin asks before the case does.
pub(crate) async fn run_by(
    host: &Host,
    plugin: &Plugin,
    case: &Case,
    rules: Option<Rules>,
) -> Result<Report, StageError> {
    let place = Place::new(plugin)?;
    let mut trial = Trial {
        report: Report { name: case.name.clone(), about: case.about.clone(), ..Report::default() },
        steps: Vec::new(),
        place: &place,
    };
    trial.prepare(case);
    place.onlooker.follow(&case.deny, &case.http);
    place.onlooker.rule(rules);
    let setting = Setting::new(case.settings.clone(), case.now_ms, case.seed);
    let loaded = place.load(host, plugin, &setting).await;
    let mut calls = case.calls.iter();
    let running = match loaded {
        Ok(running) => {
            trial.took(None, "configure", &Ok(json!({})));
            if let Some(call) = case.calls.first().filter(|call| matches!(call.action, Action::Configure)) {
                trial.judge(call, &Ok(json!({})), &[]);
                calls.next();
            }
            Some(running)
        }
        Err(LoadError::Start { source, .. }) => {
            let answer = Err(source);
            let seen = trial.took(None, "configure", &answer);
            match case.calls.first().filter(|call| matches!(call.action, Action::Configure)) {
                Some(call) => trial.judge(call, &answer, &seen),
                None => trial.wrong(None, format!("it did not take its settings: {}", words(&answer))),
            }
            None
        }
        Err(error) => return Err(StageError::Load(error)),
    };
    if let Some(mut running) = running {
        for call in calls {
            let answer = running.call(&call.action).await;
            let seen = trial.took(Some(call), call.action.name(), &answer);
            trial.judge(call, &answer, &seen);
        }
        trial.end(plugin, case, &running);
    }
    let transcript = json!({ "calls": trial.steps });
    let text = place.without_folder(&transcript.to_string());
    let mut report = trial.report;
    report.transcript = serde_json::from_str(&text).unwrap_or(transcript);
    Ok(report)
}

struct Trial<'a> {
    report: Report,
    steps: Vec<Value>,
    place: &'a Place,
}

impl Trial<'_> {
    fn wrong(&mut self, line: Option<usize>, what: impl AsRef<str>) {
        let what = self.place.without_folder(what.as_ref());
        self.report.faults.push(match line {
            Some(line) => format!("line {line}: {what}"),
            None => what,
        });
    }

    fn prepare(&mut self, case: &Case) {
        for (name, text) in &case.workspace {
            if let Err(error) = self.place.lay(name, text) {
                self.wrong(None, format!("`workspace`: cannot write {name:?}: {error}"));
            }
        }
        for (key, value) in &case.state {
            if let Err(error) = self.place.keep(key, value) {
                self.wrong(None, format!("`state`: cannot {error}"));
            }
        }
    }

    /// Takes down what a call did.
    fn took(&mut self, call: Option<&Call>, name: &str, answer: &Result<Value, CallError>) -> Vec<SeenCall> {
        let (seen, logs) = (self.place.onlooker.take_calls(), self.place.onlooker.take_logs());
        let capabilities: Vec<Value> = seen
            .iter()
            .map(|call| json!({ "call": call.name, "arguments": call.arguments, "answer": call.answer }))
            .collect();
        self.steps.push(json!({
            "call": name, "answer": told::outcome(answer), "capabilities": capabilities, "logs": logs,
        }));
        self.report.logs.extend(logs);
        let line = call.map(|call| call.line);
        for (step, what) in self.place.onlooker.take_faults() {
            self.wrong(step.or(line), what);
        }
        seen
    }

    fn judge(&mut self, call: &Call, answer: &Result<Value, CallError>, seen: &[SeenCall]) {
        let name = call.action.name();
        match (&call.expect, answer) {
            (Expect::Answer, Ok(_)) => {}
            (Expect::Matches(expected), Ok(found)) => {
                for difference in differences(expected, found) {
                    self.wrong(Some(call.line), format!("`{name}`: {difference}"));
                }
            }
            (Expect::Error(expected, holds), Err(CallError::Plugin { answer: found, .. })) => {
                self.judge_error(call, (expected, holds.as_ref()), &told::error(found));
            }
            (Expect::Fault(class), Err(CallError::Fault(fault))) if fault.kind.class() == class => {}
            (Expect::Answer | Expect::Matches(_), found) => {
                self.wrong(Some(call.line), format!("`{name}`: expected an answer: {}", words(found)));
            }
            (Expect::Error(expected, _), found) => {
                self.wrong(Some(call.line), format!("`{name}`: expected the error {expected}: {}", words(found)));
            }
            (Expect::Fault(class), found) => {
                self.wrong(Some(call.line), format!("`{name}`: expected the fault {class}: {}", words(found)));
            }
        }
        if let Some(expected) = &call.capabilities {
            let found: Vec<&str> = seen.iter().map(|call| call.name.as_str()).collect();
            if expected != &found {
                let (expected, found) = (expected.join("\n"), found.join("\n"));
                let what = format!("`{name}`: its capability calls:\n{}", lines(&expected, &found));
                self.wrong(Some(call.line), what);
            }
        }
    }

    fn judge_error(&mut self, call: &Call, (expected, holds): (&str, Option<&Value>), found: &Value) {
        let case = found.as_object().and_then(|case| case.iter().next());
        let matches = case.is_some_and(|(name, value)| {
            name == expected
                && match (holds, value) {
                    (None, _) => true,
                    (Some(Value::String(words)), Value::String(text)) => text.contains(words.as_str()),
                    (Some(wanted), value) => wanted == value,
                }
        });
        if !matches {
            let wanted = holds.map_or_else(|| format!("`{expected}`"), |holds| format!("`{expected}` with {holds}"));
            let name = call.action.name();
            self.wrong(
                Some(call.line),
                format!("`{name}`: expected the error {wanted}, it answered the error {found}"),
            );
        }
    }

    /// Looks at what is there in the end, and at what was used.
    fn end(&mut self, plugin: &Plugin, case: &Case, running: &Running) {
        let asked = &plugin.manifest.requires;
        for query in &case.queries {
            if !asked.sql.contains(&query.database) {
                self.unasked(query.line, "database", &query.database, &asked.sql);
                continue;
            }
            match rows(&self.place.database(&query.database), query) {
                Err(why) => self.wrong(Some(query.line), format!("[[query]]: {why}")),
                Ok(rows) => {
                    for difference in differences(&json!({ "rows": query.rows }), &json!({ "rows": rows })) {
                        self.wrong(Some(query.line), format!("[[query]]: {difference}"));
                    }
                }
            }
        }
        for check in &case.files {
            if asked.files.contains(&check.name) {
                self.judge_file(check);
            } else {
                self.unasked(check.line, "file", &check.name, &asked.files);
            }
        }
        for line in self.place.onlooker.unused() {
            self.wrong(Some(line), "no request came for this [[http]]");
        }
        let (costs, count) = (running.costs(), self.place.onlooker.count());
        (self.report.fuel, self.report.memory, self.report.capabilities) = (costs.fuel, costs.memory_peak, count);
        let memory = costs.memory_peak as u64;
        for (name, limit, used) in [
            ("fuel", case.limits.fuel, costs.fuel),
            ("memory", case.limits.memory, memory),
            ("calls", case.limits.calls, count),
        ] {
            if let Some(limit) = limit.filter(|limit| used > *limit) {
                self.wrong(None, format!("it used {used} of `limits.{name}`, which is {limit}"));
            }
        }
    }

    fn unasked(&mut self, line: usize, what: &str, name: &str, asked: &BTreeSet<String>) {
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let asked = if asked.is_empty() { "none".to_owned() } else { asked.join(", ") };
        self.wrong(Some(line), format!("the plugin's manifest asks for no {what} `{name}`; it asks for {asked}"));
    }

    fn judge_file(&mut self, check: &FileCheck) {
        let bytes = fs::read(self.place.file(&check.name)).unwrap_or_default();
        let found = String::from_utf8_lossy(&bytes).into_owned();
        if let Some(expected) = check.text.as_ref().filter(|expected| **expected != found) {
            self.wrong(Some(check.line), format!("the file `{}`:\n{}", check.name, lines(expected, &found)));
        }
        if let Some(expected) = check.contains.as_ref().filter(|expected| !found.contains(expected.as_str())) {
            self.wrong(Some(check.line), format!("the file `{}` does not hold {expected:?}: {found:?}", check.name));
        }
    }
}

/// What came of a call, in words.
fn words(answer: &Result<Value, CallError>) -> String {
    match answer {
        Ok(answer) => format!("it answered {answer}"),
        Err(CallError::Plugin { answer, .. }) => format!("it answered the error {}", told::error(answer)),
        Err(CallError::Fault(fault)) => fault.to_string(),
    }
}

/// The rows of a query on a database that a plugin wrote.
pub(crate) fn rows(database: &Path, query: &Query) -> Result<Value, String> {
    let mut connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .map_err(|error| format!("the database `{}` cannot be opened: {error}", query.database))?;
    let mut looks = 0;
    let give_up = move || {
        looks += 1;
        looks > QUERY_LOOKS
    };
    let guarded = connection.progress_handler(QUERY_STEPS, Some(give_up));
    let read = || -> rusqlite::Result<Value> {
        guarded?;
        let mut statement = connection.prepare(&query.sql)?;
        let columns = statement.column_count();
        let mut found = Vec::new();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mut values = Vec::with_capacity(columns);
            for column in 0..columns {
                values.push(match row.get_ref(column)? {
                    ValueRef::Null => Value::Null,
                    ValueRef::Integer(number) => number.into(),
                    ValueRef::Real(number) => number.into(),
                    ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
                    ValueRef::Blob(bytes) => bytes.into(),
                });
            }
            found.push(Value::from(values));
        }
        Ok(found.into())
    };
    read().map_err(|error| format!("`{}` cannot be run: {error}", query.sql))
}
