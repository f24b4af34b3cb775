//! Runs a recorded case again: what the plugin asks the host is answered as it was answered when it was recorded.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use latido_plugin_host::{Asked, RefusalKind, Ruling, Then};
use serde::Serialize;
use serde_json::Value;

use crate::case::{Case, CaseError};
use crate::matching::lines;
use crate::plugin::Plugin;
use crate::record::BEGINNING;
use crate::stage::{StageError, Workshop};
use crate::trial;

/// Why nothing was replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The case cannot be read.
    #[error("replay the case")]
    Case(#[source] CaseError),
    /// What was recorded beside it cannot be read.
    #[error("read {}, which was recorded beside the case", path.display())]
    Golden {
        /// the file
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// It is no record.
    #[error("take {}: {why}", path.display())]
    NoRecord {
        /// the file
        path: PathBuf,
        /// what is wrong
        why: String,
    },
    /// The plugin cannot be run at all.
    #[error("replay the case")]
    Stage(#[source] StageError),
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// calls that were made
    pub calls: usize,
    /// where what came differs from what was recorded; nothing: it does not
    pub differences: Vec<String>,
}

/// The name of the plugin that a case was recorded of, where it was recorded.
pub fn recorded_of(case: &Path) -> Option<String> {
    let text = fs::read_to_string(case).ok()?;
    let rest = text.lines().next()?.strip_prefix(BEGINNING)?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// Runs a recorded case with a component.
///
/// # Errors
///
/// Fails where nothing can be replayed.
pub fn replay(workshop: &Workshop, plugin: &Plugin, path: &Path) -> Result<Replayed, ReplayError> {
    let case = Case::read(path, plugin.kind).map_err(ReplayError::Case)?;
    let golden = path.with_extension("golden.json");
    let text = fs::read_to_string(&golden).map_err(|source| ReplayError::Golden { path: golden.clone(), source })?;
    let wrong = |why: String| ReplayError::NoRecord { path: golden.clone(), why };
    let recorded: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let Some(steps) = recorded.get("calls").and_then(Value::as_array) else {
        return Err(wrong("it has no `calls`".to_owned()));
    };
    let script = steps.iter().filter_map(|step| step.get("capabilities")?.as_array()).flatten().cloned().collect();
    let rules = Box::new(answers(script));
    // Under the name that it had: messages about it have that too.
    let plugin = Plugin { name: recorded_of(path).unwrap_or_else(|| plugin.name.clone()), ..plugin.clone() };
    let run = trial::run_by(&workshop.host, &plugin, &case, Some(rules));
    let report = workshop.runtime.block_on(run).map_err(ReplayError::Stage)?;
    let mut found = serde_json::to_string_pretty(&report.transcript).unwrap_or_default();
    found.push('\n');
    let mut differences = report.faults.clone();
    if found != text {
        differences.push(lines(&text, &found));
    }
    Ok(Replayed { calls: case.calls.len(), differences })
}

/// Answers each call as the next recorded one of its name was answered. One that was not recorded goes to the fresh database,
/// file or memory of the replay, and nowhere else.
fn answers(mut script: VecDeque<Value>) -> impl FnMut(&Asked) -> Option<Ruling> + Send {
    move |asked| {
        let name = format!("{}.{}", asked.interface, asked.function);
        let is_it = |call: &Value| call.get("call").and_then(Value::as_str) == Some(&name);
        let place = script.iter().position(is_it);
        let answer = place.and_then(|place| script.remove(place)).and_then(|call| call.get("answer").cloned());
        match answer {
            Some(answer @ Value::Object(_)) => Some(Then::Answer(answer).at_once()),
            // Nobody is asked for what was not recorded.
            _ if asked.interface == "http" => {
                Some(Then::Refuse(RefusalKind::Unreachable, "this request was not recorded".to_owned()).at_once())
            }
            _ => None,
        }
    }
}
