//! The figures of a status document, as Prometheus and whatever reads OpenMetrics takes them.
//!
//! Names, labels and units are an interface: more may come, none changes its meaning. Workers have no series of their own,
//! since there may be a million of them; they are counted by verdict like all else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;

use latido_protocol::status::{AgentStatus, PluginStatus, StatusDocument, SubjectKind, SubjectStatus};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// Labels by name.
type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;
type Counters = Family<Labels, Counter>;
type SecondCounters = Family<Labels, Counter<f64, AtomicU64>>;

/// The document's figures in the text form of OpenMetrics 1.0.
///
/// # Errors
///
/// Never in practice: writing into a text does not fail.
pub fn text(document: &StatusDocument) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("latido");
    subjects(&mut registry, &document.subjects);
    agent(&mut registry, document.agent.as_ref());
    if let Some(agent) = &document.agent {
        plugins(&mut registry, &agent.plugins);
    }
    let mut written = String::new();
    text::encode(&mut written, &registry)?;
    Ok(written)
}

fn gauges(registry: &mut Registry, name: &str, help: &str, unit: Option<Unit>) -> Gauges {
    let family = Gauges::default();
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, family.clone()),
        None => registry.register(name, help, family.clone()),
    }
    family
}

fn counters(registry: &mut Registry, name: &str, help: &str) -> Counters {
    let family = Counters::default();
    registry.register(name, help, family.clone());
    family
}

fn agent(registry: &mut Registry, agent: Option<&AgentStatus>) {
    let up = gauges(registry, "agent_up", "Whether an agent answers", None);
    up.get_or_create(&Labels::new()).set(if agent.is_some() { 1.0 } else { 0.0 });
    let Some(agent) = agent else { return };
    let timestamp = |at: latido_protocol::WallTime| at.as_millis() as f64 / 1e3;
    let started = gauges(registry, "agent_started", "When the agent began, in Unix time", Some(Unit::Seconds));
    started.get_or_create(&Labels::new()).set(timestamp(agent.started_at));
    let swept =
        gauges(registry, "agent_swept", "When the agent looked last at what is due, in Unix time", Some(Unit::Seconds));
    swept.get_or_create(&Labels::new()).set(timestamp(agent.swept_at));
    let entries = counters(registry, "journal_entries", "Entries of the journal since it was made");
    entries.get_or_create(&Labels::new()).inc_by(agent.sequence);
}

fn subjects(registry: &mut Registry, subjects: &[SubjectStatus]) {
    let of_verdict = gauges(registry, "subjects", "Subjects by kind and verdict", None);
    let silence = gauges(registry, "subject_silence", "Listening time since the last beat", Some(Unit::Seconds));
    let attempts = gauges(registry, "subject_attempt", "The number of the latest attempt", None);
    let pickups = gauges(registry, "subject_pickups", "Lost attempts", None);
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for subject in subjects {
        *counts.entry((subject.kind.as_str(), subject.verdict.as_str())).or_default() += 1;
        if subject.kind == SubjectKind::Worker {
            continue;
        }
        let labels = vec![("subject", subject.name.to_string()), ("kind", subject.kind.as_str().to_owned())];
        if let Some(span) = subject.silence_s {
            silence.get_or_create(&labels).set(span.0.as_secs_f64());
        }
        if subject.kind == SubjectKind::Job {
            attempts.get_or_create(&labels).set(f64::from(subject.attempt));
            pickups.get_or_create(&labels).set(f64::from(subject.pickups));
        }
    }
    for ((kind, verdict), count) in counts {
        let labels = vec![("kind", kind.to_owned()), ("verdict", verdict.to_owned())];
        of_verdict.get_or_create(&labels).set(count as f64);
    }
}

fn plugins(registry: &mut Registry, plugins: &[PluginStatus]) {
    let state = gauges(registry, "plugin_state", "1 for the state that a plugin is in", None);
    let memory = gauges(registry, "plugin_memory", "Memory of a plugin's instance", Some(Unit::Bytes));
    let cursor = gauges(registry, "sink_cursor", "The last entry of the journal that is durable in a sink", None);
    let queue = gauges(registry, "sink_queue", "How far a sink is behind the journal, in entries", None);
    let faults = counters(registry, "plugin_faults", "Faults of a plugin since the agent began, by kind");
    let calls = counters(registry, "plugin_calls", "Calls of a plugin since it was loaded");
    let instances = counters(registry, "plugin_instances", "Instances of a plugin since it was loaded");
    let set_aside = counters(registry, "sink_set_aside", "Entries that a sink could not store, and that are set aside");
    let lost = counters(registry, "sink_lost", "Entries that a sink lost because it was too far behind");
    let busy = SecondCounters::default();
    registry.register_with_unit(
        "plugin_busy",
        "Time in calls of a plugin since it was loaded",
        Unit::Seconds,
        busy.clone(),
    );
    for plugin in plugins {
        let labels = vec![("plugin", plugin.name.clone()), ("kind", plugin.kind.clone())];
        let with = |name: &'static str, value: &str| {
            labels.iter().cloned().chain([(name, value.to_owned())]).collect::<Labels>()
        };
        state.get_or_create(&with("state", &plugin.state)).set(1.0);
        memory.get_or_create(&labels).set(plugin.memory_bytes as f64);
        for (fault, count) in &plugin.faults_by_kind {
            faults.get_or_create(&with("fault", fault)).inc_by(*count);
        }
        calls.get_or_create(&labels).inc_by(plugin.calls);
        instances.get_or_create(&labels).inc_by(plugin.instances);
        busy.get_or_create(&labels).inc_by(plugin.busy_s.0.as_secs_f64());
        if let Some(last) = plugin.cursor {
            cursor.get_or_create(&labels).set(last as f64);
            queue.get_or_create(&labels).set(plugin.queue.unwrap_or_default() as f64);
            set_aside.get_or_create(&labels).inc_by(plugin.set_aside);
            lost.get_or_create(&labels).inc_by(plugin.lost);
        }
    }
}
