//! Where a plugin is tried out: a fresh folder with a database and a file for each that it asks for, and a probe that sees
//! what it does with them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use latido_plugin_host::{
    CallError, Costs, Fixed, Grants, Host, HostError, HostSettings, HttpGrant, Kind, LoadError, MemoryState,
    PluginSpec, Probe, Rule, Sink, StateFault, StateStore as _, Strategy, WorkspaceGrant,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::case::Action;
use crate::onlooker::Onlooker;
use crate::plugin::Plugin;
use crate::told;

/// Computing time of one call. What counts is fuel, which is the same everywhere; this ends what never ends.
const CPU: Duration = Duration::from_secs(2);

/// Time that one call may take in all.
const WALL: Duration = Duration::from_secs(20);

/// Why there is no stage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// The host cannot be made.
    #[error("make a host for the plugin")]
    Host(#[source] HostError),
    /// Its runtime cannot be made.
    #[error("make a runtime for the plugin")]
    Runtime(#[source] io::Error),
    /// The folder that a plugin works in cannot be made.
    #[error("make a folder for the plugin")]
    Folder(#[source] io::Error),
    /// The plugin cannot be loaded, whatever its settings are.
    #[error("try the plugin out")]
    Load(#[source] LoadError),
    /// It fails where nothing goes wrong.
    #[error("try the plugin out: it fails although nothing goes wrong: {why}")]
    Unwell {
        /// its first failure
        why: String,
    },
}

/// Runs plugins for tests: a host that counts fuel, with a runtime of its own.
pub struct Workshop {
    pub(crate) host: Host,
    pub(crate) runtime: tokio::runtime::Runtime,
}

impl Workshop {
    /// A workshop that keeps compiled components in this folder.
    ///
    /// # Errors
    ///
    /// Fails where the folder cannot be used.
    pub fn open(cache: &Path) -> Result<Self, StageError> {
        Self::with(cache, true)
    }

    pub(crate) fn with(cache: &Path, metered: bool) -> Result<Self, StageError> {
        let settings = HostSettings { cache: cache.to_owned(), compiler: None, metered };
        let host = Host::new(settings).map_err(StageError::Host)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(Self { host, runtime: runtime.map_err(StageError::Runtime)? })
    }
}

/// What a plugin is loaded with.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) settings: Value,
    pub(crate) fixed: Fixed,
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

impl Setting {
    pub(crate) fn new(settings: Value, now_ms: u64, seed: u64) -> Self {
        Self { settings, fixed: Fixed { now_ms, seed }, cpu: CPU, wall: WALL }
    }
}

/// A fresh place, before a plugin is loaded in it.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) onlooker: Arc<Onlooker>,
    state: Arc<MemoryState>,
    plugin: String,
    is_watched: bool,
}

impl Place {
    pub(crate) fn new(plugin: &Plugin) -> Result<Self, StageError> {
        let folder = tempfile::tempdir().map_err(StageError::Folder)?;
        fs::create_dir(folder.path().join("workspace")).map_err(StageError::Folder)?;
        Ok(Self {
            folder,
            onlooker: Arc::default(),
            state: Arc::default(),
            plugin: plugin.name.clone(),
            is_watched: true,
        })
    }

    /// A place where nobody looks on but at requests, which nobody else answers: what is measured is the plugin.
    pub(crate) fn unwatched(plugin: &Plugin) -> Result<Self, StageError> {
        let is_watched = plugin.manifest.requires.http;
        Ok(Self { is_watched, ..Self::new(plugin)? })
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    pub(crate) fn database(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.db"))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.txt"))
    }

    pub(crate) fn keep(&self, key: &str, value: &str) -> Result<(), StateFault> {
        self.state.write(&self.plugin, key, Some(value.as_bytes()))
    }

    /// Puts a file into the job's directory. A path that leads out of it is not one of its files.
    pub(crate) fn lay(&self, name: &str, text: &str) -> io::Result<()> {
        let outside = || io::Error::new(io::ErrorKind::InvalidInput, "it leads out of the job's directory");
        let inside = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let path = if inside { self.workspace().join(name) } else { return Err(outside()) };
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(path, text)
    }

    /// Loads the plugin with all that it asks for.
    pub(crate) async fn load(&self, host: &Host, plugin: &Plugin, setting: &Setting) -> Result<Running, LoadError> {
        let mut spec = PluginSpec::new(plugin.name.clone(), plugin.kind, Arc::clone(&plugin.component));
        spec.settings = setting.settings.clone();
        spec.fixed = Some(setting.fixed);
        (spec.limits.cpu, spec.limits.wall) = (setting.cpu, setting.wall);
        spec.grants = self.grants(plugin);
        spec.probe = self.is_watched.then(|| Arc::clone(&self.onlooker) as Arc<dyn Probe>);
        Ok(match plugin.kind {
            Kind::Sink => Running::Sink(host.load_sink(spec).await?),
            Kind::Rule => Running::Rule(host.load_rule(spec).await?),
            Kind::Strategy => Running::Strategy(host.load_strategy(spec).await?, self.workspace()),
        })
    }

    fn grants(&self, plugin: &Plugin) -> Grants {
        let asked = &plugin.manifest.requires;
        Grants {
            sql: asked.sql.iter().map(|name| (name.clone(), self.database(name).into())).collect(),
            files: asked.files.iter().map(|name| (name.clone(), self.file(name).into())).collect(),
            // Nothing is sent: the probe answers.
            http: asked.http.then(|| HttpGrant::to([])),
            state: asked.state.then(|| Arc::clone(&self.state) as _),
            workspace: asked.workspace.then(WorkspaceGrant::default),
        }
    }

    /// The text without the folder's name, which is another each time.
    pub(crate) fn without_folder(&self, text: &str) -> String {
        text.replace(&*self.folder.path().to_string_lossy(), "{folder}")
    }
}

/// A plugin that is loaded.
pub(crate) enum Running {
    Sink(Sink),
    Rule(Rule),
    /// with the job's directory
    Strategy(Strategy, PathBuf),
}

impl Running {
    /// Calls it. What does not belong to its kind is an answer without content.
    pub(crate) async fn call(&mut self, action: &Action) -> Result<Value, CallError> {
        match (self, action) {
            (this, Action::Restart) => this.restart().await.map(|()| json!({})),
            (Self::Sink(sink), Action::Write(entries)) => {
                sink.write(entries).await.map(|said| told::acknowledgement(&said))
            }
            (Self::Sink(sink), Action::Flush) => sink.flush().await.map(|()| json!({})),
            (Self::Rule(rule), Action::Evaluate(now, subjects)) => {
                rule.evaluate(*now, subjects).await.map(|found| told::findings(&found))
            }
            (Self::Strategy(strategy, folder), Action::Decide(situation)) => {
                strategy.decide(situation, folder).await.map(|decision| told::decision(&decision))
            }
            (Self::Strategy(strategy, folder), Action::Observe(output)) => {
                strategy.observe(output, folder).await.map(|seen| told::observation(seen.as_ref()))
            }
            _ => Ok(json!({})),
        }
    }

    pub(crate) async fn restart(&mut self) -> Result<(), CallError> {
        match self {
            Self::Sink(sink) => sink.restart().await,
            Self::Rule(rule) => rule.restart().await,
            Self::Strategy(strategy, _) => strategy.restart().await,
        }
    }

    pub(crate) fn costs(&self) -> Costs {
        match self {
            Self::Sink(sink) => sink.costs(),
            Self::Rule(rule) => rule.costs(),
            Self::Strategy(strategy, _) => strategy.costs(),
        }
    }
}
