//! Stories of one watched process.

use core::time::Duration;

use latido_policy::{
    Absence, Action, Event, Exit, Fingerprint, Naming, Phase, ProcessAction, ProcessEvent, ProcessFound, ProcessId,
    ProcessReason, Reason, Recorded, Sighting, Verdict,
};

use crate::harness::{Bench, seconds};
use crate::watch::{DAY, HOUR, MINUTE, PROCESS, process, turned};

fn ended(bench: &mut Bench, process: ProcessId, exit: Option<Exit>) -> Vec<Action> {
    bench.tell(Event::Process(ProcessEvent::Ended { subject: PROCESS, process, exit }))
}

fn fresh() -> Bench {
    Bench::process(ProcessFound::default())
}

/// One that was seen before the agent's start, when it was alive.
fn remembered(process: ProcessId) -> Bench {
    let recorded = Some(Recorded { verdict: Verdict::Alive, phase: Phase::Running });
    Bench::process(ProcessFound { seen: Some(process), pause: None, recorded })
}

fn alive() -> Bench {
    let mut bench = fresh();
    bench.see(process(7));
    bench
}

fn by_file(process: ProcessId, age: Duration, written_ago: Duration) -> Sighting {
    Sighting { process, age, naming: Naming::File { written_ago } }
}

fn replaced(previous: ProcessId, current: ProcessId) -> Action {
    Action::Process(ProcessAction::RecordReplaced { subject: PROCESS, previous, current })
}

#[test]
fn a_process_that_is_seen_is_alive_for_as_long_as_it_is() {
    let mut bench = fresh();
    let because = Reason::Process(ProcessReason::Lives { pid: 7 });
    assert_eq!(bench.see(process(7)), [turned(PROCESS, Verdict::Waiting, Verdict::Alive, because)]);
    assert_eq!(bench.pass(DAY), []);
    assert_eq!(bench.see(process(7)), []);
}

#[test]
fn a_process_that_never_starts_is_missing_after_its_time() {
    let mut bench = fresh();
    bench.pass(seconds(10));
    bench.miss(Absence::Unnamed);
    assert_eq!(bench.process_verdict(), Verdict::Waiting);
    let because = Reason::Process(ProcessReason::NeverSeen { waited: MINUTE, start_within: MINUTE });
    assert_eq!(bench.pass(seconds(50)), [turned(PROCESS, Verdict::Waiting, Verdict::Missing, because)]);
    bench.see(process(7));
    assert_eq!(bench.process_verdict(), Verdict::Alive);
}

#[test]
fn a_process_that_is_gone_is_dead_and_another_one_takes_its_place() {
    let mut bench = alive();
    bench.miss(Absence::NoProcess);
    assert_eq!(bench.process_verdict(), Verdict::Dead);
    let because = Reason::Process(ProcessReason::Lives { pid: 8 });
    assert_eq!(
        bench.see(process(8)),
        [replaced(process(7), process(8)), turned(PROCESS, Verdict::Dead, Verdict::Alive, because)]
    );
}

#[test]
fn how_it_ended_is_told_where_it_is_known() {
    let mut bench = alive();
    bench.miss(Absence::NoProcess);
    ended(&mut bench, process(7), Some(Exit::Status(3)));
    assert_eq!(bench.process_reason(), ProcessReason::Ended { pid: 7, exit: Some(Exit::Status(3)) });
    bench.miss(Absence::NoProcess);
    assert_eq!(bench.process_reason(), ProcessReason::Ended { pid: 7, exit: Some(Exit::Status(3)) });
}

#[test]
fn the_ending_of_a_process_that_was_replaced_changes_nothing() {
    let mut bench = alive();
    assert_eq!(bench.see(process(8)), [replaced(process(7), process(8))]);
    assert_eq!(ended(&mut bench, process(7), None), []);
    assert_eq!(bench.process_verdict(), Verdict::Alive);
    assert_eq!(bench.policy.refused_count(), 1);
}

#[test]
fn a_process_proven_gone_does_not_come_back() {
    let mut bench = alive();
    ended(&mut bench, process(7), None);
    assert_eq!(bench.see(process(7)), []);
    assert_eq!(bench.process_verdict(), Verdict::Dead);
    assert_eq!(bench.policy.unexpected_count(), 1);
}

#[test]
fn a_pause_covers_an_ending_until_it_is_over() {
    let mut bench = alive();
    bench.tell(Event::Process(ProcessEvent::PauseWanted { subject: PROCESS, length: Some(HOUR) }));
    bench.miss(Absence::NoProcess);
    assert_eq!(bench.process_verdict(), Verdict::Alive);
    bench.pass(HOUR);
    assert_eq!(bench.process_verdict(), Verdict::Dead);
}

#[test]
fn the_time_of_a_pause_does_not_count_for_a_start() {
    let mut bench = fresh();
    bench.miss(Absence::Unnamed);
    bench.tell(Event::Process(ProcessEvent::PauseWanted { subject: PROCESS, length: None }));
    bench.pass(HOUR);
    bench.tell(Event::Process(ProcessEvent::UnpauseWanted { subject: PROCESS }));
    assert_eq!(bench.pass(seconds(59)), []);
    bench.pass(seconds(1));
    assert_eq!(bench.process_verdict(), Verdict::Missing);
}

