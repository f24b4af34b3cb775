//! A rule that learns how long each subject is silent at most, and finds silence that is unusual for it before its ttl has
//! run out. It says what it compares with what.

mod learned;
mod settings;

#[expect(unsafe_code, reason = "generated: the exports of a component")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "alert-rule" });
    use super::Anomaly;
    export!(Anomaly with_types_in self);
}

use std::sync::{Mutex, OnceLock, PoisonError};

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::rule::{Finding, Guest as Rule, PluginError, Subject};
use bindings::latido::plugin::types::{Attribute, Verdict};
use learned::Learned;
use settings::Settings;

#[used]
#[expect(unsafe_code, reason = "a custom section is how the host finds the manifest")]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

static SETTINGS: OnceLock<Settings> = OnceLock::new();
static LEARNED: Mutex<Option<Learned>> = Mutex::new(None);

struct Anomaly;

impl Lifecycle for Anomaly {
    fn describe() -> Description {
        Description {
            name: "anomaly".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Learns how long a subject is silent, and finds unusual silence before the ttl".into(),
            settings_schema: settings::schema(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        let settings = settings::read(&settings).map_err(PluginError::InvalidConfig)?;
        SETTINGS.set(settings).map_err(|_| PluginError::Other("configured twice".into()))
    }
}

impl Rule for Anomaly {
    fn evaluate(now: u64, subjects: Vec<Subject>) -> Result<Vec<Finding>, PluginError> {
        let settings = SETTINGS.get().copied().unwrap_or(Settings::DEFAULT);
        let mut learned = LEARNED.lock().unwrap_or_else(PoisonError::into_inner);
        let learned = learned.get_or_insert_with(Learned::load);
        let findings = subjects.iter().filter_map(|subject| judge(subject, now, &settings, learned)).collect();
        learned.keep();
        Ok(findings)
    }
}

/// Looks at one subject, learns from it, and finds silence that is unusual for it.
fn judge(subject: &Subject, now: u64, settings: &Settings, learned: &mut Learned) -> Option<Finding> {
    let is_paused = subject.attributes.iter().any(|attribute| attribute.key == "phase" && attribute.value == "paused");
    // What is silent for its whole ttl is the business of `liveness`; who has not begun or has ended is not silent.
    let beats = matches!(subject.verdict, Verdict::Alive | Verdict::Late) && !is_paused;
    let silence = subject.silence.filter(|_| beats)?;
    let known = learned.look(&subject.name, now, silence, settings)?;
    let (silent_s, usual_s) = (silence as f64 / 1000.0, known.usual_ms as f64 / 1000.0);
    Some(Finding {
        key: "unusual-silence".into(),
        subject: subject.name.clone(),
        severity: settings.severity,
        summary: format!(
            "{} is silent for {silent_s} s, {:.1} times as long as usual: in {} looks it was silent for {usual_s} s at most",
            subject.name,
            silent_s / usual_s,
            known.looks
        ),
        attributes: vec![
            Attribute { key: "silence-s".into(), value: silent_s.to_string() },
            Attribute { key: "usual-s".into(), value: usual_s.to_string() },
            Attribute { key: "looks".into(), value: known.looks.to_string() },
        ],
    })
}
