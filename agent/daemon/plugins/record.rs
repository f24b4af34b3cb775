//! Records what a plugin is called with and answers, for `latido plugin record`.
//!
//! The plugin is loaded again with somebody who looks on, and once more without when it is over: an agent that records
//! nothing pays nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use latido_plugin_host::Secret;
use latido_plugin_kit::{Clean, Recorded, Recorder};
use latido_protocol::Redaction;

use super::Registry;
use crate::clock;
use crate::settings::PluginSettings;

/// How often it is looked whether a record is full.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// No record is longer: it is kept in memory.
const LENGTH_MAX: Duration = Duration::from_secs(600);

/// Values that are shorter than this stand for anything.
const SECRET_MIN: usize = 4;

/// The plugins that are recorded, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    all: Arc<Mutex<BTreeMap<String, Arc<Recorder>>>>,
}

impl Records {
    /// Who takes down what this plugin does, if anybody does.
    pub(super) fn of(&self, plugin: &str) -> Option<Arc<Recorder>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).get(plugin).cloned()
    }

    fn begin(&self, plugin: &str, recorder: &Arc<Recorder>) -> Option<Recording> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.contains_key(plugin) {
            return None;
        }
        all.insert(plugin.to_owned(), Arc::clone(recorder));
        Some(Recording { records: self.clone(), plugin: plugin.to_owned() })
    }
}

/// While it lives a plugin is recorded; whoever asked for it may give up.
struct Recording {
    records: Records,
    plugin: String,
}

impl Drop for Recording {
    fn drop(&mut self) {
        let removed = self.records.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.plugin);
        if let Some(recorder) = removed {
            recorder.end();
        }
    }
}

/// What is left out of a record: what the config calls a secret, and the values of the secrets that the plugin was granted.
#[derive(Debug)]
struct Cleaner {
    redaction: Redaction,
    values: Vec<String>,
}

impl Cleaner {
    fn new(redaction: Redaction, plugin: &PluginSettings) -> Self {
        let secrets = plugin.grant.http.iter().flat_map(|http| http.secrets.values());
        let values = secrets.filter_map(|secret| Secret::value(secret).ok());
        Self { redaction, values: values.filter(|value| value.len() >= SECRET_MIN).collect() }
    }
}

impl Clean for Cleaner {
    fn text(&self, text: &str) -> String {
        let shown = self.values.iter().fold(text.to_owned(), |text, value| text.replace(value.as_str(), "***"));
        self.redaction.text(&shown)
    }

    fn is_secret(&self, name: &str) -> bool {
        self.redaction.is_secret(name)
    }
}

impl Registry {
    /// Records a plugin for a while, and answers what it was called with and what it answered.
    ///
    /// # Errors
    ///
    /// In words, where there is no such plugin, it cannot be loaded, or it is recorded already.
    pub(crate) async fn record(&self, name: &str, length: Duration) -> Result<Recorded, String> {
        if length.is_zero() || length > LENGTH_MAX {
            return Err(format!(
                "record `{name}` for {length:?}: a record is longer than 0s and at most {LENGTH_MAX:?}"
            ));
        }
        let Some((plugin, kind)) = self.inner.plugins.get(name) else {
            let known: Vec<&str> = self.inner.plugins.keys().map(String::as_str).collect();
            return Err(format!("record `{name}`: there is no such plugin; there are {}", known.join(", ")));
        };
        let cleaner = Cleaner::new(self.inner.redaction.clone(), plugin);
        let recorder = Arc::new(Recorder::new(Box::new(cleaner)));
        let recording = self.inner.loader.records.begin(name, &recorder);
        let recording = recording.ok_or_else(|| format!("record `{name}`: it is recorded already"))?;
        let begun = clock::wall().as_millis();
        self.reload(name).await?;
        let mut left = length;
        while !left.is_zero() && !recorder.is_over() {
            let step = left.min(LOOK_EVERY);
            tokio::time::sleep(step).await;
            left -= step;
        }
        let settings = serde_json::Value::Object(plugin.settings.clone());
        let recorded = recorder.finish((name, kind.name()), &settings, begun);
        drop(recording);
        // What is wrong now stands in its status, and the record is whole.
        let _told = self.reload(name).await;
        Ok(recorded)
    }
}
