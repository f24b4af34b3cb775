//! Takes down what a plugin is called with, asks and answers, and makes a case of it.
//!
//! What is recorded begins with a new instance, so that what is made of it begins where the record does.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use latido_plugin_host::{
    Acknowledgement, Asked, CallError, Decision, Entries, Finding, Probe, Ruling, Situation, Subject, Then,
};
use serde_json::{Map, Value, json};

use crate::{inputs, told};

/// Calls and bytes that a record has at most: somebody is to read it.
const CALLS_MAX: usize = 200;
const BYTES_MAX: usize = 4 << 20;

/// What stands in the place of what is left out.
const LEFT_OUT: &str = "***";

/// The words with which a recorded case begins; the plugin's name and kind follow.
pub(crate) const BEGINNING: &str = "# recorded by `latido plugin record` of";

/// Knows what is not to be taken down.
pub trait Clean: fmt::Debug + Send + Sync {
    /// A text without the secrets in it.
    fn text(&self, text: &str) -> String;

    /// Whether what is called so is a secret.
    fn is_secret(&self, name: &str) -> bool;
}

/// Takes down what a plugin does. It looks on and changes nothing.
#[derive(Debug)]
pub struct Recorder {
    clean: Box<dyn Clean>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// calls of the plugin, the first of which is that of its settings
    steps: Vec<Value>,
    inputs: Vec<Map<String, Value>>,
    /// calls of capabilities in the call that is under way
    asked: Vec<(u64, Value)>,
    logs: Vec<String>,
    bytes: usize,
    is_over: bool,
}

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// the case, in TOML
    pub case: String,
    /// its golden file: each call with its answer, and what the plugin asked the host meanwhile
    pub golden: String,
    /// calls in it
    pub calls: usize,
    /// whether it is full: what came later is not in it
    pub is_cut: bool,
}

