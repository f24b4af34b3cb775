//! What a plugin costs: to compile, to load, to make an instance of, and to call with few and with many records.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use latido_plugin_host::{Entries, Kind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::case::{Action, NOW_MS};
use crate::clock;
use crate::conformance::inputs;
use crate::plugin::Plugin;
use crate::stage::{Place, Running, Setting, StageError, Workshop};

/// Records of a call.
const SIZES: [usize; 3] = [1, 100, 1_000];

/// How long one series is measured at most.
const SERIES: Duration = Duration::from_secs(3);

/// Loads from the cache, and instances, that are measured.
const LOADS: usize = 5;
const INSTANCES: usize = 20;

/// What a figure may be above the baseline: times vary from run to run, fuel and memory do not.
const TIME_MORE: f64 = 1.3;
const COUNT_MORE: f64 = 1.02;

/// What a plugin costs, by the figure's name: `compile.ms`, `call-100.p99-us`, `call-1000.fuel`, `memory.bytes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// the plugin's name
    pub plugin: String,
    /// its kind
    pub kind: String,
    /// each figure
    pub figures: BTreeMap<String, f64>,
}

/// A figure that is more than it may be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Excess {
    /// the figure's name
    pub name: String,
    /// what it is
    pub found: f64,
    /// what it may be at most
    pub limit: f64,
}

/// Measures a plugin. `rounds` are the calls of each series, as far as its time goes.
///
/// # Errors
///
/// Fails where the plugin cannot be run, or a call of it fails.
pub fn bench(plugin: &Plugin, settings: Option<&Value>, rounds: usize) -> Result<Figures, BenchError> {
    let folder = tempfile::tempdir().map_err(StageError::Folder)?;
    let settings = settings.cloned().unwrap_or_else(|| json!({}));
    let mut bench = Bench { plugin, settings, rounds: rounds.max(1), figures: BTreeMap::new() };
    bench.loads(&folder.path().join("plain"))?;
    bench.calls(&folder.path().join("plain"))?;
    bench.fuel(&folder.path().join("metered"))?;
    Ok(Figures { plugin: plugin.name.clone(), kind: plugin.kind.name().to_owned(), figures: bench.figures })
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The plugin cannot be run at all.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A call failed: what is measured then is not its work.
    #[error("measure the plugin: `{function}` with {records} records failed: {why}")]
    Call {
        /// the function
        function: &'static str,
        /// how many records
        records: usize,
        /// in words
        why: String,
    },
}

struct Bench<'a> {
    plugin: &'a Plugin,
    settings: Value,
    rounds: usize,
    figures: BTreeMap<String, f64>,
}

impl Bench<'_> {
    fn load(&self, workshop: &Workshop) -> Result<(Place, Running), StageError> {
        let place = Place::unwatched(self.plugin)?;
        let setting = Setting::new(self.settings.clone(), NOW_MS, 0);
        let loading = place.load(&workshop.host, self.plugin, &setting);
        let running = workshop.runtime.block_on(loading).map_err(StageError::Load)?;
        Ok((place, running))
    }

    fn loads(&mut self, cache: &Path) -> Result<(), BenchError> {
        let begun = clock::now();
        self.load(&Workshop::with(cache, false)?)?;
        self.figures.insert("compile.ms".to_owned(), millis(since(begun)));
        let mut spans = Vec::new();
        for _ in 0..LOADS {
            let workshop = Workshop::with(cache, false)?;
            let begun = clock::now();
            self.load(&workshop)?;
            spans.push(since(begun));
        }
        self.figures.insert("load.ms".to_owned(), millis(at(&mut spans, 50)));
        Ok(())
    }

    fn calls(&mut self, cache: &Path) -> Result<(), BenchError> {
        let workshop = Workshop::with(cache, false)?;
        let (place, mut running) = self.load(&workshop)?;
        let mut spans = Vec::new();
        for _ in 0..INSTANCES {
            let begun = clock::now();
            let made = workshop.runtime.block_on(running.restart());
            spans.push(since(begun));
            made.map_err(|error| BenchError::Call { function: "configure", records: 0, why: error.to_string() })?;
        }
        self.figures.insert("instantiate.us".to_owned(), micros(at(&mut spans, 50)));
        let mut next = 1;
        for size in SIZES {
            let (mut spans, begun) = (Vec::new(), clock::now());
            for round in 0..=self.rounds {
                let action = work(self.plugin.kind, size, &mut next);
                let called = clock::now();
                let answer = workshop.runtime.block_on(running.call(&action));
                let took = since(called);
                place.onlooker.take_calls(); // what requests said is not kept
                answer.map_err(|error| failed(&action, size, &error.to_string()))?;
                if round > 0 {
                    spans.push(took); // the first one makes what the others find
                }
                if since(begun) > SERIES && !spans.is_empty() {
                    break;
                }
            }
            self.figures.insert(format!("call-{size}.median-us"), micros(at(&mut spans, 50)));
            self.figures.insert(format!("call-{size}.p99-us"), micros(at(&mut spans, 99)));
        }
        Ok(())
    }

    fn fuel(&mut self, cache: &Path) -> Result<(), BenchError> {
        let workshop = Workshop::with(cache, true)?;
        let (_place, mut running) = self.load(&workshop)?;
        self.figures.insert("start.fuel".to_owned(), count(running.costs().fuel));
        let mut next = 1;
        for size in SIZES {
            let action = work(self.plugin.kind, size, &mut next);
            let before = running.costs().fuel;
            let answer = workshop.runtime.block_on(running.call(&action));
            answer.map_err(|error| failed(&action, size, &error.to_string()))?;
            self.figures.insert(format!("call-{size}.fuel"), count(running.costs().fuel - before));
        }
        self.figures.insert("memory.bytes".to_owned(), count(running.costs().memory_peak as u64));
        Ok(())
    }
}

