//! The agent's plugins: each a task of its own on threads of their own, so that nothing slow stands in the way of a
//! verdict.
//!
//! Sinks read the journal from their cursor, rules are asked about subjects that changed, strategies about attempts
//! that ended. What a plugin answers comes back as a fact; what it cannot answer comes back as that.

mod builtin;
mod entries;
mod loading;
mod memory;
mod record;
mod rule;
mod sink;
mod spec;
mod strategy;
mod subjects;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use latido_driver::{AttemptName, Fact, Finding};
use latido_plugin_host::{CallError, Compiler, Costs, Host, HostSettings, Kind, Loaded};
use latido_policy::Proposal;
use latido_protocol::journal::Severity;
use latido_protocol::layout::StateDir;
use latido_protocol::status::PluginStatus;
use latido_protocol::{Redaction, Span, SubjectName};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::compile::OwnProgram;
use crate::driver_thread::DriverHandle;
use crate::settings::{PluginSettings, Settings};
pub use entries::add as add_entry;
use loading::Loader;
use record::Records;
pub use spec::of as component_spec;
pub use subjects::to_guest as subject_of;

/// Plugins' calls run on at most so many threads and on no others.
const THREADS_MAX: usize = 2;

/// What these threads are niced by: within the agent, nothing waits for its turn behind plugins that compute. On a machine that is
/// full of other work they still get a tenth of a share.
const NICE: i32 = 10;

/// One processor fewer than there are, where there are two: the supervisors are other processes, which no niceness lets through,
/// and a verdict begins with them. Plugins that share a thread take turns of 10 ms.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get() - 1).clamp(1, THREADS_MAX)
}

/// Questions that may wait for one strategy. Each is one ended attempt; a flood of them is paced by this.
const QUESTIONS_MAX: usize = 64;

/// Changes that a rule may fall behind by before it is asked about everything instead.
const CHANGES_MAX: usize = 1024;

/// Between two tries to load a plugin that could not be loaded: its file or its grant may be mended meanwhile.
const LOAD_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Orders to load a plugin again that may wait for its task.
const RELOADS_MAX: usize = 4;

/// A plugin's last words have this long at the end of the agent.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// All plugins of the agent.
#[derive(Clone)]
pub(crate) struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    loader: Loader,
    statuses: Statuses,
    strategies: BTreeMap<String, mpsc::Sender<strategy::Question>>,
    reloads: BTreeMap<String, mpsc::Sender<Reload>>,
    plugins: BTreeMap<String, (PluginSettings, Kind)>,
    redaction: Redaction,
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
            ..PluginStatus::default()
        };
        self.all.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), status);
    }
}

/// Somebody wants a plugin to be loaded again, and hears what came of it.
pub(crate) type Reload = oneshot::Sender<Result<(), String>>;

/// What every plugin's task has.
pub(crate) struct Ground {
    loader: Loader,
    statuses: Statuses,
    ends: watch::Receiver<bool>,
    reloads: mpsc::Receiver<Reload>,
}

