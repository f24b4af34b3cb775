//! The three kinds of plugins, as the agent calls them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::bindings::v0_2::rule::exports::latido::plugin::rule::Finding;
use crate::bindings::v0_2::sink::exports::latido::plugin::sink::{Acknowledgement, Refusal};
use crate::bindings::v0_2::sink::latido::plugin::types::Subject;
use crate::bindings::v0_2::strategy::exports::latido::plugin::strategy::{Decision, Observation, Output, Situation};
use crate::capability::log::printable;
use crate::costs::Costs;
use crate::entries::Entries;
use crate::error::CallError;
use crate::instance::Plugin;
use crate::world::{Description, RuleWorld, SinkWorld, StrategyWorld};

/// Bytes of the words in which an entry is refused; the rest is cut.
const REFUSAL_MAX: usize = 1 << 10;

/// A plugin that stores what happened.
pub struct Sink {
    pub(crate) plugin: Plugin<dyn SinkWorld>,
    pub(crate) description: Description,
}

/// A plugin that finds what somebody should be told.
pub struct Rule {
    pub(crate) plugin: Plugin<dyn RuleWorld>,
    pub(crate) description: Description,
}

/// A plugin that decides how a job goes on.
pub struct Strategy {
    pub(crate) plugin: Plugin<dyn StrategyWorld>,
    pub(crate) description: Description,
}

/// A plugin of any kind that was loaded.
pub trait Loaded {
    /// The version of the WIT package that it is spoken to in.
    fn package_version(&self) -> &'static str;
}

macro_rules! about {
    ($kind:ty) => {
        impl Loaded for $kind {
            fn package_version(&self) -> &'static str {
                self.plugin.mould.version.text()
            }
        }

        impl $kind {
            /// The operator's name for it.
            pub fn name(&self) -> &str {
                &self.plugin.mould.name
            }

            /// What it says of itself.
            pub fn description(&self) -> &Description {
                &self.description
            }

            /// What it has used since it was loaded.
            pub fn costs(&self) -> Costs {
                self.plugin.costs
            }

            /// Ends its instance and makes another, as a fault would.
            ///
            /// # Errors
            ///
            /// The plugin's own answer to its settings, or its fault.
            pub async fn restart(&mut self) -> Result<(), CallError> {
                self.plugin.restart().await
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
    /// Gives a batch to the sink and returns how far it is. Of a batch above the limits (1,000 entries, 4 MiB) only the first
    /// are given; the rest comes again like whatever is not acknowledged.
    ///
    /// # Errors
    ///
    /// The plugin's own answer, or its fault. An acknowledgement or a refusal of what was not sent is a fault.
    pub async fn write(&mut self, entries: &Entries) -> Result<Acknowledgement, CallError> {
        let limits = &self.plugin.mould.limits;
        let fits = entries.that_fit(limits.batch_entries, limits.batch_bytes);
        let first;
        let entries = if entries.len() > fits {
            first = entries.first(fits);
            &first
        } else {
            entries
        };
        let mut said =
            self.plugin.call("write", entries.batch(), |world, store, batch| world.write(store, batch)).await?;
        if let Some(why) = contradiction(&said, entries.sequences()) {
            return Err(self.plugin.refuse("write", why));
        }
        for refusal in &mut said.refused {
            refusal.why = printable(&refusal.why, REFUSAL_MAX);
        }
        Ok(said)
    }

    /// Asks the sink to make durable soon what it buffers.
    ///
    /// # Errors
    ///
    /// The plugin's own answer, or its fault.
    pub async fn flush(&mut self) -> Result<(), CallError> {
        self.plugin.call("flush", &(), |world, store, ()| world.flush(store)).await
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
            .call("evaluate", &input, |world, store, (now_ms, subjects)| world.evaluate(store, *now_ms, subjects))
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
    /// Asks how a job should go on. Only a proposal. `directory` is the job's own: what the capability `workspace` shows.
    ///
    /// # Errors
    ///
    /// The plugin's own answer, or its fault.
    pub async fn decide(&mut self, situation: &Situation, directory: &Path) -> Result<Decision, CallError> {
        let input = (situation, directory);
        self.plugin
            .call("decide", &input, |world, store, (situation, directory)| {
                store.data_mut().directory = Some(Arc::from(*directory));
                world.decide(store, situation)
            })
            .await
    }

    /// Asks what new output lines say of a running attempt. `directory` is the job's own, as for [`decide`](Self::decide).
    ///
    /// # Errors
    ///
    /// The plugin's own answer, or its fault.
    pub async fn observe(&mut self, output: &Output, directory: &Path) -> Result<Option<Observation>, CallError> {
        let input = (output, directory);
        self.plugin
            .call("observe", &input, |world, store, (output, directory)| {
                store.data_mut().directory = Some(Arc::from(*directory));
                world.observe(store, output)
            })
            .await
    }
}

/// What is wrong with an acknowledgement of a batch, if anything is.
fn contradiction(said: &Acknowledgement, sent: &[u64]) -> Option<String> {
    let newest = sent.last()?;
    if said.durable > *newest {
        return Some(format!("it acknowledged entry {}, the newest it was given is {newest}", said.durable));
    }
    let foreign = said
        .refused
        .iter()
        .find(|Refusal { sequence, .. }| *sequence > said.durable || sent.binary_search(sequence).is_err());
    let Refusal { sequence, .. } = foreign?;
    Some(format!("it refused entry {sequence}, which it was not given or has not acknowledged"))
}
