//! What has to come of a call: an answer, an error, a fault.

use serde_json::Value;

use super::table::{Table, Wrong};

/// What has to come of a call.
#[derive(Clone, Debug)]
pub(crate) enum Expect {
    /// Any answer that is none of the others.
    Answer,
    /// An answer that holds this.
    Matches(Value),
    /// The plugin's own error: its name, and what it holds.
    Error(String, Option<Value>),
    /// A fault of this class.
    Fault(String),
}

/// The names of a plugin's own errors.
const ERRORS: [&str; 6] = ["invalid-config", "retry-after", "retry", "permanent", "denied", "other"];

/// The classes of faults, as cases name them, and the host.
const FAULTS: [(&str, &str); 8] = [
    ("trap", "trap"),
    ("cpu", "cpu-deadline"),
    ("wall", "wall-deadline"),
    ("memory", "memory"),
    ("exit", "exit"),
    ("bad-answer", "bad-answer"),
    ("cpu-deadline", "cpu-deadline"),
    ("wall-deadline", "wall-deadline"),
];

impl Expect {
    /// Reads what is expected of a call; nothing is any answer.
    pub(super) fn read(table: &mut Table, line: usize) -> Result<Self, Wrong> {
        let mut found = Vec::new();
        if let Some(node) = table.take("expect") {
            found.push(Self::Matches(node.json()));
        }
        if let Some(node) = table.take("error") {
            let line = node.line;
            let given = node.json();
            let case = given.as_object().filter(|case| case.len() == 1).and_then(|case| case.iter().next());
            let (name, value) = match (case, given.as_str()) {
                (Some((name, value)), _) => (name.clone(), Some(value.clone())),
                (None, Some(name)) => (name.to_owned(), None),
                (None, None) => return Err(Wrong::at(line, format!("`error` is one of {}", ERRORS.join(", ")))),
            };
            let name = name.replace('_', "-");
            if !ERRORS.contains(&name.as_str()) {
                return Err(Wrong::at(line, format!("there is no error `{name}`; it is one of {}", ERRORS.join(", "))));
            }
            found.push(Self::Error(name, value));
        }
        if let Some(node) = table.take("fault") {
            let line = node.line;
            let name = node.text()?;
            let Some((_, class)) = FAULTS.iter().find(|(known, _)| *known == name) else {
                let known: Vec<&str> = FAULTS.iter().take(6).map(|(known, _)| *known).collect();
                return Err(Wrong::at(line, format!("there is no fault `{name}`; it is one of {}", known.join(", "))));
            };
            found.push(Self::Fault((*class).to_owned()));
        }
        match (found.pop(), found.is_empty()) {
            (None, _) => Ok(Self::Answer),
            (Some(expect), true) => Ok(expect),
            (Some(_), false) => {
                Err(Wrong::at(line, "a [[call]] has one of expect, error, fault, and this one has more"))
            }
        }
    }
}
