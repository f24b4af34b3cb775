//! Alerts of the real agent: told once, over its death too, silenced, known, and many as one.

use latido_protocol::alerts::{AlertsDocument, Standing};
use latido_protocol::journal::{Body, Telling};

use super::plugins::guest;
use crate::support::{Agent, World, wait_until};

/// No sinks, and nobody waits longer than a test has to.
const PROMPT: &str = "sink = []\n[alerts]\ngroup_for = \"300ms\"\nresolve_after = \"0s\"\n";

/// Silent for longer than its ttl after its first beat.
const SILENT: &str = "latido beat; exec sleep 1000";
const BRIEF: &[&str] = &["--ttl", "1s", "--interval", "300ms"];
/// Given up at its first loss.
const ONCE: &[&str] = &["--max-attempts", "1"];

/// What was told of alerts, oldest first: `stale/a began`.
fn told(world: &World) -> Vec<String> {
    let of = |body: Body| match body {
        Body::Alert(alert) => Some(format!("{} {}", alert.fingerprint, alert.telling)),
        Body::Transition { .. }
        | Body::Beat { .. }
        | Body::Phase { .. }
        | Body::AttemptStarted { .. }
        | Body::AttemptEnded { .. }
        | Body::LeaseExpired { .. }
        | Body::Agent { .. } => None,
    };
    world.events().into_iter().filter_map(|entry| of(entry.body)).collect()
}

fn listed(world: &World) -> AlertsDocument {
    serde_json::from_str(&world.latido(&["alerts", "list", "--json"]).stdout).unwrap()
}

fn standing(world: &World, fingerprint: &str) -> Option<Standing> {
    listed(world).alerts.into_iter().find(|alert| alert.fingerprint == fingerprint).map(|alert| alert.state)
}

// pmcfadin/acmon#29
#[test]
fn c106_an_agent_that_was_killed_repeats_no_alert_and_misses_none() {
    let world = World::new();
    let agent = Agent::start(&world, PROMPT);
    world.detach("a", BRIEF, SILENT);
    world.detach("b", ONCE, "exec sleep 1000");
    wait_until("the alert", || told(&world) == ["liveness/stale/a began"]);
    agent.kill();
    world.kill(world.start("b", 1).process.unwrap().pid, "KILL");
    let again = Agent::start(&world, PROMPT);
    wait_until("what was missed", || told(&world) == ["liveness/stale/a began", "liveness/stuck/b began"]);
    again.kill();
    let _agent = Agent::start(&world, PROMPT);
    world.latido(&["stop", "a"]).ends_with(0);
    wait_until("its end", || told(&world).last().is_some_and(|last| last == "liveness/stale/a ended"));
    assert_eq!(told(&world).len(), 3, "{:?}", told(&world));
}

#[test]
fn what_is_silenced_is_listed_over_a_restart_and_told_when_the_silence_ends() {
    let world = World::new();
    let agent = Agent::start(&world, PROMPT);
    world.detach("a", BRIEF, SILENT);
    let words = ["alerts", "silence", "--subject", "a", "--for", "1h", "--reason", "maintenance", "--by", "ana"];
    let ran = world.latido(&words).ends_with(0);
    assert!(ran.stdout.starts_with("silence 1 keeps subject a quiet until "), "{ran:?}");
    let is_muted = || standing(&world, "liveness/stale/a") == Some(Standing::Muted);
    wait_until("the muted alert", is_muted);
    agent.kill();
    let _agent = Agent::start(&world, PROMPT);
    wait_until("the muted alert again", is_muted);
    let document = listed(&world);
    let silence = &document.silences[0];
    assert_eq!((silence.number, silence.by.as_str(), silence.reason.as_str()), (1, "ana", "maintenance"));
    assert_eq!(document.alerts[0].muted_by.as_deref(), Some("silence 1"));
    assert_eq!(told(&world), [""; 0]);
    world.latido(&["alerts", "unsilence", "1"]).ends_with(0);
    wait_until("the alert", || told(&world) == ["liveness/stale/a began"]);
    world.latido(&["alerts", "unsilence", "1"]).ends_with(4);
}

