//! The three kinds of plugins, each behind one trait whatever version of the package it was built against.
//!
//! A file of [`bindings`](crate::bindings) for each version turns a component into these traits when it is loaded; nothing
//! after that knows of versions.

use std::pin::Pin;
use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{Component, Linker};

use crate::Kind;
use crate::bindings::v0_2::rule::exports::latido::plugin::rule::Finding;
use crate::bindings::v0_2::sink::exports::latido::plugin::sink::Acknowledgement;
use crate::bindings::v0_2::sink::latido::plugin::journal::Batch;
use crate::bindings::v0_2::sink::latido::plugin::types::Subject;
use crate::bindings::v0_2::strategy::exports::latido::plugin::strategy::{Decision, Observation, Output, Situation};
use crate::bindings::{Version, v0_1, v0_2};
use crate::error::PluginError;
use crate::guest::Guest;

/// What a plugin says of itself.
pub use crate::bindings::v0_2::sink::exports::latido::plugin::lifecycle::Description;

/// What a call into a guest gives back: wasmtime's error, else the guest's own answer.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = wasmtime::Result<Result<T, PluginError>>> + Send + 'a>>;

/// An instance that is being made.
pub(crate) type Instantiated<'a, W> = Pin<Box<dyn Future<Output = wasmtime::Result<Box<W>>> + Send + 'a>>;

/// What every plugin answers.
pub(crate) trait World: Send + Sync {
    fn describe<'a>(&'a self, store: &'a mut Store<Guest>) -> Answer<'a, Description>;
    fn configure<'a>(&'a self, store: &'a mut Store<Guest>, settings: &'a str) -> Answer<'a, ()>;
}

/// What sinks answer.
pub(crate) trait SinkWorld: World {
    fn write<'a>(&'a self, store: &'a mut Store<Guest>, batch: &'a Batch) -> Answer<'a, Acknowledgement>;
    fn flush<'a>(&'a self, store: &'a mut Store<Guest>) -> Answer<'a, ()>;
}

/// What rules answer.
pub(crate) trait RuleWorld: World {
    fn evaluate<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        now_ms: u64,
        subjects: &'a [Subject],
    ) -> Answer<'a, Vec<Finding>>;
}

/// What strategies answer.
pub(crate) trait StrategyWorld: World {
    fn decide<'a>(&'a self, store: &'a mut Store<Guest>, situation: &'a Situation) -> Answer<'a, Decision>;
    fn observe<'a>(&'a self, store: &'a mut Store<Guest>, output: &'a Output) -> Answer<'a, Option<Observation>>;
}

/// A component with its imports linked and its exports looked up: instances are made from it.
pub(crate) trait Ready<W: ?Sized>: Send + Sync {
    fn instantiate<'a>(&'a self, store: &'a mut Store<Guest>) -> Instantiated<'a, W>;
}

/// A kind of plugin: how a component becomes one.
pub(crate) trait Kinded: World + 'static {
    const KIND: Kind;
    /// The interfaces that the kind's world imports, in every version.
    const IMPORTS: &'static [&'static str];

    /// Links a component that was built against this version; whatever else it imports is linked already.
    fn link(
        version: Version,
        linker: &mut Linker<Guest>,
        component: &Component,
    ) -> wasmtime::Result<Arc<dyn Ready<Self>>>;
}

impl Kinded for dyn SinkWorld {
    const KIND: Kind = Kind::Sink;
    const IMPORTS: &'static [&'static str] = &["log", "sql", "files", "http", "state"];

    fn link(
        version: Version,
        linker: &mut Linker<Guest>,
        component: &Component,
    ) -> wasmtime::Result<Arc<dyn Ready<Self>>> {
        match version {
            Version::V0_2 => v0_2::link_sink(linker, component),
            Version::V0_1 => v0_1::link_sink(linker, component),
        }
    }
}

impl Kinded for dyn RuleWorld {
    const KIND: Kind = Kind::Rule;
    const IMPORTS: &'static [&'static str] = &["log", "state"];

    fn link(
        version: Version,
        linker: &mut Linker<Guest>,
        component: &Component,
    ) -> wasmtime::Result<Arc<dyn Ready<Self>>> {
        match version {
            Version::V0_2 => v0_2::link_rule(linker, component),
            Version::V0_1 => v0_1::link_rule(linker, component),
        }
    }
}

impl Kinded for dyn StrategyWorld {
    const KIND: Kind = Kind::Strategy;
    const IMPORTS: &'static [&'static str] = &["log", "state", "workspace"];

    fn link(
        version: Version,
        linker: &mut Linker<Guest>,
        component: &Component,
    ) -> wasmtime::Result<Arc<dyn Ready<Self>>> {
        match version {
            Version::V0_2 => v0_2::link_strategy(linker, component),
            Version::V0_1 => v0_1::link_strategy(linker, component),
        }
    }
}