impl Recorder {
    /// Nothing recorded yet.
    pub fn new(clean: Box<dyn Clean>) -> Self {
        Self { clean, seen: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing more is taken down.
    pub fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Takes down nothing more.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    /// The plugin was loaded, and has taken its settings.
    pub fn loaded(&self) {
        let mut seen = self.lock();
        if seen.steps.is_empty() {
            seen.step("configure", json!({}));
        }
    }

    /// A sink was given a batch.
    pub fn wrote(&self, entries: &Entries, answer: &Result<Acknowledgement, CallError>) {
        let answer = answer.as_ref().map(told::acknowledgement).map_err(Clone::clone);
        self.called("write", || inputs::batch(entries), &answer);
    }

    /// A rule was asked.
    pub fn evaluated(&self, (now_ms, subjects): (u64, &[Subject]), answer: &Result<Vec<Finding>, CallError>) {
        let answer = answer.as_ref().map(|found| told::findings(found)).map_err(Clone::clone);
        self.called("evaluate", || inputs::evaluation(now_ms, subjects), &answer);
    }

    /// A strategy was asked.
    pub fn decided(&self, situation: &Situation, answer: &Result<Decision, CallError>) {
        let answer = answer.as_ref().map(told::decision).map_err(Clone::clone);
        self.called("decide", || inputs::situation(situation), &answer);
    }

    fn called(&self, function: &'static str, input: impl FnOnce() -> Value, answer: &Result<Value, CallError>) {
        let mut seen = self.lock();
        if seen.is_over || seen.steps.is_empty() {
            return;
        }
        let input = self.cleaned(input());
        let outcome = self.cleaned(told::outcome(answer));
        seen.bytes += input.to_string().len();
        let mut call = Map::new();
        call.insert(function.to_owned(), input);
        match answer {
            Ok(_) => {}
            Err(CallError::Plugin { .. }) => {
                call.insert("error".to_owned(), outcome.get("error").cloned().unwrap_or_default());
            }
            Err(CallError::Fault(fault)) => {
                call.insert("fault".to_owned(), fault.kind.class().into());
            }
        }
        seen.inputs.push(call);
        seen.step(function, outcome);
        seen.is_over = seen.inputs.len() >= CALLS_MAX || seen.bytes >= BYTES_MAX;
    }

    /// The value without secrets: texts that are called so, and what texts hold of them.
    fn cleaned(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.clean.text(&text).into(),
            Value::Array(values) => match values.as_slice() {
                // A header, or whatever else is a pair of a name and a text.
                [Value::String(name), Value::String(_)] if self.clean.is_secret(name) => json!([name, LEFT_OUT]),
                _ => values.into_iter().map(|value| self.cleaned(value)).collect(),
            },
            Value::Object(table) => {
                let cleaned = table.into_iter().map(|(name, value)| {
                    let is_secret = value.is_string() && self.clean.is_secret(&name);
                    let value = if is_secret { LEFT_OUT.into() } else { self.cleaned(value) };
                    (name, value)
                });
                Value::Object(cleaned.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    /// What was recorded of this plugin of this kind, with these settings, from this moment on.
    pub fn finish(&self, (name, kind): (&str, &str), settings: &Value, now_ms: u64) -> Recorded {
        let mut seen = self.lock();
        let is_cut = std::mem::replace(&mut seen.is_over, true);
        let mut case = Map::new();
        case.insert("now".to_owned(), now_ms.into());
        case.insert("settings".to_owned(), self.cleaned(settings.clone()));
        case.insert("call".to_owned(), seen.inputs.iter().cloned().map(Value::Object).collect());
        let case = in_toml(Value::Object(case)).and_then(|case| toml::to_string(&case).ok()).unwrap_or_default();
        let mut golden = serde_json::to_string_pretty(&json!({ "calls": seen.steps })).unwrap_or_default();
        golden.push('\n');
        let head = format!(
            "{BEGINNING} {name} {kind}\n# Secrets are left out. `latido plugin replay` answers what it asks as it was answered.\n"
        );
        Recorded { case: format!("{head}{case}"), golden, calls: seen.inputs.len(), is_cut }
    }
}

impl Seen {
    fn step(&mut self, function: &str, answer: Value) {
        let asked: Vec<Value> = self.asked.drain(..).map(|(_, asked)| asked).collect();
        let logs = std::mem::take(&mut self.logs);
        self.bytes += answer.to_string().len();
        self.steps.push(json!({ "call": function, "answer": answer, "capabilities": asked, "logs": logs }));
    }
}

impl Probe for Recorder {
    fn asked(&self, asked: &Asked) -> Ruling {
        let mut seen = self.lock();
        if !seen.is_over && seen.bytes < BYTES_MAX {
            let call = json!({
                "call": format!("{}.{}", asked.interface, asked.function),
                "arguments": self.cleaned(asked.arguments.clone()),
                "answer": "none: the plugin was ended",
            });
            // Counted at once: a plugin may ask without an end within one call.
            seen.bytes += call.to_string().len();
            seen.asked.push((asked.number, call));
        }
        Then::CarryOut.at_once()
    }

    fn answered(&self, asked: &Asked, answer: &Value) {
        let mut seen = self.lock();
        let call = seen.asked.iter_mut().rev().find(|(number, _)| *number == asked.number);
        if let Some(slot) = call.and_then(|(_, call)| call.get_mut("answer")) {
            *slot = self.cleaned(answer.clone());
            let length = slot.to_string().len();
            seen.bytes += length;
        }
    }

    fn logged(&self, level: &'static str, message: &str) {
        let mut seen = self.lock();
        if !seen.is_over && seen.bytes < BYTES_MAX {
            let line = format!("{level}: {}", self.clean.text(message));
            seen.bytes += line.len();
            seen.logs.push(line);
        }
    }
}

/// The same in TOML, which has no nothing.
fn in_toml(value: Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => flag.into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.into(),
        Value::Array(values) => toml::Value::Array(values.into_iter().filter_map(in_toml).collect()),
        Value::Object(table) => {
            let pairs = table.into_iter().filter_map(|(name, value)| Some((name, in_toml(value)?)));
            toml::Value::Table(pairs.collect())
        }
    })
}
