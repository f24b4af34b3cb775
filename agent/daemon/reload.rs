//! What is read again while the agent runs: its config, by SIGHUP or because it was saved, and the components of its
//! plugins, because they were saved. Whatever asks for it, it is checked first, and what was in force stays where it fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use latido_driver::Fact;
use latido_protocol::layout::StateDir;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::compile::OwnProgram;
use crate::driver_thread::DriverHandle;
use crate::plugins::Registry;
use crate::settings::{Reload, Settings, text_of};
use crate::sources::control::About;
use crate::sources::saved::{Content, Files, QUIET_FOR, QUIET_WITHIN, SAVED_MAX, Saved};

/// Reads the config again, or says in words why what it says cannot be in force.
pub type Reread<'a> = dyn Fn() -> Result<Settings, String> + 'a;

/// A config that was refused may be right later: a component that it names came, or a secret was given.
const CONSIDER_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// A program that died between emptying the file and writing it leaves it so.
const EMPTY: &str = "the config file is empty; if the defaults are meant, send SIGHUP to the agent";

/// What an agent has besides its settings: their file, and who compiles for it.
pub struct Config<'a> {
    /// its file, absolute, whether it is there or not; `None` where there can be none
    pub file: Option<&'a PathBuf>,
    /// who compiles its plugins' components; `None`: the agent itself
    pub compiler: Option<OwnProgram>,
    /// reads it
    pub reread: &'a Reread<'a>,
}

/// What asks for the config to be read again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Hangup,
    Save,
}

/// Waits for what is to be read again, in one life of the agent.
pub(crate) struct Reloading<'a> {
    config: &'a Config<'a>,
    settings: &'a Settings,
    state: &'a StateDir,
    plugins: Registry,
    driver: DriverHandle,
    about: Arc<About>,
    saves: mpsc::Receiver<Saved>,
    /// keeps the other end of `saves` open where nobody watches
    tells: mpsc::Sender<Saved>,
    reloads: JoinSet<()>,
}

impl<'a> Reloading<'a> {
    pub(crate) fn new(
        config: &'a Config<'a>,
        (settings, state): (&'a Settings, &'a StateDir),
        (plugins, driver): (Registry, DriverHandle),
        about: Arc<About>,
    ) -> Self {
        let (tells, saves) = mpsc::channel(SAVED_MAX);
        Self { config, settings, state, plugins, driver, about, saves, tells, reloads: JoinSet::new() }
    }

    /// Where saves of files are told.
    pub(crate) fn ear(&self) -> mpsc::Sender<Saved> {
        self.tells.clone()
    }

    /// The settings of another life. Until there are some, plugins are loaded again as their files are saved.
    pub(crate) async fn another(&mut self, hangup: &mut Signal) -> Box<Settings> {
        // What was saved after this life read its settings and before anybody watched.
        let mut asked = (self.settings.agent.reload == Reload::Watch).then_some(By::Save);
        loop {
            if let Some(by) = asked
                && let Some(settings) = self.consider(by, hangup).await
            {
                return settings;
            }
            asked = Some(self.asked(hangup).await);
        }
    }

    async fn asked(&mut self, hangup: &mut Signal) -> By {
        loop {
            let is_refused = self.refused().is_some();
            tokio::select! {
                _ = hangup.recv() => return By::Hangup,
                Some(saved) = self.saves.recv() => {
                    if self.config.file != Some(&saved.path) {
                        self.load_again(&saved);
                    } else if saved.content == Content::Absent {
                        let path = saved.path.display();
                        tracing::warn!("the config file {path} is gone; what it said stays in force until there is another");
                    } else {
                        return By::Save;
                    }
                }
                () = tokio::time::sleep(CONSIDER_AGAIN_AFTER), if is_refused => return By::Save,
            }
        }
    }

