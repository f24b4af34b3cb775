//! Every kind of fact comes out of a recording as it went in.

use std::time::Duration;

use latido_driver::recording::{Line, Step};
use latido_driver::{
    CheckDefinition, Fact, Finding, FoundJob, FoundState, Look, Passed, ProcessDefinition, Schedule, Signaled, Timing,
    WatchFact,
};
use latido_policy::{Absence, Exit, LaunchFailure, Life, Naming, Proposal, Signal};
use latido_protocol::Outcome;
use latido_protocol::journal::Severity;
use latido_protocol::registry::Question;
use latido_store::MemoryStore;

use crate::world::{SECOND, World, attempt, identity, name, proposal};

/// Kinds of facts. A kind that is missing here does not compile in `number`.
const KINDS: usize = 18;

fn number(fact: &Fact) -> usize {
    match fact {
        Fact::JobFound(_) => 0,
        Fact::JobRemoved { .. } => 1,
        Fact::WantChanged { .. } => 2,
        Fact::AttemptStarted { .. } => 3,
        Fact::LaunchRefused { .. } => 4,
        Fact::Heard { .. } => 5,
        Fact::SupervisorGone { .. } => 6,
        Fact::AttemptEnded { .. } => 7,
        Fact::OrphanEnded { .. } => 8,
        Fact::StrategyAnswered { .. } => 9,
        Fact::LookFailed { .. } => 10,
        Fact::RuleAnswered { .. } => 11,
        Fact::Asked { .. } => 12,
        Fact::GroupLockSeen { .. } => 13,
        Fact::Watched(_) => 14,
        Fact::RuleFailed { .. } => 15,
        Fact::Noted { .. } => 16,
        Fact::ActivitySeen { .. } => 17,
    }
}

fn about_jobs(world: &World) -> Vec<Fact> {
    let found = |state| world.found(state, 1);
    let Fact::AttemptEnded { end, .. } = world.ended(1, 1, Outcome::exited(0)) else { unreachable!() };
    let Fact::JobFound(latest) = found(FoundState::Running) else { unreachable!() };
    let start = Box::new(world.start(1, 1));
    let detail = || "because".to_owned();
    let refused = |failure| Fact::LaunchRefused { attempt: attempt(2, 2), failure, detail: detail() };
    let mut facts = vec![
        found(FoundState::Launching),
        found(FoundState::Ended(end.clone())),
        Fact::JobFound(Box::new(FoundJob { earlier: vec![((*start).clone(), (*end).clone())], ..*latest.clone() })),
        Fact::JobFound(Box::new(FoundJob { attempt: None, ..*latest.clone() })),
        Fact::JobRemoved { job: name() },
        Fact::WantChanged { job: name(), wanted: Box::new(latest.wanted) },
        Fact::AttemptStarted { start: start.clone() },
        world.status(7, Duration::new(3, 400_001)),
        Fact::AttemptEnded { start: Some(start), end: end.clone() },
        Fact::AttemptEnded { start: None, end },
        Fact::OrphanEnded { attempt: attempt(1, 1), survivors: vec![4711] },
        Fact::LookFailed { attempt: attempt(1, 1), detail: detail() },
        Fact::ActivitySeen { attempt: attempt(1, 1), idle: Duration::new(3, 400_001), doing: Some(detail()) },
        Fact::ActivitySeen { attempt: attempt(1, 1), idle: SECOND, doing: None },
    ];
    for life in [Life::Alive, Life::Gone, Life::Unknown] {
        facts.push(found(FoundState::Unattended(life)));
        facts.push(Fact::SupervisorGone { attempt: attempt(1, 1), process: life });
    }
    let wait = Proposal::Wait(Duration::from_millis(1500));
    facts.extend([Proposal::Launch, wait, Proposal::Hold, Proposal::GiveUp, Proposal::Failed].map(proposal));
    let failures = [LaunchFailure::Locked, LaunchFailure::Superseded, LaunchFailure::NotWanted];
    facts.extend(failures.map(refused));
    facts.extend([LaunchFailure::Failed, LaunchFailure::Unreadable].map(refused));
    facts
}

