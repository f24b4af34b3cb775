//! Loading a plugin: once, again in place of the one that there is, or only to see whether it can be loaded.

use std::sync::Arc;

use latido_driver::Fact;
use latido_plugin_host::{Host, Kind, LoadError, Loaded, PluginSpec, Probe};
use latido_plugin_kit::explain;
use latido_protocol::layout::StateDir;

use super::record::Records;
use super::{Ground, Reload, memory, rule, sink, spec, strategy};
use crate::driver_thread::DriverHandle;
use crate::settings::{PluginSettings, Settings};

/// What it takes to load a plugin.
#[derive(Clone)]
pub(crate) struct Loader {
    pub(super) driver: DriverHandle,
    pub(super) host: Arc<Host>,
    pub(super) state: StateDir,
    pub(super) records: Records,
}

impl Loader {
    async fn load<T, L>(&self, plugin: &PluginSettings, kind: Kind, load: L) -> Result<T, String>
    where
        L: AsyncFn(&Host, PluginSpec) -> Result<T, LoadError>,
    {
        let mut spec = spec::of(plugin, kind, &self.state)?;
        spec.grants.state = Some(memory::of(self.driver.clone()));
        let recorder = self.records.of(&plugin.name);
        spec.probe = recorder.clone().map(|recorder| recorder as Arc<dyn Probe>);
        let component = Arc::clone(&spec.component);
        let loaded = load(&self.host, spec).await.map_err(|error| explain(&error, &component))?;
        if let Some(recorder) = recorder {
            recorder.loaded();
        }
        Ok(loaded)
    }

    /// Loads each plugin that is another than before, beside those that run, and lets it go again.
    pub(super) async fn check(&self, next: &Settings, before: &Settings) -> Result<(), String> {
        for sink in &next.sinks {
            if !before.sinks.iter().any(|known| known.plugin == sink.plugin) {
                self.load(&sink.plugin, Kind::Sink, sink::load).await.map(drop)?;
            }
        }
        for rule in next.rules.iter().filter(|rule| !before.rules.contains(rule)) {
            self.load(rule, Kind::Rule, rule::load).await.map(drop)?;
        }
        for strategy in next.strategies.iter().filter(|strategy| !before.strategies.contains(strategy)) {
            self.load(strategy, Kind::Strategy, strategy::load).await.map(drop)?;
        }
        Ok(())
    }
}

impl Ground {
    /// Loads a plugin once more in place of the one that there is, which stays where that fails. Tells who asked.
    pub(super) async fn load_again<T, L>(
        &self,
        plugin: &PluginSettings,
        kind: Kind,
        load: L,
        there_is: &mut Option<T>,
        told: Reload,
    ) -> bool
    where
        T: Loaded,
        L: AsyncFn(&Host, PluginSpec) -> Result<T, LoadError>,
    {
        let answer = match self.loader.load(plugin, kind, load).await {
            Ok(loaded) => {
                self.speaks(&plugin.name, &loaded);
                *there_is = Some(loaded);
                self.was_loaded_again(&plugin.name).await;
                Ok(())
            }
            Err(why) if there_is.is_some() => {
                let why = format!("{why}; the one that was loaded before goes on");
                self.goes_on(&plugin.name, &why).await;
                Err(why)
            }
            Err(why) => {
                self.fails(&plugin.name, "refused", &why).await;
                Err(why)
            }
        };
        let is_loaded = answer.is_ok();
        // Who asked may have given up.
        let _unheard = told.send(answer);
        is_loaded
    }

    /// Loads a plugin with `load`; a failure is told, and the caller tries again later.
    pub(super) async fn load_once<T, L>(&self, plugin: &PluginSettings, kind: Kind, load: L) -> Option<T>
    where
        T: Loaded,
        L: AsyncFn(&Host, PluginSpec) -> Result<T, LoadError>,
    {
        match self.loader.load(plugin, kind, load).await {
            Ok(loaded) => {
                self.speaks(&plugin.name, &loaded);
                self.works(&plugin.name).await;
                Some(loaded)
            }
            Err(detail) => {
                self.fails(&plugin.name, "refused", &detail).await;
                None
            }
        }
    }

    async fn was_loaded_again(&self, name: &str) {
        self.statuses.update(name, |status| status.reload_refused = None);
        self.works(name).await;
        tracing::info!(plugin = name, "a plugin was loaded again");
        let fact = Fact::Noted { what: "plugin-reloaded".to_owned(), detail: format!("plugin {name}") };
        let _ending = self.loader.driver.tell(fact).await;
    }

    /// Says once that what was to come in a plugin's place is refused.
    async fn goes_on(&self, name: &str, why: &str) {
        let mut is_new = false;
        self.statuses.update(name, |status| {
            is_new = status.reload_refused.as_deref() != Some(why);
            status.reload_refused = Some(why.to_owned());
        });
        if is_new {
            tracing::error!(plugin = name, why, "a plugin cannot be loaded again");
            let fact =
                Fact::Noted { what: "plugin-reload-refused".to_owned(), detail: format!("plugin {name}: {why}") };
            let _ending = self.loader.driver.tell(fact).await;
        }
    }
}
