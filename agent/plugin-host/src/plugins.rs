//! The three kinds of plugins, as the agent calls them.

use std::collections::HashSet;

use crate::bindings::v0::rule::AlertRule;
use crate::bindings::v0::rule::exports::latido::plugin::rule::Finding;
use crate::bindings::v0::sink::StorageSink;
use crate::bindings::v0::sink::latido::plugin::journal::Entry;
use crate::bindings::v0::sink::latido::plugin::types::Subject;
use crate::bindings::v0::strategy::ResumeStrategy;
use crate::bindings::v0::strategy::exports::latido::plugin::strategy::{Decision, Observation, Situation};
use crate::error::CallError;
use crate::instance::Plugin;
use crate::world::Description;

/// A plugin that stores what happened.
pub struct Sink {
    pub(crate) plugin: Plugin<StorageSink>,
    pub(crate) description: Description,
}

/// A plugin that finds what somebody should be told.
pub struct Rule {
    pub(crate) plugin: Plugin<AlertRule>,
    pub(crate) description: Description,
}

/// A plugin that decides how a job goes on.
pub struct Strategy {
    pub(crate) plugin: Plugin<ResumeStrategy>,
    pub(crate) description: Description,
}

macro_rules! about {
    ($kind:ty) => {
        impl $kind {
            /// The operator's name for it.
            pub fn name(&self) -> &str {
                &self.plugin.mould.name
            }

            /// What it says of itself.
            pub fn description(&self) -> &Description {
                &self.description
            }

            /// Whether its instance is still there; after a fault there is none until the next call.
            pub fn is_warm(&self) -> bool {
                self.plugin.is_warm()
            }
        }
    };
}

about!(Sink);
about!(Rule);
about!(Strategy);

impl Sink {
    /// Gives a batch to the sink and returns the sequence up to and including which every entry is durable. Of a batch
    /// above the limit (1,000 entries) only the first are given; the rest comes again like whatever is not acknowledged.
    ///
    /// # Errors
    ///
    /// The plugin's own answer, or its fault. An acknowledgement of what was not sent is a fault.
    pub async fn write(&mut self, batch: &[Entry]) -> Result<u64, CallError> {
        let batch = batch.get(..self.plugin.mould.limits.batch_entries).unwrap_or(batch);
        let newest = batch.last().map_or(0, |entry| entry.sequence);
        let acknowledged = self
            .plugin
            .call("write", batch, |world, store, batch| Box::pin(world.latido_plugin_sink().call_write(store, batch)))
            .await?;
        if !batch.is_empty() && acknowledged > newest {
            let why = format!("it acknowledged entry {acknowledged}, the newest it was given is {newest}");
            return Err(self.plugin.refuse("write", why));
        }
        Ok(acknowledged)
    }

    /// Asks the sink to make durable soon what it buffers.
    ///
    /// # Errors
    ///
    /// The plugin's own answer, or its fault.
    pub async fn flush(&mut self) -> Result<(), CallError> {
        self.plugin.call("flush", &(), |world, store, ()| Box::pin(world.latido_plugin_sink().call_flush(store))).await
    }
}

impl Rule {
    /// Asks which findings hold for these subjects. `now_ms` is the wall time in milliseconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// The plugin's own answer, or its fault. More findings than the limit, or one about a subject that was not given, is
    /// a fault.
    pub async fn evaluate(&mut self, now_ms: u64, subjects: &[Subject]) -> Result<Vec<Finding>, CallError> {
        let input = (now_ms, subjects);
        let findings = self
            .plugin
            .call("evaluate", &input, |world, store, (now_ms, subjects)| {
                Box::pin(world.latido_plugin_rule().call_evaluate(store, *now_ms, subjects))
            })
            .await?;
        let limit = self.plugin.mould.limits.findings;
        if findings.len() > limit {
            return Err(self.plugin.refuse("evaluate", format!("it has {} findings, at most {limit}", findings.len())));
        }
        let known: HashSet<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
        match findings.iter().find(|finding| !known.contains(finding.subject.as_str())) {
            Some(foreign) => {
                let why = format!("it has a finding about `{}`, which it was not asked about", foreign.subject);
                Err(self.plugin.refuse("evaluate", why))
            }
            None => Ok(findings),
        }
    }
}

impl Strategy {
    /// Asks how a job should go on. Only a proposal.
    ///
    /// # Errors
    ///
    /// The plugin's own answer, or its fault.
    pub async fn decide(&mut self, situation: &Situation) -> Result<Decision, CallError> {
        self.plugin
            .call("decide", situation, |world, store, situation| {
                Box::pin(world.latido_plugin_strategy().call_decide(store, situation))
            })
            .await
    }

    /// Asks what new output lines say of a running attempt.
    ///
    /// # Errors
    ///
    /// The plugin's own answer, or its fault.
    pub async fn observe(&mut self, output: &Output<'_>) -> Result<Option<Observation>, CallError> {
        self.plugin
            .call("observe", output, |world, store, output| {
                let strategy = world.latido_plugin_strategy();
                Box::pin(strategy.call_observe(
                    store,
                    output.subject,
                    output.attempt,
                    output.epoch,
                    output.offset,
                    output.lines,
                ))
            })
            .await
    }
}

/// New output of a running attempt.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// whose
    pub subject: &'a str,
    /// its attempt
    pub attempt: u32,
    /// its fencing number
    pub epoch: u64,
    /// the bytes of output before these lines
    pub offset: u64,
    /// the lines, without line feeds
    pub lines: &'a [String],
}