impl Figures {
    /// Figures above what a budget allows: names with what they may be at most.
    ///
    /// # Errors
    ///
    /// Names what is no figure, with those that are.
    pub fn above(&self, budget: &BTreeMap<String, f64>) -> Result<Vec<Excess>, String> {
        let mut above = Vec::new();
        for (name, limit) in budget {
            let Some(found) = self.figures.get(name) else {
                let known: Vec<&str> = self.figures.keys().map(String::as_str).collect();
                return Err(format!("there is no figure `{name}`; known: {}", known.join(", ")));
            };
            if found > limit {
                above.push(Excess { name: name.clone(), found: *found, limit: *limit });
            }
        }
        Ok(above)
    }

    /// Figures that have grown since a baseline: times by more than three tenths, fuel and memory by more than a fiftieth.
    pub fn grown(&self, baseline: &Self) -> Vec<Excess> {
        let limit = |name: &str, known: f64| {
            let is_count = name.ends_with(".fuel") || name.ends_with(".bytes");
            known * if is_count { COUNT_MORE } else { TIME_MORE }
        };
        let both = self.figures.iter().filter_map(|(name, found)| Some((name, *found, *baseline.figures.get(name)?)));
        both.map(|(name, found, known)| Excess { name: name.clone(), found, limit: limit(name, known) })
            .filter(|excess| excess.found > excess.limit)
            .collect()
    }
}

/// One call with so many records: entries, subjects, or lines of output.
fn work(kind: Kind, size: usize, next: &mut u64) -> Action {
    match kind {
        Kind::Sink => {
            let entries: Entries = inputs::entries(*next, size, NOW_MS);
            *next += size as u64;
            Action::Write(Box::new(entries))
        }
        Kind::Rule => Action::Evaluate(NOW_MS, inputs::subjects(size, "job-", NOW_MS)),
        Kind::Strategy if size == 1 => Action::Decide(Box::new(inputs::situation(1, "work", NOW_MS))),
        Kind::Strategy => Action::Observe(inputs::output(vec!["step 3 of 10: 30%".to_owned(); size])),
    }
}

fn failed(action: &Action, records: usize, why: &str) -> BenchError {
    BenchError::Call { function: action.name(), records, why: why.to_owned() }
}

fn since(begun: Instant) -> Duration {
    clock::now().saturating_duration_since(begun)
}

/// The value at a percentile of what was measured.
fn at(spans: &mut [Duration], percent: usize) -> Duration {
    spans.sort_unstable();
    let last = spans.len().saturating_sub(1);
    spans.get(last * percent / 100).copied().unwrap_or_default()
}

fn millis(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e5).round() / 1e2
}

fn micros(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e8).round() / 1e2
}

#[expect(clippy::cast_precision_loss, reason = "fuel and bytes of one call are far below 2^53")]
fn count(number: u64) -> f64 {
    number as f64
}