#[test]
fn what_is_acknowledged_stays_so_over_a_restart() {
    let world = World::new();
    let agent = Agent::start(&world, PROMPT);
    world.detach("a", BRIEF, SILENT);
    let alert = "liveness/stale/a";
    wait_until("the alert", || standing(&world, alert) == Some(Standing::Firing));
    world.latido(&["alerts", "ack", alert, "--by", "ana"]).ends_with(0);
    world.latido(&["alerts", "ack", "liveness/stale/b"]).ends_with(4);
    agent.kill();
    let without = listed(&world);
    assert!(!without.agent, "what is recorded is listed without an agent");
    let _agent = Agent::start(&world, PROMPT);
    wait_until("the alert again", || standing(&world, alert) == Some(Standing::Firing));
    for document in [without, listed(&world)] {
        assert_eq!(document.alerts[0].acknowledged_by.as_deref(), Some("ana"), "{document:?}");
    }
    world.latido(&["alerts"]).ends_with(1);
}

#[test]
fn a_mass_death_is_told_as_one_with_its_number_and_names() {
    let world = World::new();
    let _agent = Agent::start(&world, PROMPT);
    let names: Vec<String> = (1..=8).map(|number| format!("job-{number}")).collect();
    for name in &names {
        world.detach(name, ONCE, "exec sleep 1000");
    }
    let pids: Vec<u32> = names.iter().map(|name| world.start(name, 1).process.unwrap().pid).collect();
    for pid in pids {
        world.kill(pid, "KILL");
    }
    let grouped = || listed(&world).alerts.iter().filter(|alert| alert.state == Standing::Grouped).count();
    wait_until("the alert about all", || grouped() == 8);
    let many = world.events().into_iter().find_map(|entry| match entry.body {
        Body::Alert(alert) if alert.telling == Telling::Began => Some((alert.fingerprint, alert.who)),
        Body::Alert(_)
        | Body::Transition { .. }
        | Body::Beat { .. }
        | Body::Phase { .. }
        | Body::AttemptStarted { .. }
        | Body::AttemptEnded { .. }
        | Body::LeaseExpired { .. }
        | Body::Agent { .. } => None,
    });
    let (fingerprint, who) = many.unwrap();
    assert_eq!(fingerprint, "liveness/stuck/*");
    assert!(who.iter().all(|name| names.contains(name)) && who.len() >= 5, "{who:?}");
    let singly = told(&world).iter().filter(|line| line.contains("job-")).count();
    assert_eq!(singly, 0, "{:?}", told(&world));
}

/// The rule never returns from a call and is ended: somebody is told, and what has to be known is found without it.
#[test]
fn a_rule_that_never_answers_is_told_of_and_the_minimum_goes_on() {
    let world = World::new();
    let config = format!(
        "{PROMPT}[[rule]]\nname = \"liveness\"\nsource = \"{}\"\nsettings = {{ what = \"loop\" }}\nlimits = {{ cpu_for = \"200ms\" }}\n",
        guest("misbehave-rule")
    );
    let _agent = Agent::start(&world, &config);
    world.detach("a", BRIEF, SILENT);
    let both = ["agent/rule-broken/liveness began", "liveness/stale/a began"];
    wait_until("both alerts", || both.iter().all(|line| told(&world).iter().any(|told| told == line)));
}

#[test]
fn a_test_goes_through_what_alerts_go_through() {
    let world = World::new();
    let _agent = Agent::start(&world, PROMPT);
    world.latido(&["alerts", "test"]).ends_with(0);
    wait_until("the test", || told(&world) == ["agent/test/agent began", "agent/test/agent ended"]);
}

#[test]
fn without_an_agent_nothing_can_be_changed_and_the_list_says_so() {
    let world = World::new();
    let ran = world.latido(&["alerts"]).ends_with(0);
    assert_eq!(ran.stdout, "no agent runs: this is what was recorded last\n");
    world.latido(&["alerts", "silence", "--rule", "liveness", "--for", "1h"]).ends_with(3);
    world.latido(&["alerts", "silence", "--rule", "liveness"]).ends_with(2);
    world.latido(&["alerts", "silence", "--for", "1h"]).ends_with(2);
}
