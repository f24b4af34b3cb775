//! Version 0.1 of the WIT package, whose answers are turned into those of 0.2, and whose questions from them.

mod capabilities;
mod entries;
mod records;

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{Component, HasSelf, Linker};

use super::same::Same;
use super::v0_2::rule::exports::latido::plugin::rule::Finding;
use super::v0_2::sink::exports::latido::plugin::sink::Acknowledgement;
use super::v0_2::sink::latido::plugin::journal::Batch;
use super::v0_2::sink::latido::plugin::types::Subject;
use super::v0_2::strategy::exports::latido::plugin::strategy::{Decision, Observation, Output, Situation};
use crate::guest::Guest;
use crate::world::{Answer, Description, Instantiated, Ready, RuleWorld, SinkWorld, StrategyWorld, World};

/// The world of sinks, and the types that all worlds share.
#[expect(unreachable_pub, reason = "generated from wit/released/latido-0.1.0.wit, documented there")]
pub mod sink {
    wasmtime::component::bindgen!({
        path: "../../wit/released/latido-0.1.0.wit",
        world: "storage-sink",
        imports: { default: async },
        exports: { default: async },
        additional_derives: [PartialEq],
        require_store_data_send: true,
    });
}

/// The world of rules.
#[expect(unreachable_pub, reason = "generated from wit/released/latido-0.1.0.wit, documented there")]
pub mod rule {
    wasmtime::component::bindgen!({
        path: "../../wit/released/latido-0.1.0.wit",
        world: "alert-rule",
        imports: { default: async },
        exports: { default: async },
        additional_derives: [PartialEq],
        require_store_data_send: true,
        with: {
            "latido:plugin/types": super::sink::latido::plugin::types,
            "latido:plugin/journal": super::sink::latido::plugin::journal,
            "latido:plugin/log": super::sink::latido::plugin::log,
            "latido:plugin/state": super::sink::latido::plugin::state,
        },
    });
}

/// The world of strategies.
#[expect(unreachable_pub, reason = "generated from wit/released/latido-0.1.0.wit, documented there")]
pub mod strategy {
    wasmtime::component::bindgen!({
        path: "../../wit/released/latido-0.1.0.wit",
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
    /// A sink of this version refuses no single entry.
    fn write<'a>(&'a self, store: &'a mut Store<Guest>, batch: &'a Batch) -> Answer<'a, Acknowledgement> {
        Box::pin(async move {
            let entries = entries::of(batch);
            let answer = self.latido_plugin_sink().call_write(store, &entries).await?;
            Ok(answer.map(|durable| Acknowledgement { durable, refused: Vec::new() }).map_err(Same::same))
        })
    }

    fn flush<'a>(&'a self, store: &'a mut Store<Guest>) -> Answer<'a, ()> {
        Box::pin(async move { Ok(self.latido_plugin_sink().call_flush(store).await?.map_err(Same::same)) })
    }
}

impl RuleWorld for rule::AlertRule {
    fn evaluate<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        now_ms: u64,
        subjects: &'a [Subject],
    ) -> Answer<'a, Vec<Finding>> {
        Box::pin(async move {
            let subjects: Vec<_> = subjects.iter().cloned().map(Same::same).collect();
            let answer = self.latido_plugin_rule().call_evaluate(store, now_ms, &subjects).await?;
            Ok(answer.map(Same::same).map_err(Same::same))
        })
    }
}

impl StrategyWorld for strategy::ResumeStrategy {
    fn decide<'a>(&'a self, store: &'a mut Store<Guest>, situation: &'a Situation) -> Answer<'a, Decision> {
        Box::pin(async move {
            let situation = situation.clone().same();
            let answer = self.latido_plugin_strategy().call_decide(store, &situation).await?;
            Ok(answer.map(Same::same).map_err(Same::same))
        })
    }

    fn observe<'a>(&'a self, store: &'a mut Store<Guest>, output: &'a Output) -> Answer<'a, Option<Observation>> {
        let Output { subject, attempt, epoch, offset, lines, attributes: _ } = output;
        Box::pin(async move {
            let strategy = self.latido_plugin_strategy();
            let answer = strategy.call_observe(store, subject, *attempt, *epoch, *offset, lines).await?;
            Ok(answer.map(Same::same).map_err(Same::same))
        })
    }
}
