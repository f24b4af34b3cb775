//! Sees what a plugin asks while it is tried out, and answers in the host's place where a case says so.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use latido_plugin_host::{Asked, Probe, RefusalKind, Ruling, Then};
use serde_json::{Value, json};

use crate::case::HttpStep;

/// Lines of a plugin's log that are kept: who writes more says nothing new.
const LOGS_MAX: usize = 1_000;

/// Calls whose arguments are kept.
const CALLS_MAX: usize = 10_000;

/// Rules on calls in the place of a case: the number of the call, and the call.
pub(crate) type Rules = Box<dyn FnMut(&Asked) -> Option<Ruling> + Send>;

/// What the probe has seen, and what it answers.
#[derive(Default)]
pub(crate) struct Onlooker {
    seen: Mutex<Seen>,
}

impl fmt::Debug for Onlooker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Onlooker").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Seen {
    calls: Vec<SeenCall>,
    count: u64,
    logs: Vec<String>,
    faults: Vec<(Option<usize>, String)>,
    deny: Vec<String>,
    /// the answers to requests; none: each is answered with 200
    http: Option<VecDeque<HttpStep>>,
    rules: Option<Rules>,
}

/// A call of a capability, and what it was answered.
#[derive(Clone, Debug)]
pub(crate) struct SeenCall {
    /// such as `sql.execute-all`
    pub(crate) name: String,
    pub(crate) arguments: Value,
    pub(crate) answer: Value,
    /// counted from when the plugin was loaded, from 1
    pub(crate) number: u64,
}

impl Onlooker {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses these interfaces, and answers requests with these steps alone.
    pub(crate) fn follow(&self, deny: &[String], http: &[HttpStep]) {
        let mut seen = self.lock();
        seen.deny = deny.to_vec();
        seen.http = Some(http.iter().cloned().collect());
    }

    /// Lets these rules answer before all else.
    pub(crate) fn rule(&self, rules: Option<Rules>) {
        self.lock().rules = rules;
    }

    /// The calls since it was asked last.
    pub(crate) fn take_calls(&self) -> Vec<SeenCall> {
        std::mem::take(&mut self.lock().calls)
    }

    /// The log since it was asked last.
    pub(crate) fn take_logs(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().logs)
    }

    /// What was wrong with requests: with the line of the step.
    pub(crate) fn take_faults(&self) -> Vec<(Option<usize>, String)> {
        std::mem::take(&mut self.lock().faults)
    }

    /// How many calls there were.
    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    /// Steps that no request has come for.
    pub(crate) fn unused(&self) -> Vec<usize> {
        self.lock().http.iter().flatten().map(|step| step.line).collect()
    }
}

impl Probe for Onlooker {
    fn asked(&self, asked: &Asked) -> Ruling {
        let mut seen = self.lock();
        seen.count += 1;
        if seen.calls.len() < CALLS_MAX {
            let name = format!("{}.{}", asked.interface, asked.function);
            let (arguments, answer) = (asked.arguments.clone(), json!("none: the plugin was ended"));
            seen.calls.push(SeenCall { name, arguments, answer, number: asked.number });
        }
        if let Some(ruling) = seen.rules.as_mut().and_then(|rules| rules(asked)) {
            return ruling;
        }
        if seen.deny.iter().any(|denied| denied == asked.interface) {
            return Then::Refuse(RefusalKind::Denied, format!("`{}` is denied", asked.interface)).at_once();
        }
        if asked.interface == "http" { seen.request(asked).at_once() } else { Then::CarryOut.at_once() }
    }

    fn answered(&self, asked: &Asked, answer: &Value) {
        let mut seen = self.lock();
        if let Some(call) = seen.calls.iter_mut().rev().find(|call| call.number == asked.number) {
            call.answer = answer.clone();
        }
    }

    fn logged(&self, level: &'static str, message: &str) {
        let mut seen = self.lock();
        if seen.logs.len() < LOGS_MAX {
            seen.logs.push(format!("{level}: {message}"));
        }
    }
}

impl Seen {
    fn request(&mut self, asked: &Asked) -> Then {
        let Some(steps) = &mut self.http else {
            return Then::Answer(json!({ "ok": { "status": 200, "headers": [], "body": "" } }));
        };
        let said = |key: &str| asked.arguments.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (method, url, body) = (said("method"), said("url"), said("body"));
        let Some(step) = steps.pop_front() else {
            self.faults.push((None, format!("it sent {method} {url}, and no [[http]] is left to answer it")));
            return Then::Refuse(RefusalKind::Failed, "the case answers no more requests".to_owned());
        };
        let mut wrong = |what: String| self.faults.push((Some(step.line), what));
        if let Some(expected) = step.method.as_ref().filter(|expected| **expected != method) {
            wrong(format!("a request: expected the method {expected}, found {method}"));
        }
        if let Some(expected) = step.url.as_ref().filter(|expected| **expected != url) {
            wrong(format!("a request: expected the address {expected}, found {url}"));
        }
        if let Some(expected) = step.body_contains.as_ref().filter(|expected| !body.contains(expected.as_str())) {
            wrong(format!("a request: expected a body with {expected:?}, found {body:?}"));
        }
        if let Some(way) = &step.fail {
            let refusal = RefusalKind::ALL.into_iter().find(|refusal| refusal.name() == way);
            return Then::Refuse(refusal.unwrap_or(RefusalKind::Failed), "as the case says".to_owned());
        }
        let headers: Vec<Value> = step.headers.iter().map(|(name, value)| json!([name, value])).collect();
        Then::Answer(json!({ "ok": { "status": step.status, "headers": headers, "body": step.body } }))
    }
}
