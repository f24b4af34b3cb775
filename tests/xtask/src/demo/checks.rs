//! What the demo proves, as questions over what was read: nothing here looks at a file or a process.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use latido_protocol::files::{End, LedgerLine, Start};
use latido_protocol::status::{PluginStatus, Verdict};
use latido_protocol::{Class, OutcomeKind};

use super::records::{Journal, Record};
use super::world::{JOB, Runner};

/// The class of each attempt's ending: killed, orphaned and ended, completed.
const CLASSES: [Class; 3] = [Class::Lost, Class::Lost, Class::Completed];

/// Checks that an attempt was ended and recorded before the next one was launched from its checkpoint.
///
/// # Errors
///
/// Says what is not so.
pub(crate) fn resumed(before: &Start, end: &End, next: &Start) -> Result<()> {
    let number = before.attempt;
    ensure!(end.outcome.class == Class::Lost, "attempt {number} ended as {}, not as lost", end.outcome.class);
    ensure!(next.attempt == number + 1, "attempt {} followed attempt {number}", next.attempt);
    ensure!(
        next.epoch > before.epoch,
        "attempt {} has epoch {}, attempt {number} had {}",
        next.attempt,
        next.epoch,
        before.epoch
    );
    ensure!(
        end.ended_at <= next.launched_at,
        "attempt {} was launched at {}, before the end of attempt {number} was recorded at {}",
        next.attempt,
        next.launched_at,
        end.ended_at
    );
    ensure!(!next.checkpoint.is_empty(), "attempt {} began without a checkpoint", next.attempt);
    let last = end.progress.as_ref().and_then(|progress| progress.checkpoint.as_deref());
    ensure!(
        last.is_none_or(|last| last == next.checkpoint),
        "attempt {} began at checkpoint {:?}, attempt {number} had reached {last:?}",
        next.attempt,
        next.checkpoint
    );
    Ok(())
}

/// What the new agent says of the job it found, and who runs it.
pub(crate) struct Adoption<'a> {
    pub(crate) attempt: u32,
    pub(crate) epoch: u64,
    pub(crate) verdict: Verdict,
    pub(crate) after: &'a Runner,
}

/// Checks that the new agent found the same attempt in the same processes and took it over as it was.
///
/// # Errors
///
/// Says what was touched.
pub(crate) fn adopted(before: &Runner, found: &Adoption<'_>) -> Result<()> {
    let after = found.after;
    ensure!(found.attempt == before.start.attempt, "attempt {} became {}", before.start.attempt, found.attempt);
    ensure!(found.epoch == before.start.epoch, "epoch {} became {}", before.start.epoch, found.epoch);
    ensure!(after.job == before.job, "the job was {:?} and is {:?}", before.job, after.job);
    ensure!(
        after.supervisor == before.supervisor,
        "the supervisor was {:?} and is {:?}",
        before.supervisor,
        after.supervisor
    );
    ensure!(
        matches!(found.verdict, Verdict::Alive | Verdict::Waiting | Verdict::Late),
        "the new agent calls the job {}",
        found.verdict
    );
    Ok(())
}

/// Checks that the ledger has one line an attempt, and each for the reason that the demo gave it.
///
/// # Errors
///
/// Shows the line that is not as it has to be.
pub(crate) fn ledger(lines: &[LedgerLine]) -> Result<()> {
    ensure!(lines.len() == CLASSES.len(), "the ledger has {} lines, {} attempts ran", lines.len(), CLASSES.len());
    let mut epoch = 0;
    for (number, (line, class)) in (1..).zip(lines.iter().zip(CLASSES)) {
        ensure!(
            line.job.as_str() == JOB && line.attempt == number,
            "line {number} is about {} {}",
            line.job,
            line.attempt
        );
        ensure!(line.class == class, "attempt {number} is {} in the ledger, it was {class}", line.class);
        ensure!(line.epoch > epoch, "attempt {number} has epoch {}, the one before had {epoch}", line.epoch);
        epoch = line.epoch;
    }
    let first = &lines[0].outcome;
    ensure!(
        first.kind == OutcomeKind::Signaled && first.signal == Some(9),
        "attempt 1 was killed with SIGKILL, the ledger says {:?}: {}",
        first.kind,
        first.detail
    );
    ensure!(lines[2].outcome.code == Some(0), "attempt 3 ended with {:?}", lines[2].outcome.code);
    Ok(())
}

