//! A rule of 0.1: finds every subject that is stale, in the words of that version, and counts its calls in `state`.

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit/released/latido-0.1.0.wit", world: "alert-rule" });
    use super::Old;
    export!(Old with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::rule::{Attribute, Finding, Guest as Rule, PluginError, Subject};
use bindings::latido::plugin::journal::Severity;
use bindings::latido::plugin::state;
use bindings::latido::plugin::types::Verdict;

#[used]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

struct Old;

impl Lifecycle for Old {
    fn describe() -> Description {
        Description {
            name: "old-rule".into(),
            version: "0.1.0".into(),
            summary: "Finds what is stale".into(),
            settings_schema: "{}".into(),
        }
    }

    fn configure(_settings: String) -> Result<(), PluginError> {
        Ok(())
    }
}

impl Rule for Old {
    fn evaluate(now: u64, subjects: Vec<Subject>) -> Result<Vec<Finding>, PluginError> {
        let kept = state::get("calls").map_err(|error| PluginError::Denied(format!("{error:?}")))?;
        let calls = kept.map_or(0, |value| value[0]) + 1;
        state::set("calls", Some(&[calls])).map_err(|error| PluginError::Denied(format!("{error:?}")))?;
        let stale = subjects.into_iter().filter(|subject| subject.verdict == Verdict::Stale);
        let finding = |subject: Subject| Finding {
            key: "stale".into(),
            severity: Severity::Critical,
            summary: format!("{subject:?}"),
            attributes: vec![
                Attribute { key: "now".into(), value: now.to_string() },
                Attribute { key: "call".into(), value: calls.to_string() },
            ],
            subject: subject.name,
        };
        Ok(stale.map(finding).collect())
    }
}