fn about_others() -> Vec<Fact> {
    let finding =
        Finding { key: "stale".into(), subject: "catalogue".into(), severity: Severity::Warning, summary: "s".into() };
    let mut facts = vec![
        Fact::RuleAnswered { rule: "liveness".into(), subjects: vec![name()], findings: vec![finding] },
        Fact::RuleFailed { rule: "liveness".into(), detail: "trap".into() },
        Fact::Asked { ticket: 4, question: Box::new(Question::OpenGroup { group: name() }) },
        Fact::GroupLockSeen { ticket: 4, group: name(), is_held: true },
        Fact::Noted { what: "started".into(), detail: "latido".into() },
    ];
    let schedule = Schedule::parse("30 3 * * *", jiff::tz::TimeZone::get("America/Santiago").unwrap()).unwrap();
    let check = |timing, run_for| {
        let definition = CheckDefinition { name: name(), timing, grace: 90 * SECOND, run_for };
        WatchFact::CheckDefined(Box::new(definition))
    };
    let signaled = |signal| {
        WatchFact::Signaled(Signaled { check: name(), signal, run_id: Some("r1".into()), state: None, kept: None })
    };
    let looked = |look| WatchFact::Looked { process: name(), look };
    let seen = |naming| Look::Seen { identity: identity(7), age: Duration::new(5, 7), naming };
    let ended = |exit| Look::Ended { identity: identity(7), exit };
    let mut watched = vec![
        check(Timing::Every(3600 * SECOND), Some(SECOND)),
        check(Timing::Calendar(schedule), None),
        WatchFact::ProcessDefined(ProcessDefinition {
            name: name(),
            definition: "pid 7".into(),
            start_within: 60 * SECOND,
        }),
        WatchFact::PauseWanted { subject: name(), until: None },
        WatchFact::PauseWanted { subject: name(), until: Some(latido_protocol::WallTime::from_millis(1)) },
        WatchFact::UnpauseWanted { subject: name() },
        looked(Look::Failed { detail: "no".into() }),
    ];
    let signals = [Signal::Started, Signal::Succeeded, Signal::Failed, Signal::Exited(3), Signal::Logged];
    watched.extend(signals.map(signaled));
    let file = Naming::File { written_ago: Duration::new(1, 1) };
    watched.extend([Naming::Pid, file, Naming::Name].map(|naming| looked(seen(naming))));
    let absences = [Absence::Unnamed, Absence::NoProcess, Absence::Reused];
    watched.extend(absences.map(|absence| looked(Look::Absent(absence))));
    let exits = [None, Some(Exit::Status(1)), Some(Exit::Signal(9))];
    watched.extend(exits.map(|exit| looked(ended(exit))));
    facts.extend(watched.into_iter().map(|fact| Fact::Watched(Box::new(fact))));
    facts
}

#[test]
fn every_kind_of_fact_comes_out_of_a_line_as_it_went_in() {
    let world = World::new(MemoryStore::default());
    let mut facts = about_jobs(&world);
    facts.extend(about_others());
    let kinds: std::collections::BTreeSet<usize> = facts.iter().map(number).collect();
    assert_eq!(kinds, (0..KINDS).collect(), "each kind is among them");
    for fact in facts {
        let gap = Some(Duration::new(3600, 5));
        let passed = Passed { listened: Duration::new(4, 999_999_999), gap, wall: world.wall() };
        let facts = vec![fact];
        let step =
            Step { passed, facts, store_is_away: true, wake_in: SECOND, orders: Vec::new(), entries: Vec::new() };
        let line = Line::Step(Box::new(step));
        let text = serde_json::to_string(&line).unwrap();
        assert!(!text.contains('\n'));
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line, "{text}");
    }
}