/// Checks that a sink holds the whole story once: no gap, no double, each attempt's start and end, and nothing stale.
///
/// # Errors
///
/// Names the entry that is missing, doubled or must not be.
pub(crate) fn journal(journal: &Journal) -> Result<()> {
    let mut sequences = BTreeMap::<(&str, u64), u32>::new();
    for record in &journal.records {
        *sequences.entry((&record.agent, record.sequence)).or_default() += 1;
    }
    if let Some(((_, sequence), count)) = sequences.iter().find(|(_, count)| **count > 1) {
        bail!("{} holds entry {sequence} {count} times", journal.name);
    }
    let last = sequences.keys().map(|(_, sequence)| *sequence).max().context("a sink that holds nothing")?;
    if let Some(missing) = (1..=last).find(|sequence| !sequences.keys().any(|(_, held)| held == sequence)) {
        bail!("{} lacks entry {missing} of {last}", journal.name);
    }
    for kind in ["attempt-started", "attempt-ended"] {
        let attempts: Vec<u32> = journal.of_kind(kind).filter_map(|record| record.attempt).collect();
        ensure!(attempts == [1, 2, 3], "{} holds `{kind}` for attempts {attempts:?}, not for 1, 2 and 3", journal.name);
    }
    let is_stale = |record: &&Record| record.verdict.as_deref() == Some("stale");
    if let Some(stale) = journal.of_kind("transition").find(is_stale) {
        bail!("{} holds a verdict `stale` (entry {}); the job was never silent", journal.name, stale.sequence);
    }
    Ok(())
}

/// What the demo's config names: each has to have done its part.
const PLUGINS: [(&str, &str); 4] =
    [("history", "sink"), ("entries", "sink"), ("liveness", "rule"), ("script", "strategy")];

/// Checks that every plugin runs and none has failed, so that what was decided and recorded came from them.
///
/// # Errors
///
/// Names the plugin that is missing or had a fault.
pub(crate) fn plugins(found: &[PluginStatus]) -> Result<String> {
    for (name, kind) in PLUGINS {
        let plugin = found.iter().find(|plugin| plugin.name == name && plugin.kind == kind);
        let plugin = plugin.with_context(|| format!("the agent has no {kind} {name}"))?;
        ensure!(
            plugin.state == "active" && plugin.faults == 0 && plugin.set_aside == 0,
            "{kind} {name} is {}, had {} faults and set {} entries aside: {}",
            plugin.state,
            plugin.faults,
            plugin.set_aside,
            plugin.detail.as_deref().unwrap_or("no detail")
        );
    }
    Ok(PLUGINS.map(|(name, kind)| format!("{kind} {name}")).join(", ") + ": all active, no fault")
}