impl Registry {
    /// Starts a task for each plugin. They load by themselves; nobody waits for them.
    pub(crate) fn start(
        settings: &Settings,
        driver: DriverHandle,
        (state, compiler): (&StateDir, &Option<OwnProgram>),
        sequence: watch::Receiver<u64>,
        mut changed: mpsc::UnboundedReceiver<SubjectName>,
    ) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads())
            .thread_name("plugins")
            // Of the calling thread alone. Where it cannot be set, it is as it was.
            .on_thread_start(|| {
                let _unchanged = rustix::process::nice(NICE);
            })
            .enable_all()
            .build()?;
        let compiler = compiler.clone().map(|program| Arc::new(program) as Arc<dyn Compiler>);
        let host = Host::new(HostSettings { cache: state.plugins().join("compiled"), compiler, metered: false })
            .map_err(std::io::Error::other)?;
        let (ends, ended) = watch::channel(false);
        let statuses = Statuses::default();
        let loader = Loader { driver, host: Arc::new(host), state: state.clone(), records: Records::default() };
        let mut reloads = BTreeMap::new();
        let mut ground = |name: &str, kind: &str| {
            statuses.add(name, kind);
            let (asks, asked) = mpsc::channel(RELOADS_MAX);
            reloads.insert(name.to_owned(), asks);
            let (loader, statuses) = (loader.clone(), statuses.clone());
            Ground { loader, statuses, ends: ended.clone(), reloads: asked }
        };

        let mut tasks = Vec::new();
        for sink in &settings.sinks {
            let ground = ground(&sink.plugin.name, "sink");
            tasks.push(runtime.spawn(sink::run(ground, sink.clone(), sequence.clone())));
        }
        let (changes, _) = broadcast::channel(CHANGES_MAX);
        for rule in &settings.rules {
            let ground = ground(&rule.name, "rule");
            tasks.push(runtime.spawn(rule::run(ground, rule.clone(), changes.subscribe())));
        }
        runtime.spawn(async move {
            while let Some(subject) = changed.recv().await {
                // No rule is there to hear it.
                let _unheard = changes.send(subject);
            }
        });
        let mut strategies = BTreeMap::new();
        for strategy in &settings.strategies {
            let ground = ground(&strategy.name, "strategy");
            let (questions, asked) = mpsc::channel(QUESTIONS_MAX);
            strategies.insert(strategy.name.clone(), questions);
            tasks.push(runtime.spawn(strategy::run(ground, strategy.clone(), asked)));
        }
        let (runtime, tasks) = (Mutex::new(Some(runtime)), Mutex::new(tasks));
        let redaction = settings.agent.redaction.clone();
        let plugins = by_name(settings);
        let inner = Inner { loader, statuses, strategies, reloads, plugins, redaction, ends, runtime, tasks };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What each plugin says of itself, by name.
    pub(crate) fn statuses(&self) -> Vec<PluginStatus> {
        let all = self.inner.statuses.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().cloned().collect()
    }

    /// Loads a plugin again, from its file and with its settings as they were read, and forgets its faults: the way back
    /// from a quarantine. One that cannot be loaded stays as it is.
    ///
    /// # Errors
    ///
    /// In words, where there is no such plugin or it cannot be loaded.
    pub(crate) async fn reload(&self, name: &str) -> Result<(), String> {
        let Some(asks) = self.inner.reloads.get(name) else {
            let known: Vec<&str> = self.inner.reloads.keys().map(String::as_str).collect();
            return Err(format!("reload `{name}`: there is no such plugin; there are {}", known.join(", ")));
        };
        let (told, hears) = oneshot::channel();
        let ended = |()| format!("reload `{name}`: the agent is ending");
        asks.send(told).await.map_err(|_| ended(()))?;
        hears.await.map_err(|_| ended(()))?.map_err(|why| format!("reload `{name}`: {why}"))
    }

    /// Whether each plugin of these settings that is another than before can be loaded. None is put in place of what runs.
    ///
    /// # Errors
    ///
    /// In words, where one cannot.
    pub(crate) async fn check(&self, next: &Settings, before: &Settings) -> Result<(), String> {
        let ending = || "check the plugins: the agent is ending".to_owned();
        let handle = self.handle().ok_or_else(ending)?;
        let (loader, next, before) = (self.inner.loader.clone(), next.clone(), before.clone());
        let checking = handle.spawn(async move { loader.check(&next, &before).await });
        checking.await.unwrap_or_else(|_| Err(ending()))
    }

    /// Where the plugins' tasks run; nothing once they have ended.
    fn handle(&self) -> Option<tokio::runtime::Handle> {
        let runtime = self.inner.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        runtime.as_ref().map(|runtime| runtime.handle().clone())
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

fn by_name(settings: &Settings) -> BTreeMap<String, (PluginSettings, Kind)> {
    let sinks = settings.sinks.iter().map(|sink| (&sink.plugin, Kind::Sink));
    let rules = settings.rules.iter().map(|rule| (rule, Kind::Rule));
    let strategies = settings.strategies.iter().map(|strategy| (strategy, Kind::Strategy));
    let all = sinks.chain(rules).chain(strategies);
    all.map(|(plugin, kind)| (plugin.name.clone(), (plugin.clone(), kind))).collect()
}

/// What a plugin's task waits for between two tries.
pub(crate) enum Wait {
    /// The time is over.
    Over,
    /// The agent ends.
    Ends,
    /// The plugin is to be loaded again.
    Reload(Reload),
}

impl Ground {
    async fn wait(&mut self, length: Duration) -> Wait {
        self.wait_for(tokio::time::sleep(length)).await
    }

    /// Waits for something, unless the agent ends or the plugin is to be loaded again before.
    async fn wait_for(&mut self, over: impl Future<Output = ()>) -> Wait {
        tokio::select! {
            () = over => Wait::Over,
            _ = self.ends.wait_for(|ends| *ends) => Wait::Ends,
            Some(told) = self.reloads.recv() => Wait::Reload(told),
        }
    }

    /// Notes which version of the package a plugin speaks.
    fn speaks(&self, name: &str, loaded: &impl Loaded) {
        self.statuses.update(name, |status| loaded.package_version().clone_into(&mut status.interface));
    }

    /// Notes what a plugin has cost so far.
    fn costs(&self, name: &str, costs: Costs) {
        self.statuses.update(name, |status| {
            status.calls = costs.calls;
            status.instances = costs.instances;
            status.busy_s = Span(costs.busy);
            status.memory_bytes = costs.memory as u64;
        });
    }

    /// Counts a fault and tells of it; an answer of the plugin's own is told and not counted.
    async fn fault(&self, name: &str, error: &CallError) {
        if let Some(fault) = error.fault() {
            self.statuses.update(name, |status| {
                status.faults += 1;
                *status.faults_by_kind.entry(fault.kind.class().to_owned()).or_default() += 1;
            });
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
            let _ending = self.loader.driver.tell(fact).await;
        }
        if !is_new {
            return;
        }
        tracing::error!(plugin = name, state, detail, "a plugin does not work");
        let summary = format!("plugin {name} is {state}: {detail}");
        let _ending =
            self.loader.driver.tell(Fact::Noted { what: "plugin-fault".to_owned(), detail: summary.clone() }).await;
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
            let _ending = self.loader.driver.tell(fact).await;
        }
    }
}
