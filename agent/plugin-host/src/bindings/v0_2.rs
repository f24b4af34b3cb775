//! Version 0.2 of the WIT package, as wasmtime's generator reads it.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{Component, HasSelf, Linker};

use super::same::Same;
use crate::guest::Guest;
use crate::world::{Answer, Description, Instantiated, Ready, RuleWorld, SinkWorld, StrategyWorld, World};
use rule::exports::latido::plugin::rule::Finding;
use sink::exports::latido::plugin::sink::Acknowledgement;
use sink::latido::plugin::journal::Batch;
use sink::latido::plugin::types::Subject;
use strategy::exports::latido::plugin::strategy::{Decision, Observation, Output, Situation};

/// The world of sinks, and the types that all worlds share.
#[expect(unreachable_pub, reason = "generated from wit/latido.wit, documented there")]
pub mod sink {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "storage-sink",
        imports: { default: async },
        exports: { default: async },
        additional_derives: [PartialEq],
        require_store_data_send: true,
    });
}

/// The world of rules.
#[expect(unreachable_pub, reason = "generated from wit/latido.wit, documented there")]
pub mod rule {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "alert-rule",
        imports: { default: async },
        exports: { default: async },
        additional_derives: [PartialEq],
        require_store_data_send: true,
        with: {
            "latido:plugin/types": super::sink::latido::plugin::types,
            "latido:plugin/log": super::sink::latido::plugin::log,
            "latido:plugin/state": super::sink::latido::plugin::state,
        },
    });
}

/// The world of strategies.
#[expect(unreachable_pub, reason = "generated from wit/latido.wit, documented there")]
pub mod strategy {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "resume-strategy",
        imports: { default: async },
        exports: { default: async },
        additional_derives: [PartialEq],
        require_store_data_send: true,
        with: {
            "latido:plugin/types": super::sink::latido::plugin::types,
            "latido:plugin/log": super::sink::latido::plugin::log,
            "latido:plugin/state": super::sink::latido::plugin::state,
        },
    });
}

kind!(sink::StorageSink, sink::StorageSinkPre<Guest>, SinkWorld, link_sink);
kind!(rule::AlertRule, rule::AlertRulePre<Guest>, RuleWorld, link_rule);
kind!(strategy::ResumeStrategy, strategy::ResumeStrategyPre<Guest>, StrategyWorld, link_strategy);

impl SinkWorld for sink::StorageSink {
    fn write<'a>(&'a self, store: &'a mut Store<Guest>, batch: &'a Batch) -> Answer<'a, Acknowledgement> {
        Box::pin(self.latido_plugin_sink().call_write(store, batch))
    }

    fn flush<'a>(&'a self, store: &'a mut Store<Guest>) -> Answer<'a, ()> {
        Box::pin(self.latido_plugin_sink().call_flush(store))
    }
}

impl RuleWorld for rule::AlertRule {
    fn evaluate<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        now_ms: u64,
        subjects: &'a [Subject],
    ) -> Answer<'a, Vec<Finding>> {
        Box::pin(self.latido_plugin_rule().call_evaluate(store, now_ms, subjects))
    }
}

impl StrategyWorld for strategy::ResumeStrategy {
    fn decide<'a>(&'a self, store: &'a mut Store<Guest>, situation: &'a Situation) -> Answer<'a, Decision> {
        Box::pin(self.latido_plugin_strategy().call_decide(store, situation))
    }

    fn observe<'a>(&'a self, store: &'a mut Store<Guest>, output: &'a Output) -> Answer<'a, Option<Observation>> {
        Box::pin(self.latido_plugin_strategy().call_observe(store, output))
    }
}
