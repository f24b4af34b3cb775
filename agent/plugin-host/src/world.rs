//! The three worlds behind one trait: what the rest of the crate needs to know of a kind of plugin.

use std::future::Future;

use wasmtime::Store;
use wasmtime::component::{HasSelf, InstancePre, Linker};

use crate::Kind;
use crate::bindings::v0::{rule, sink, strategy};
use crate::error::PluginError;
use crate::guest::Guest;

/// What a plugin says of itself.
pub use crate::bindings::v0::sink::exports::latido::plugin::lifecycle::Description;

/// A kind of plugin, in a version of the package.
pub(crate) trait World: Send + Sync + Sized + 'static {
    /// The world with its exports looked up.
    type Ready: Clone + Send + Sync + 'static;
    const KIND: Kind;
    /// The interfaces that the world imports.
    const IMPORTS: &'static [&'static str];

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()>;
    fn ready(instance: InstancePre<Guest>) -> wasmtime::Result<Self::Ready>;
    fn instantiate(
        ready: &Self::Ready,
        store: &mut Store<Guest>,
    ) -> impl Future<Output = wasmtime::Result<Self>> + Send;
    fn describe(&self, store: &mut Store<Guest>) -> impl Future<Output = wasmtime::Result<Description>> + Send;
    fn configure(
        &self,
        store: &mut Store<Guest>,
        settings: &str,
    ) -> impl Future<Output = wasmtime::Result<Result<(), PluginError>>> + Send;
}

impl World for sink::StorageSink {
    type Ready = sink::StorageSinkPre<Guest>;
    const KIND: Kind = Kind::Sink;
    const IMPORTS: &'static [&'static str] = &["log", "sql", "files", "http", "state"];

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        Self::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)
    }

    fn ready(instance: InstancePre<Guest>) -> wasmtime::Result<Self::Ready> {
        sink::StorageSinkPre::new(instance)
    }

    async fn instantiate(ready: &Self::Ready, store: &mut Store<Guest>) -> wasmtime::Result<Self> {
        ready.instantiate_async(store).await
    }

    async fn describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<Description> {
        self.latido_plugin_lifecycle().call_describe(store).await
    }

    async fn configure(&self, store: &mut Store<Guest>, settings: &str) -> wasmtime::Result<Result<(), PluginError>> {
        self.latido_plugin_lifecycle().call_configure(store, settings).await
    }
}

impl World for rule::AlertRule {
    type Ready = rule::AlertRulePre<Guest>;
    const KIND: Kind = Kind::Rule;
    const IMPORTS: &'static [&'static str] = &["log", "state"];

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        Self::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)
    }

    fn ready(instance: InstancePre<Guest>) -> wasmtime::Result<Self::Ready> {
        rule::AlertRulePre::new(instance)
    }

    async fn instantiate(ready: &Self::Ready, store: &mut Store<Guest>) -> wasmtime::Result<Self> {
        ready.instantiate_async(store).await
    }

    async fn describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<Description> {
        let said = self.latido_plugin_lifecycle().call_describe(store).await?;
        Ok(Description {
            name: said.name,
            version: said.version,
            summary: said.summary,
            settings_schema: said.settings_schema,
        })
    }

    async fn configure(&self, store: &mut Store<Guest>, settings: &str) -> wasmtime::Result<Result<(), PluginError>> {
        self.latido_plugin_lifecycle().call_configure(store, settings).await
    }
}

impl World for strategy::ResumeStrategy {
    type Ready = strategy::ResumeStrategyPre<Guest>;
    const KIND: Kind = Kind::Strategy;
    const IMPORTS: &'static [&'static str] = &["log", "state", "workspace"];

    fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
        Self::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest)
    }

    fn ready(instance: InstancePre<Guest>) -> wasmtime::Result<Self::Ready> {
        strategy::ResumeStrategyPre::new(instance)
    }

    async fn instantiate(ready: &Self::Ready, store: &mut Store<Guest>) -> wasmtime::Result<Self> {
        ready.instantiate_async(store).await
    }

    async fn describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<Description> {
        let said = self.latido_plugin_lifecycle().call_describe(store).await?;
        Ok(Description {
            name: said.name,
            version: said.version,
            summary: said.summary,
            settings_schema: said.settings_schema,
        })
    }

    async fn configure(&self, store: &mut Store<Guest>, settings: &str) -> wasmtime::Result<Result<(), PluginError>> {
        self.latido_plugin_lifecycle().call_configure(store, settings).await
    }
}
