//! Feeds entries that were recorded to a sink, as the agent delivers them, and keeps what it made of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use latido_plugin_host::{Entries, Kind, Subject};
use serde::Serialize;
use serde_json::{Value, json};

use crate::case::{Action, NOW_MS};
use crate::delivery::{Delivered, deliver};
use crate::plugin::Plugin;
use crate::stage::{Place, Running, Setting, StageError, Workshop};
use crate::told;

/// Why nothing was fed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// Only sinks take entries.
    #[error("feed entries to `{plugin}`: it is a {kind}, and only a sink takes entries")]
    NoSink {
        /// the plugin
        plugin: String,
        /// what it is
        kind: String,
    },
    /// Only rules are asked about subjects.
    #[error("ask `{plugin}` about subjects: it is a {kind}, and only a rule is asked")]
    NoRule {
        /// the plugin
        plugin: String,
        /// what it is
        kind: String,
    },
    /// The plugin cannot be run at all.
    #[error(transparent)]
    Stage(StageError),
    /// What it made cannot be kept.
    #[error("keep what it made as {}", path.display())]
    Keep {
        /// the file
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Fed {
    /// what became of the entries
    #[serde(flatten)]
    pub delivered: Delivered,
    /// capability calls, by name
    pub capabilities: std::collections::BTreeMap<String, u64>,
    /// requests that it would have sent
    pub requests: Vec<Value>,
    /// what it logged
    pub logs: Vec<String>,
    /// instructions that it ran
    pub fuel: u64,
    /// the most memory that it had, in bytes
    pub memory: usize,
    /// databases and files that were kept
    pub kept: Vec<PathBuf>,
}

/// Feeds entries to a sink in batches of at most `batch_max`. `batch` makes the batch that begins behind so many entries and
/// has so many. Requests are answered with 200 and go nowhere; databases and files are kept in `keep`.
///
/// # Errors
///
/// Fails where the plugin is no sink, or cannot be run.
pub fn feed(
    workshop: &Workshop,
    plugin: &Plugin,
    settings: Option<&Value>,
    (count, batch_max): (usize, usize),
    batch: &(dyn Fn(usize, usize) -> Entries + Sync),
    keep: Option<&Path>,
) -> Result<Fed, FeedError> {
    let place = Place::new(plugin).map_err(FeedError::Stage)?;
    let setting = Setting::new(settings.cloned().unwrap_or_else(|| json!({})), NOW_MS, 0);
    let (delivered, costs) = workshop.runtime.block_on(async {
        let running = place.load(&workshop.host, plugin, &setting).await;
        let Running::Sink(mut sink) = running.map_err(|error| FeedError::Stage(StageError::Load(error)))? else {
            return Err(FeedError::NoSink { plugin: plugin.name.clone(), kind: plugin.kind.to_string() });
        };
        let delivered = deliver(&mut sink, count, batch_max, batch).await;
        Ok((delivered, sink.costs()))
    })?;
    let seen = place.onlooker.take_calls();
    let mut capabilities = std::collections::BTreeMap::new();
    for call in &seen {
        *capabilities.entry(call.name.clone()).or_insert(0) += 1;
    }
    let requests = seen.into_iter().filter(|call| call.name == "http.send").map(|call| call.arguments).collect();
    Ok(Fed {
        delivered,
        capabilities,
        requests,
        logs: place.onlooker.take_logs(),
        fuel: costs.fuel,
        memory: costs.memory_peak,
        kept: keep.map_or(Ok(Vec::new()), |folder| kept(&place, plugin, folder))?,
    })
}

/// What a rule answered.
#[derive(Clone, Debug, Serialize)]
pub struct Answered {
    /// its answer to each question: `{"findings": […]}`, `{"error": …}` or `{"fault": …}`
    pub answers: Vec<Value>,
    /// what it logged
    pub logs: Vec<String>,
    /// instructions that it ran
    pub fuel: u64,
    /// the most memory that it had, in bytes
    pub memory: usize,
}

/// Asks a rule about subjects, as they were at each of some moments.
///
/// # Errors
///
/// Fails where the plugin is no rule, or cannot be run.
pub fn ask(
    workshop: &Workshop,
    plugin: &Plugin,
    settings: Option<&Value>,
    questions: Vec<(u64, Vec<Subject>)>,
) -> Result<Answered, FeedError> {
    if plugin.kind != Kind::Rule {
        return Err(FeedError::NoRule { plugin: plugin.name.clone(), kind: plugin.kind.to_string() });
    }
    let place = Place::new(plugin).map_err(FeedError::Stage)?;
    let setting = Setting::new(settings.cloned().unwrap_or_else(|| json!({})), NOW_MS, 0);
    workshop.runtime.block_on(async {
        let running = place.load(&workshop.host, plugin, &setting).await;
        let mut running = running.map_err(|error| FeedError::Stage(StageError::Load(error)))?;
        let mut answers = Vec::new();
        for (now, subjects) in questions {
            answers.push(told::outcome(&running.call(&Action::Evaluate(now, subjects)).await));
        }
        let costs = running.costs();
        let logs = place.onlooker.take_logs();
        Ok(Answered { answers, logs, fuel: costs.fuel, memory: costs.memory_peak })
    })
}

/// Copies what the plugin made. A file that is there already is somebody's, and stays.
fn kept(place: &Place, plugin: &Plugin, folder: &Path) -> Result<Vec<PathBuf>, FeedError> {
    let broken = |path: &Path| {
        let path = path.to_owned();
        move |source| FeedError::Keep { path, source }
    };
    fs::create_dir_all(folder).map_err(broken(folder))?;
    let asked = &plugin.manifest.requires;
    let databases = asked.sql.iter().map(|name| (place.database(name), folder.join(format!("{name}.db"))));
    let files = asked.files.iter().map(|name| (place.file(name), folder.join(format!("{name}.txt"))));
    let mut kept = Vec::new();
    for (from, to) in databases.chain(files).filter(|(from, _)| from.exists()) {
        let mut source = fs::File::open(&from).map_err(broken(&from))?;
        let mut target = fs::File::create_new(&to).map_err(broken(&to))?;
        io::copy(&mut source, &mut target).map_err(broken(&to))?;
        kept.push(to);
    }
    Ok(kept)
}
