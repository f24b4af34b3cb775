//! The agent's plugins: each a task of its own on threads of their own, so that nothing slow stands in the way of a
//! verdict.
//!
//! Sinks read the journal from their cursor, rules are asked about subjects that changed, strategies about attempts
//! that ended. What a plugin answers comes back as a fact; what it cannot answer comes back as that.

mod builtin;
mod entries;
mod memory;
mod rule;
mod sink;
mod strategy;
mod subjects;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use latido_driver::{AttemptName, Fact, Finding};
use latido_plugin_host::{CallError, Host, HostSettings, Kind, LoadError, PluginSpec};
use latido_policy::Proposal;
use latido_protocol::SubjectName;
use latido_protocol::journal::Severity;
use latido_protocol::layout::StateDir;
use latido_protocol::status::PluginStatus;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::driver_thread::DriverHandle;
use crate::settings::{PluginSettings, PluginSource, Settings};

/// Plugins' calls run on these threads and on no others.
const THREADS: usize = 2;

/// Questions that may wait for one strategy. Each is one ended attempt; a flood of them is paced by this.
const QUESTIONS_MAX: usize = 64;

/// Changes that a rule may fall behind by before it is asked about everything instead.
const CHANGES_MAX: usize = 1024;

/// Between two tries to load a plugin that could not be loaded: its file or its grant may be mended meanwhile.
const LOAD_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// A plugin's last words have this long at the end of the agent.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// All plugins of the agent.
#[derive(Clone)]
pub(crate) struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    statuses: Statuses,
    strategies: BTreeMap<String, mpsc::Sender<strategy::Question>>,
    ends: watch::Sender<bool>,
    runtime: Mutex<Option<tokio::runtime::Runtime>>,
    tasks: Mutex<Vec<tokio::task::JoinHandle<()>>>,
}

/// What each plugin's task says of itself.
#[derive(Clone, Default)]
pub(crate) struct Statuses {
    all: Arc<Mutex<BTreeMap<String, PluginStatus>>>,
}

impl Statuses {
    fn update(&self, name: &str, change: impl FnOnce(&mut PluginStatus)) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(status) = all.get_mut(name) {
            change(status);
        }
    }

    fn add(&self, name: &str, kind: &str) {
        let status = PluginStatus {
            name: name.to_owned(),
            kind: kind.to_owned(),
            state: "loading".to_owned(),
            faults: 0,
            detail: None,
            cursor: None,
            set_aside: 0,
        };
        self.all.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), status);
    }
}

/// What every plugin's task has.
#[derive(Clone)]
pub(crate) struct Ground {
    driver: DriverHandle,
    host: Arc<Host>,
    state: StateDir,
    statuses: Statuses,
    ends: watch::Receiver<bool>,
}

impl Registry {
    /// Starts a task for each plugin. They load by themselves; nobody waits for them.
    pub(crate) fn start(
        settings: &Settings,
        driver: DriverHandle,
        state: &StateDir,
        sequence: watch::Receiver<u64>,
        mut changed: mpsc::UnboundedReceiver<SubjectName>,
    ) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("plugins")
            .enable_all()
            .build()?;
        let host =
            Host::new(HostSettings { cache: state.plugins().join("compiled") }).map_err(std::io::Error::other)?;
        let (ends, ended) = watch::channel(false);
        let statuses = Statuses::default();
        let ground =
            Ground { driver, host: Arc::new(host), state: state.clone(), statuses: statuses.clone(), ends: ended };