/// Checks that both sinks hold the same entries.
///
/// # Errors
///
/// Names an entry that only one of them holds.
pub(crate) fn sinks_agree(one: &Journal, other: &Journal) -> Result<()> {
    for (holds, lacks) in [(one, other), (other, one)] {
        let same = |a: &Record, b: &Record| a.sequence == b.sequence && a.agent == b.agent && a.kind == b.kind;
        if let Some(record) = holds.records.iter().find(|a| !lacks.records.iter().any(|b| same(a, b))) {
            bail!("{} holds entry {} ({}), {} does not", holds.name, record.sequence, record.kind, lacks.name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use latido_protocol::{Outcome, Progress, WallTime};

    use super::*;
    use crate::demo::processes::Process;

    const SECOND: u64 = 1_000;

    fn start(attempt: u32, launched_at: u64, checkpoint: &str) -> Start {
        let identity = serde_json::json!({
            "machine_id": "m", "boot_id": "b", "pid_namespace": 1, "pid": 100 + attempt, "start_time": 1,
        });
        let start = serde_json::json!({
            "version": 1, "job": JOB, "attempt": attempt, "epoch": attempt, "host": "h",
            "launched_at": WallTime::from_millis(launched_at * SECOND), "starter": identity, "because": "a test",
            "command": [JOB], "directory": "/", "checkpoint": checkpoint, "sockets": "/s", "supervisor": identity,
            "process": identity, "started_at": null,
        });
        serde_json::from_value(start).unwrap()
    }

    fn end(attempt: u32, ended_at: u64, outcome: Outcome, checkpoint: &str) -> End {
        End {
            version: 1,
            job: JOB.parse().unwrap(),
            attempt,
            epoch: attempt.into(),
            started_at: None,
            ended_at: WallTime::from_millis(ended_at * SECOND),
            outcome,
            rusage: None,
            progress: Some(Progress { checkpoint: Some(checkpoint.to_owned()), ..Progress::default() }),
            recorded_by: "a test".to_owned(),
            proof: "a test".to_owned(),
            stopped_for: None,
            spent: Default::default(),
            ran_s: None,
        }
    }

    fn refusal(result: Result<()>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn an_attempt_is_recorded_before_the_next_is_launched() {
        let lost = || Outcome::signaled(9, "SIGKILL");
        let good = |end: End, next: Start| resumed(&start(1, 0, ""), &end, &next);
        good(end(1, 5, lost(), "c"), start(2, 5, "c")).unwrap();
        assert!(refusal(good(end(1, 6, lost(), "c"), start(2, 5, "c"))).contains("before the end of attempt 1"));
        assert!(refusal(good(end(1, 5, Outcome::exited(1), "c"), start(2, 5, "c"))).contains("ended as failed"));
        assert!(refusal(good(end(1, 5, lost(), "c"), start(3, 5, "c"))).contains("attempt 3 followed"));
        assert!(refusal(good(end(1, 5, lost(), "c"), start(2, 5, ""))).contains("without a checkpoint"));
        assert!(refusal(good(end(1, 5, lost(), "d"), start(2, 5, "c"))).contains("had reached"));
    }

    fn runner(attempt: u32, pid: u32) -> Runner {
        let process = |pid| Process { pid, start_time: 1 };
        Runner { supervisor: process(pid), job: process(pid + 1), start: start(attempt, 0, "c") }
    }

    #[test]
    fn an_adopted_attempt_is_the_same_in_everything() {
        let before = runner(3, 50);
        let found = |after: &Runner, attempt, verdict| {
            adopted(&before, &Adoption { attempt, epoch: attempt.into(), verdict, after })
        };
        found(&runner(3, 50), 3, Verdict::Alive).unwrap();
        assert!(refusal(found(&runner(3, 60), 3, Verdict::Alive)).starts_with("the job was"));
        assert!(refusal(found(&runner(4, 50), 4, Verdict::Alive)).contains("attempt 3 became 4"));
        assert!(refusal(found(&runner(3, 50), 3, Verdict::Stale)).contains("calls the job stale"));
    }

    fn good_ledger() -> Vec<LedgerLine> {
        let outcomes = [Outcome::signaled(9, "SIGKILL"), Outcome::lost("supervisor gone"), Outcome::exited(0)];
        let line = |(attempt, outcome): (u32, Outcome)| LedgerLine {
            job: JOB.parse().unwrap(),
            attempt,
            epoch: attempt.into(),
            started_at: None,
            ended_at: WallTime::from_millis(0),
            class: outcome.class,
            outcome,
            because: "a test".to_owned(),
            checkpoint: None,
        };
        (1..).zip(outcomes).map(line).collect()
    }

    #[test]
    fn the_ledger_has_each_attempt_once_with_its_reason() {
        let doctored = |doctor: fn(&mut Vec<LedgerLine>)| {
            let mut lines = good_ledger();
            doctor(&mut lines);
            refusal(ledger(&lines))
        };
        ledger(&good_ledger()).unwrap();
        assert!(doctored(|lines| drop(lines.pop())).contains("2 lines, 3 attempts"));
        assert!(doctored(|lines| lines[1].attempt = 1).contains("line 2 is about"));
        assert!(doctored(|lines| lines[1].class = Class::Failed).contains("attempt 2 is failed"));
        assert!(doctored(|lines| lines[2].epoch = 2).contains("epoch 2"));
        assert!(doctored(|lines| lines[0].outcome.signal = Some(15)).contains("SIGKILL"));
        assert!(doctored(|lines| lines[2].outcome.code = Some(3)).contains("Some(3)"));
    }

    fn record(sequence: u64, kind: &str, attempt: u32, verdict: Option<&str>) -> Record {
        Record {
            agent: "a".to_owned(),
            sequence,
            kind: kind.to_owned(),
            attempt: Some(attempt),
            verdict: verdict.map(str::to_owned),
        }
    }

    fn good_journal() -> Journal {
        let mut records = vec![record(1, "transition", 1, Some("alive"))];
        for attempt in 1..=3 {
            records.push(record(u64::from(attempt) * 2, "attempt-started", attempt, None));
            records.push(record(u64::from(attempt) * 2 + 1, "attempt-ended", attempt, None));
        }
        Journal { name: "a sink", records }
    }

    #[test]
    fn a_sink_holds_the_whole_story_once_and_nothing_stale() {
        let doctored = |doctor: fn(&mut Vec<Record>)| {
            let mut doctored = good_journal();
            doctor(&mut doctored.records);
            refusal(journal(&doctored))
        };
        journal(&good_journal()).unwrap();
        assert!(doctored(|records| drop(records.remove(0))).contains("lacks entry 1 of 7"));
        assert!(doctored(|records| records.push(records[0].clone())).contains("holds entry 1 2 times"));
        assert!(doctored(|records| drop(records.pop())).contains("attempts [1, 2], not"));
        assert!(doctored(|records| records[0].verdict = Some("stale".to_owned())).contains("`stale` (entry 1)"));
        assert!(doctored(Vec::clear).contains("holds nothing"));
    }

    #[test]
    fn a_plugin_that_is_missing_or_had_a_fault_is_found() {
        let plugin = |(name, kind): (&str, &str)| PluginStatus {
            name: name.to_owned(),
            kind: kind.to_owned(),
            state: "active".to_owned(),
            ..PluginStatus::default()
        };
        let mut found = PLUGINS.map(plugin).to_vec();
        assert!(plugins(&found).unwrap().starts_with("sink history, "));
        found[3].faults = 1;
        assert!(plugins(&found).unwrap_err().to_string().contains("strategy script is active, had 1 faults"));
        found.pop();
        assert_eq!(plugins(&found).unwrap_err().to_string(), "the agent has no strategy script");
    }

    #[test]
    fn sinks_that_differ_are_found() {
        let other = Journal { name: "another", ..good_journal() };
        sinks_agree(&good_journal(), &other).unwrap();
        let mut less = other;
        less.records.remove(2);
        let expected = "a sink holds entry 3 (attempt-ended), another does not";
        assert_eq!(refusal(sinks_agree(&good_journal(), &less)), expected);
        assert_eq!(refusal(sinks_agree(&less, &good_journal())), expected);
    }
}