#[test]
fn a_restart_shows_what_was_recorded_until_somebody_has_looked() {
    let mut bench = remembered(process(7));
    assert_eq!(bench.pass(DAY), []);
    assert_eq!((bench.process_verdict(), bench.process_reason()), (Verdict::Alive, ProcessReason::NotLooked));
    assert_eq!(bench.see(process(7)), []);
    assert_eq!(bench.process_reason(), ProcessReason::Lives { pid: 7 });
}

// inverse-inc/packetfence#3291
#[test]
fn c140_a_file_that_names_a_process_younger_than_itself_names_nobody() {
    let mut bench = fresh();
    bench.sight(by_file(process(7), MINUTE, HOUR));
    bench.pass(MINUTE);
    assert_eq!(bench.process_verdict(), Verdict::Missing);
    bench.sight(by_file(process(8), HOUR, HOUR));
    assert_eq!(bench.process_verdict(), Verdict::Alive);
}

#[test]
fn a_file_written_a_moment_before_its_process_counts() {
    let mut bench = fresh();
    bench.sight(by_file(process(7), seconds(58), MINUTE));
    assert_eq!(bench.process_verdict(), Verdict::Alive);
    let mut bench = fresh();
    bench.sight(by_file(process(7), seconds(57), MINUTE));
    assert_eq!(bench.process_verdict(), Verdict::Waiting);
}

#[test]
fn a_process_that_was_seen_stays_whatever_the_clock_makes_of_its_file() {
    let mut bench = alive();
    // The wall clock stepped forward, so the file looks older than its process.
    assert_eq!(bench.sight(by_file(process(7), MINUTE, DAY)), []);
    assert_eq!(bench.process_verdict(), Verdict::Alive);
}

// eminence/procfs PR #3
#[test]
fn c146_the_same_number_with_another_start_time_is_another_process() {
    let mut bench = remembered(process(7));
    let other = ProcessId { start_time: 999, ..process(7) };
    bench.sight(Sighting { process: other, age: DAY, naming: Naming::Pid });
    assert_eq!(bench.process_verdict(), Verdict::Dead);
    assert_eq!(bench.process_reason(), ProcessReason::Gone { pid: 7, absence: Absence::Reused });
}

// fujibee/agmsg#954
#[test]
fn c143_a_look_that_failed_is_unknown_and_no_death() {
    let mut bench = alive();
    let because = Reason::Process(ProcessReason::LookFailed);
    assert_eq!(bench.look_in_vain(), [turned(PROCESS, Verdict::Alive, Verdict::Unknown, because)]);
    assert_eq!(bench.pass(DAY), []);
    bench.see(process(7));
    assert_eq!(bench.process_verdict(), Verdict::Alive);
}

#[test]
fn a_look_that_failed_raises_nobody_from_the_dead() {
    let mut bench = alive();
    ended(&mut bench, process(7), None);
    assert_eq!(bench.look_in_vain(), []);
    assert_eq!(bench.process_verdict(), Verdict::Dead);
}

// tenzir/tenzir PR #2526
#[test]
fn c141_the_number_one_of_another_start_is_not_the_process_that_was_seen() {
    let one = |start_time| ProcessId { pid: 1, start_time, ..process(1) };
    let mut bench = remembered(one(10));
    bench.sight(Sighting { process: one(20), age: HOUR, naming: Naming::Pid });
    assert_eq!(bench.process_verdict(), Verdict::Dead);
}

// seed 001
#[test]
fn c150_without_beats_only_the_identity_counts_and_what_cannot_be_looked_at_is_unknown() {
    let mut dead = remembered(process(7));
    dead.sight(Sighting { process: ProcessId { start_time: 1, ..process(7) }, age: DAY, naming: Naming::Pid });
    let mut foreign = remembered(process(7));
    foreign.look_in_vain();
    assert_eq!((dead.process_verdict(), foreign.process_verdict()), (Verdict::Dead, Verdict::Unknown));
}

#[test]
fn another_boot_is_another_process() {
    let mut bench = remembered(process(7));
    let rebooted = ProcessId { boot: Fingerprint(2), ..process(7) };
    bench.sight(Sighting { process: rebooted, age: MINUTE, naming: Naming::Pid });
    assert_eq!(bench.process_verdict(), Verdict::Dead);
}

#[test]
fn who_was_seen_last_is_known_after_it_is_gone_until_another_is_seen() {
    let mut bench = fresh();
    assert_eq!(bench.policy.process_seen(PROCESS), None);
    bench.see(process(7));
    assert_eq!(bench.policy.process_seen(PROCESS), Some(process(7)));
    ended(&mut bench, process(7), None);
    assert_eq!(bench.policy.process_seen(PROCESS), Some(process(7)));
    bench.see(process(8));
    assert_eq!(bench.policy.process_seen(PROCESS), Some(process(8)));
}