        let mut tasks = Vec::new();
        for sink in &settings.sinks {
            statuses.add(&sink.plugin.name, "sink");
            tasks.push(runtime.spawn(sink::run(ground.clone(), sink.clone(), sequence.clone())));
        }
        let (changes, _) = broadcast::channel(CHANGES_MAX);
        for rule in &settings.rules {
            statuses.add(&rule.name, "rule");
            tasks.push(runtime.spawn(rule::run(ground.clone(), rule.clone(), changes.subscribe())));
        }
        runtime.spawn(async move {
            while let Some(subject) = changed.recv().await {
                // No rule is there to hear it.
                let _unheard = changes.send(subject);
            }
        });
        let mut strategies = BTreeMap::new();
        for strategy in &settings.strategies {
            statuses.add(&strategy.name, "strategy");
            let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
            strategies.insert(strategy.name.clone(), questions);
            tasks.push(runtime.spawn(strategy::run(ground.clone(), strategy.clone(), asked)));
        }
        let inner = Inner { statuses, strategies, ends, runtime: Mutex::new(Some(runtime)), tasks: Mutex::new(tasks) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What each plugin says of itself, by name.
    pub(crate) fn statuses(&self) -> Vec<PluginStatus> {
        let all = self.inner.statuses.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }

    /// Asks a strategy how a job goes on. Every way in which it cannot answer is an answer too.
    pub(crate) async fn ask_strategy(&self, name: &str, attempt: AttemptName, by_hand: bool) -> Fact {
        let failed = |detail: &str| Fact::StrategyAnswered {
            attempt: attempt.clone(),
            proposal: Proposal::Failed,
            detail: format!("strategy {name}: {detail}"),
            command: None,
        };
        let Some(questions) = self.inner.strategies.get(name) else {
            return failed("there is none of this name in the config");
        };
        let (answer_out, answer) = oneshot::channel();
        let question = strategy::Question { attempt: attempt.clone(), by_hand, answer: answer_out };
        if questions.send(question).await.is_err() {
            return failed("it has ended");
        }
        answer.await.unwrap_or_else(|_| failed("it has ended"))
    }

    /// Tells all plugins to end and waits for them, within a deadline.
    pub(crate) async fn stop(&self) {
        let _no_plugins = self.inner.ends.send(true);
        let tasks = std::mem::take(&mut *self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = async {
            for task in tasks {
                let _panicked = task.await;
            }
        };
        if tokio::time::timeout(STOP_WITHIN, ended).await.is_err() {
            tracing::warn!("a plugin did not end in time; what it had not acknowledged comes to it again");
        }
        let runtime = self.inner.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

/// Reads a plugin's component and puts together what the host wants to know of it.
fn spec(plugin: &PluginSettings, kind: Kind, state: &StateDir) -> Result<PluginSpec, String> {
    let component = match &plugin.source {
        PluginSource::Builtin(name) => builtin::component(name)
            .ok_or_else(|| format!("there is no built-in plugin {name}; there are {}", builtin::NAMES.join(", ")))?,
        PluginSource::File(path) => {
            std::fs::read(path).map_err(|error| format!("read {}: {error}", path.display()))?.into()
        }
    };
    let below = |path: &PathBuf| state.path().join(path);
    let mut spec = PluginSpec::new(&plugin.name, kind, component);
    spec.settings = serde_json::Value::Object(plugin.settings.clone());
    spec.grants.sql = plugin.grant.sql.iter().map(|(name, path)| (name.clone(), below(path).into())).collect();
    spec.grants.files = plugin.grant.files.iter().map(|(name, path)| (name.clone(), below(path).into())).collect();
    spec.limits.memory = usize::try_from(plugin.limits.memory_max).unwrap_or(usize::MAX);
    spec.limits.cpu = plugin.limits.cpu_for.0;
    spec.limits.wall = plugin.limits.call_for.0;
    spec.limits.batch_entries = usize::try_from(plugin.limits.batch_max.get()).unwrap_or(usize::MAX);
    Ok(spec)
}

/// What a plugin's task waits for between two tries.
pub(crate) enum Wait {
    /// The time is over.
    Over,
    /// The agent ends.
    Ends,
}

impl Ground {
    async fn wait(&mut self, length: Duration) -> Wait {
        tokio::select! {
            () = tokio::time::sleep(length) => Wait::Over,
            _ = self.ends.wait_for(|ends| *ends) => Wait::Ends,
        }
    }

    /// Loads a plugin with `load`; a failure is told, and the caller tries again later.
    async fn load_once<T, L>(&self, plugin: &PluginSettings, kind: Kind, load: L) -> Option<T>
    where
        L: AsyncFn(&Host, PluginSpec) -> Result<T, LoadError>,
    {
        let detail = match spec(plugin, kind, &self.state) {
            Ok(mut spec) => {
                spec.grants.state = Some(memory::of(self.driver.clone()));
                match load(&self.host, spec).await {
                    Ok(loaded) => {
                        self.works(&plugin.name).await;
                        return Some(loaded);
                    }
                    Err(error) => latido_protocol::chain(&error),
                }
            }
            Err(detail) => detail,
        };
        self.fails(&plugin.name, "refused", &detail).await;
        None
    }

    /// Counts a fault and tells of it; an answer of the plugin's own is told and not counted.
    async fn fault(&self, name: &str, error: &CallError) {
        if error.fault().is_some() {
            self.statuses.update(name, |status| status.faults += 1);
        }
        self.fails(name, "faulty", &latido_protocol::chain(error)).await;
    }

    fn is_rule(&self, name: &str) -> bool {
        let all = self.statuses.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(name).is_some_and(|status| status.kind == "rule")
    }

    fn is_active(&self, name: &str) -> bool {
        let all = self.statuses.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(name).is_some_and(|status| status.state == "active")
    }

    /// Says that a plugin works, and ends the alert about it.
    async fn works(&self, name: &str) {
        let mut was_working = false;
        self.statuses.update(name, |status| {
            was_working = status.state == "active";
            "active".clone_into(&mut status.state);
            status.detail = None;
        });
        if !was_working && !self.is_rule(name) {
            self.alert(name, Vec::new()).await;
        }
    }

    /// Says that a plugin does not work, once for each new state: in the log, the journal and as an alert of the
    /// agent's own. Of a rule the policy is told each time: it stands in for `liveness`.
    async fn fails(&self, name: &str, state: &str, detail: &str) {
        let mut is_new = false;
        self.statuses.update(name, |status| {
            is_new = status.state != state || status.detail.as_deref() != Some(detail);
            state.clone_into(&mut status.state);
            status.detail = Some(detail.to_owned());
        });
        let is_rule = self.is_rule(name);
        if is_rule {
            let fact = Fact::RuleFailed { rule: name.to_owned(), detail: format!("it is {state}: {detail}") };
            let _ending = self.driver.tell(fact).await;
        }
        if !is_new {
            return;
        }
        tracing::error!(plugin = name, state, detail, "a plugin does not work");
        let summary = format!("plugin {name} is {state}: {detail}");
        let _ending = self.driver.tell(Fact::Noted { what: "plugin-fault".to_owned(), detail: summary.clone() }).await;
        if is_rule {
            return;
        }
        let finding =
            Finding { key: "plugin-fault".to_owned(), subject: name.to_owned(), severity: Severity::Critical, summary };
        self.alert(name, vec![finding]).await;
    }

    async fn alert(&self, name: &str, findings: Vec<Finding>) {
        // A plugin's name that is no subject's name cannot be asked about: the journal entry tells of it all the same.
        if let Ok(subject) = name.parse::<SubjectName>() {
            let fact = Fact::RuleAnswered { rule: "agent".to_owned(), subjects: vec![subject], findings };
            let _ending = self.driver.tell(fact).await;
        }
    }
}
