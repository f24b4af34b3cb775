//! A rule that compares numbers with bounds: whatever a subject counts, above or below something for a time.

mod facts;
mod settings;
mod since;

#[expect(unsafe_code, reason = "generated: the exports of a component")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "alert-rule" });
    use super::Threshold;
    export!(Threshold with_types_in self);
}

use std::sync::{Mutex, OnceLock, PoisonError};

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::rule::{Finding, Guest as Rule, PluginError, Subject};
use bindings::latido::plugin::types::Attribute;
use settings::Bound;
use since::Since;

#[used]
#[expect(unsafe_code, reason = "a custom section is how the host finds the manifest")]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

static BOUNDS: OnceLock<Vec<Bound>> = OnceLock::new();
static SINCE: Mutex<Option<Since>> = Mutex::new(None);

struct Threshold;

impl Lifecycle for Threshold {
    fn describe() -> Description {
        Description {
            name: "threshold".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Finds subjects of which a number is beyond a bound for a time".into(),
            settings_schema: settings::schema(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        let bounds = settings::read(&settings).map_err(PluginError::InvalidConfig)?;
        BOUNDS.set(bounds).map_err(|_| PluginError::Other("configured twice".into()))
    }
}

impl Rule for Threshold {
    fn evaluate(now: u64, subjects: Vec<Subject>) -> Result<Vec<Finding>, PluginError> {
        let bounds = BOUNDS.get().map_or(&[][..], Vec::as_slice);
        let mut since = SINCE.lock().unwrap_or_else(PoisonError::into_inner);
        let since = since.get_or_insert_with(Since::load);
        since.forget_gone(now);
        let mut findings = Vec::new();
        for subject in &subjects {
            for bound in bounds.iter().filter(|bound| bound.is_about(subject)) {
                findings.extend(judge(subject, bound, now, since));
            }
        }
        since.keep();
        Ok(findings)
    }
}

/// The finding about one subject and one bound, if it is beyond it for long enough.
fn judge(subject: &Subject, bound: &Bound, now: u64, since: &mut Since) -> Option<Finding> {
    let beyond = facts::number(subject, &bound.fact, now).filter(|number| bound.is_beyond(*number));
    let Some(number) = beyond.filter(|_| !facts::is_at_rest(subject)) else {
        since.forget(&bound.key, &subject.name);
        return None;
    };
    let begun = since.begun(&bound.key, &subject.name, now);
    let for_ms = now.saturating_sub(begun);
    if for_ms < bound.for_ms {
        return None;
    }
    let (side, limit) = bound.told();
    let lasting = if for_ms >= 1000 { format!(", for {} s", for_ms / 1000) } else { String::new() };
    Some(Finding {
        key: bound.key.clone(),
        subject: subject.name.clone(),
        severity: bound.severity,
        summary: format!("{} of {} is {number}, {side} {limit}{lasting}", bound.fact, subject.name),
        attributes: vec![Attribute { key: bound.fact.clone(), value: number.to_string() }],
    })
}