    /// Judges the config as a whole, its plugins included. Answers what is to be in force in another life.
    async fn consider(&self, by: By, hangup: &mut Signal) -> Option<Box<Settings>> {
        let (by, read) = self.read(by, hangup).await;
        let word = match by {
            By::Hangup => "SIGHUP",
            By::Save => "it was saved",
        };
        let judged = match read {
            Ok(settings) if by == By::Save && settings == *self.settings => {
                self.note_refusal(None);
                return None;
            }
            Ok(settings) => self.plugins.check(&settings, self.settings).await.map(|()| settings),
            Err(detail) => Err(detail),
        };
        match judged {
            Ok(settings) => {
                tracing::info!("{word}: the config was read again");
                Some(Box::new(settings))
            }
            Err(detail) => {
                let is_known = self.refused().as_ref() == Some(&detail);
                if by == By::Hangup || !is_known {
                    tracing::error!(detail, "{word}: the config cannot be in force, and what is stays so");
                    let fact = Fact::Noted { what: "config-refused".to_owned(), detail: detail.clone() };
                    let _ending = self.driver.tell(fact).await;
                }
                self.note_refusal(Some(detail));
                None
            }
        }
    }

    /// Reads the config. What was saved is read when it holds still: programs write in pieces, and a piece may be a config.
    /// Who orders it waits for nothing.
    async fn read(&self, by: By, hangup: &mut Signal) -> (By, Result<Settings, String>) {
        let content = || self.config.file.map(|file| Content::of(file));
        let mut tries = QUIET_WITHIN.as_millis() / QUIET_FOR.as_millis();
        loop {
            let (before, read) = (content(), (self.config.reread)());
            if by == By::Hangup || read.as_ref() == Ok(self.settings) {
                return (by, read);
            }
            tokio::select! {
                _ = hangup.recv() => return (By::Hangup, (self.config.reread)()),
                () = tokio::time::sleep(QUIET_FOR) => {}
            }
            tries -= 1;
            if before == content() || tries == 0 {
                let is_empty = self.config.file.is_some_and(|file| is_blank(file));
                return (by, if is_empty { Err(EMPTY.to_owned()) } else { read });
            }
        }
    }

    fn refused(&self) -> Option<String> {
        self.about.config_refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_refusal(&self, detail: Option<String>) {
        *self.about.config_refused.lock().unwrap_or_else(PoisonError::into_inner) = detail;
    }

    /// Loads the plugins of a file again. Each waits for its own; what comes of it the plugin's task tells.
    fn load_again(&mut self, saved: &Saved) {
        while self.reloads.try_join_next().is_some() {}
        for plugin in components(self.settings, self.state).remove(&saved.path).unwrap_or_default() {
            if saved.content == Content::Absent {
                tracing::warn!(plugin, path = %saved.path.display(), "its file is gone; what was loaded goes on");
                continue;
            }
            let plugins = self.plugins.clone();
            self.reloads.spawn(async move {
                // What is wrong stands in the log, the journal and the plugin's status.
                let _told = plugins.reload(&plugin).await;
            });
        }
    }
}

/// Whether a program has emptied the file, perhaps to write it next.
fn is_blank(file: &Path) -> bool {
    text_of(file).is_ok_and(|text| text.trim().is_empty())
}

/// Takes note of the files whose saves count. `None` where none does.
pub(crate) async fn note_files(settings: &Settings, state: &StateDir, config: Option<&PathBuf>) -> Option<Files> {
    match settings.agent.reload {
        Reload::Command => None,
        Reload::Watch => {
            let files: Vec<PathBuf> = components(settings, state).into_keys().chain(config.cloned()).collect();
            tokio::task::spawn_blocking(|| Files::note(files)).await.ok()
        }
    }
}

/// The names of the plugins by the files that their components come from.
fn components(settings: &Settings, state: &StateDir) -> BTreeMap<PathBuf, Vec<String>> {
    let mut files: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    let sinks = settings.sinks.iter().map(|sink| &sink.plugin);
    for plugin in sinks.chain(&settings.rules).chain(&settings.strategies) {
        if let Some(path) = plugin.source.file(state) {
            let path = std::path::absolute(&path).unwrap_or(path);
            files.entry(path).or_default().push(plugin.name.clone());
        }
    }
    files
}
