//! Stories of what is only watched: the calendar beside the time line, restarts, and what the journal says.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::time::Duration;

use latido_driver::{
    CheckDefinition, Driver, Fact, Kept, Look, Output, ProcessDefinition, Reading, Schedule, Signaled, Timing,
    WatchFact,
};
use latido_policy::{Absence, Naming, Signal};
use latido_protocol::files::Identity;
use latido_protocol::status::{Phase, SubjectKind, SubjectStatus, Verdict};
use latido_protocol::{SubjectName, WallTime};
use latido_store::{MemoryStore, Store};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn name() -> SubjectName {
    "backup".parse().unwrap()
}

fn wall(text: &str) -> WallTime {
    let time: jiff::Timestamp = text.parse().unwrap();
    WallTime::from_millis(u64::try_from(time.as_millisecond()).unwrap())
}

fn calendar(pattern: &str, zone: &str) -> Timing {
    Timing::Calendar(Schedule::parse(pattern, jiff::tz::TimeZone::get(zone).unwrap()).unwrap())
}

fn check(timing: Timing, grace: Duration) -> Fact {
    let definition = CheckDefinition { name: name(), timing, grace, run_for: None };
    Fact::Watched(Box::new(WatchFact::CheckDefined(Box::new(definition))))
}

fn signal(signal: Signal, run_id: Option<&str>) -> Fact {
    let run_id = run_id.map(str::to_owned);
    Fact::Watched(Box::new(WatchFact::Signaled(Signaled { check: name(), signal, run_id, state: None, kept: None })))
}

fn process(definition: &str) -> Fact {
    let definition = ProcessDefinition { name: name(), definition: definition.to_owned(), start_within: MINUTE };
    Fact::Watched(Box::new(WatchFact::ProcessDefined(definition)))
}

fn identity(pid: u32) -> Identity {
    Identity { machine_id: "m".into(), boot_id: "b".into(), pid_namespace: 1, pid, start_time: u64::from(pid) }
}

fn seen(pid: u32) -> Fact {
    let look = Look::Seen { identity: identity(pid), age: DAY, naming: Naming::Name };
    Fact::Watched(Box::new(WatchFact::Looked { process: name(), look }))
}

fn absent() -> Fact {
    Fact::Watched(Box::new(WatchFact::Looked { process: name(), look: Look::Absent(Absence::NoProcess) }))
}

/// The driver with clocks that the test moves.
struct World {
    driver: Driver<MemoryStore>,
    monotonic: Duration,
    boottime: Duration,
    wall: WallTime,
}

impl World {
    fn new(at: &str) -> Self {
        let driver = Driver::new(MemoryStore::new("journal"), 300 * MINUTE).unwrap();
        Self { driver, monotonic: HOUR, boottime: HOUR, wall: wall(at) }
    }

    fn step(&mut self, facts: Vec<Fact>) -> Output {
        let reading = Reading { monotonic: self.monotonic, boottime: self.boottime, wall: self.wall };
        self.driver.step(facts, reading)
    }

    fn advance_wall(&mut self, length: Duration) {
        self.wall = WallTime::from_millis(self.wall.as_millis() + u64::try_from(length.as_millis()).unwrap());
    }

    /// Lets time pass with a driver that is called whenever it asks to be, and gathers the verdicts that came.
    fn pass(&mut self, length: Duration) -> Vec<Verdict> {
        let end = self.monotonic + length;
        let mut verdicts = vec![self.verdict()];
        let mut output = self.step(vec![]);
        while self.monotonic < end {
            let wait = output.wake_in.max(Duration::from_millis(1)).min(end - self.monotonic);
            self.monotonic += wait;
            self.boottime += wait;
            self.advance_wall(wait);
            output = self.step(vec![]);
            if verdicts.last() != Some(&self.verdict()) {
                verdicts.push(self.verdict());
            }
        }
        verdicts.split_off(1)
    }

    /// The machine sleeps.
    fn sleep(&mut self, length: Duration) {
        self.boottime += length;
        self.advance_wall(length);
        self.step(vec![]);
    }

    /// The agent is killed, is away for so long and comes back to the same store and this config.
    fn restart(self, away: Duration, config: Vec<Fact>) -> Self {
        let driver = Driver::new(self.driver.into_store(), 300 * MINUTE).unwrap();
        let mut world = Self { driver, ..self };
        world.monotonic += away;
        world.boottime += away;
        world.wall = WallTime::from_millis(world.wall.as_millis() + u64::try_from(away.as_millis()).unwrap());
        world.step(config);
        world.driver.forget_absent(&BTreeSet::new(), world.wall);
        world
    }

    fn status(&self) -> SubjectStatus {
        self.driver.subjects(&[name()]).pop().unwrap()
    }

    fn verdict(&self) -> Verdict {
        self.status().verdict
    }

    fn entries(&mut self) -> Vec<String> {
        self.step(vec![]);
        let entries = self.driver.store().entries_after(0, &[], 1000).unwrap();
        entries.into_iter().map(|entry| entry.body).collect()
    }
}

#[test]
fn a_check_on_the_calendar_is_late_at_its_moment_stale_after_its_grace_and_comes_back() {
    let mut world = World::new("2026-01-10T02:00:00Z");
    world.step(vec![check(calendar("0 3 * * *", "UTC"), 30 * MINUTE)]);
    world.step(vec![signal(Signal::Succeeded, None)]);
    assert_eq!(world.pass(59 * MINUTE), []);
    assert_eq!(world.pass(2 * MINUTE), [Verdict::Late]);
    assert_eq!(world.pass(30 * MINUTE), [Verdict::Stale]);
    world.step(vec![signal(Signal::Succeeded, None)]);
    assert_eq!(world.verdict(), Verdict::Alive);
    assert_eq!(world.pass(23 * HOUR), []);
    assert_eq!(world.pass(HOUR), [Verdict::Late, Verdict::Stale]);
}

// YelpArchive/puppet-cron PR #12
#[test]
fn c112_after_a_day_switched_off_nobody_is_stale_who_comes_back_within_his_interval() {
    let config = || vec![check(Timing::Every(HOUR), 5 * MINUTE)];
    let mut world = World::new("2026-01-10T02:00:00Z");
    world.step(config());
    world.step(vec![signal(Signal::Succeeded, None)]);
    world.pass(10 * MINUTE);
    let mut world = world.restart(DAY, config());
    assert_eq!((world.verdict(), world.pass(45 * MINUTE)), (Verdict::Alive, vec![]));
    assert_eq!(world.pass(15 * MINUTE), [Verdict::Late, Verdict::Stale], "and no threshold was doubled");
}

#[test]
fn the_status_of_a_check_says_what_it_is_and_what_comes_next() {
    let mut world = World::new("2026-01-10T02:00:00Z");
    world.step(vec![check(calendar("0 3 * * *", "UTC"), 30 * MINUTE)]);
    let status = world.status();
    assert_eq!((status.kind, status.verdict, status.phase), (SubjectKind::Check, Verdict::Waiting, Phase::Running));
    assert_eq!(status.policy, "0 3 * * * UTC");
    assert_eq!(status.reason, "no signal yet, and the first is expected in 3600s");
    assert_eq!(status.next.unwrap().in_s.unwrap().0, HOUR);
    assert_eq!(status.last_beat, None);
    world.step(vec![signal(Signal::Succeeded, None)]);
    assert_eq!(world.status().last_beat, Some(world.wall));
}

// healthchecks/healthchecks#912
#[test]
fn c016_a_rhythm_alerts_in_neither_clock_change_and_misses_nothing_in_the_repeated_hour() {
    for start in ["2026-03-28T23:46:00Z", "2026-10-24T23:46:00Z"] {
        let mut world = World::new(start);
        world.step(vec![check(calendar("*/15 * * * *", "Europe/Berlin"), 5 * MINUTE)]);
        for round in 0..20 {
            world.step(vec![signal(Signal::Succeeded, None)]);
            let verdicts = world.pass(15 * MINUTE);
            assert!(!verdicts.contains(&Verdict::Stale), "{start}, round {round}: {verdicts:?}");
        }
    }
    // 02:30 shows twice, and the second one is missed.
    let mut world = World::new("2026-10-25T01:15:00Z");
    world.step(vec![check(calendar("*/15 * * * *", "Europe/Berlin"), 5 * MINUTE)]);
    world.step(vec![signal(Signal::Succeeded, None)]);
    assert_eq!(world.pass(21 * MINUTE), [Verdict::Late, Verdict::Stale]);
}

// healthchecks/healthchecks#330
#[test]
fn c020_a_window_of_the_day_is_silent_at_night_and_heard_by_day() {
    let mut world = World::new("2026-06-01T20:30:00Z");
    world.step(vec![check(calendar("0 6-23 * * *", "UTC"), 10 * MINUTE)]);
    world.step(vec![signal(Signal::Succeeded, None)]);
    for _ in 0..2 {
        for _ in 0..18 {
            while !world.wall.as_millis().is_multiple_of(3_600_000) {
                world.pass(MINUTE);
            }
            world.step(vec![signal(Signal::Succeeded, None)]);
            assert!(!world.pass(30 * MINUTE).contains(&Verdict::Stale));
            if world.wall.as_millis() / 3_600_000 % 24 == 23 {
                assert_eq!(world.pass(6 * HOUR + 29 * MINUTE), [], "the whole night");
            }
        }
    }
    assert!(world.pass(2 * HOUR).contains(&Verdict::Stale), "missed by day");
}

#[test]
fn a_moment_slept_over_has_its_whole_grace_when_the_machine_wakes() {
    let mut world = World::new("2026-01-10T02:00:00Z");
    world.step(vec![check(calendar("0 3 * * *", "UTC"), 30 * MINUTE)]);
    world.step(vec![signal(Signal::Succeeded, None)]);
    world.sleep(9 * HOUR);
    assert_eq!(world.verdict(), Verdict::Late);
    assert!(world.status().reason.contains("when the agent could hear again"), "{}", world.status().reason);
    assert_eq!(world.pass(29 * MINUTE), []);
    assert_eq!(world.pass(MINUTE), [Verdict::Stale]);
}

#[test]
fn a_sleep_between_two_moments_blames_nobody() {
    let mut world = World::new("2026-01-10T03:10:00Z");
    world.step(vec![check(calendar("0 3 * * *", "UTC"), 30 * MINUTE)]);
    world.step(vec![signal(Signal::Succeeded, None)]);
    world.sleep(20 * HOUR);
    assert_eq!(world.pass(3 * HOUR + 49 * MINUTE), []);
    assert_eq!(world.pass(2 * MINUTE), [Verdict::Late]);
}

#[test]
fn a_check_every_so_often_counts_no_sleep() {
    let mut world = World::new("2026-01-10T03:10:00Z");
    world.step(vec![check(Timing::Every(HOUR), 10 * MINUTE)]);
    world.step(vec![signal(Signal::Succeeded, None)]);
    world.pass(30 * MINUTE);
    world.sleep(20 * HOUR);
    assert_eq!(world.pass(29 * MINUTE), []);
    assert_eq!(world.pass(11 * MINUTE), [Verdict::Late, Verdict::Stale]);
}

#[test]
fn a_calendar_set_by_an_hour_expects_nothing_twice_and_leaves_nothing_out() {
    let mut world = World::new("2026-01-10T02:55:00Z");
    world.step(vec![check(calendar("0 3 * * *", "UTC"), 30 * MINUTE)]);
    world.pass(6 * MINUTE);
    world.step(vec![signal(Signal::Succeeded, None)]);
    world.wall = wall("2026-01-10T02:01:00Z");
    assert_eq!(world.pass(3 * HOUR), [], "03:00 came once already");
    world.wall = wall("2026-01-11T02:59:00Z");
    world.step(vec![]);
    world.wall = wall("2026-01-11T03:59:00Z");
    world.step(vec![]);
    assert_eq!(world.verdict(), Verdict::Late, "03:00 was jumped over");
    assert_eq!(world.pass(30 * MINUTE), [Verdict::Stale]);
}

#[test]
fn a_calendar_that_was_years_off_expects_what_comes_on_the_right_one() {
    let mut world = World::new("2031-01-10T02:00:00Z");
    world.step(vec![check(calendar("0 3 * * *", "UTC"), 30 * MINUTE)]);
    world.step(vec![signal(Signal::Succeeded, None)]);
    world.wall = wall("2026-01-10T02:30:00Z");
    assert_eq!(world.pass(29 * MINUTE), []);
    assert_eq!(world.pass(2 * MINUTE), [Verdict::Late]);
    let mut world = World::new("1970-01-10T02:00:00Z");
    world.step(vec![check(calendar("0 3 * * *", "UTC"), 30 * MINUTE)]);
    world.step(vec![signal(Signal::Succeeded, None)]);
    world.wall = wall("2026-01-10T03:30:00Z");
    assert_eq!(world.pass(23 * HOUR), [], "no moment of 1970 is missed");
}

#[test]
fn a_calendar_that_is_slewed_keeps_its_moments() {
    let mut world = World::new("2026-01-10T02:00:00Z");
    world.step(vec![check(calendar("0 * * * *", "UTC"), 10 * MINUTE)]);
    for minute in 0..600 {
        if minute % 60 == 0 {
            world.step(vec![signal(Signal::Succeeded, None)]);
        }
        assert!(!world.pass(MINUTE).contains(&Verdict::Stale), "minute {minute}");
        world.advance_wall(Duration::from_millis(30));
    }
}

#[test]
fn a_check_goes_on_where_it_was_over_a_restart() {
    let config = || vec![check(Timing::Every(HOUR), 10 * MINUTE)];
    let mut world = World::new("2026-01-10T03:10:00Z");
    world.step(config());
    world.step(vec![signal(Signal::Succeeded, Some("a")), signal(Signal::Started, Some("b"))]);
    world.pass(40 * MINUTE);
    let mut world = world.restart(5 * HOUR, config());
    assert_eq!(world.verdict(), Verdict::Alive);
    world.step(vec![signal(Signal::Succeeded, Some("a"))]);
    assert_eq!(world.pass(18 * MINUTE), [], "the time in which no agent ran does not count");
    assert_eq!(world.pass(13 * MINUTE), [Verdict::Late, Verdict::Stale], "nor does a signal told twice");
    let mut world = world.restart(HOUR, config());
    let told = |entries: Vec<String>| entries.iter().filter(|entry| entry.contains(r#""current":"stale""#)).count();
    assert_eq!((world.verdict(), told(world.entries())), (Verdict::Stale, 1));
    world.step(vec![signal(Signal::Succeeded, Some("b"))]);
    assert_eq!(world.verdict(), Verdict::Alive);
}

#[test]
fn a_moment_that_passed_while_no_agent_ran_has_its_whole_grace_afterwards() {
    let config = || vec![check(calendar("0 3 * * *", "UTC"), 30 * MINUTE)];
    let mut world = World::new("2026-01-10T02:00:00Z");
    world.step(config());
    world.step(vec![signal(Signal::Succeeded, None)]);
    world.pass(MINUTE);
    let mut world = world.restart(6 * HOUR, config());
    assert_eq!(world.verdict(), Verdict::Late);
    assert_eq!(world.pass(29 * MINUTE), []);
    assert_eq!(world.pass(MINUTE), [Verdict::Stale]);
}

#[test]
fn a_failing_check_stays_failing_over_a_restart_and_a_pause_stays_a_pause() {
    let config = || vec![check(Timing::Every(HOUR), 10 * MINUTE)];
    let mut world = World::new("2026-01-10T03:10:00Z");
    world.step(config());
    world.step(vec![signal(Signal::Exited(4), None)]);
    let until = Some(wall("2026-01-10T10:00:00Z"));
    world.step(vec![Fact::Watched(Box::new(WatchFact::PauseWanted { subject: name(), until }))]);
    let mut world = world.restart(HOUR, config());
    assert_eq!((world.verdict(), world.status().phase), (Verdict::Failing, Phase::Paused));
    assert!(world.status().reason.contains("exit status 4"), "{}", world.status().reason);
    world.pass(6 * HOUR);
    assert_eq!(world.status().phase, Phase::Running, "its end stands on the calendar");
}

#[test]
fn another_definition_of_the_same_name_inherits_nothing() {
    let mut world = World::new("2026-01-10T03:10:00Z");
    world.step(vec![check(Timing::Every(HOUR), 10 * MINUTE)]);
    world.step(vec![signal(Signal::Failed, None)]);
    let world = world.restart(MINUTE, vec![check(Timing::Every(DAY), 10 * MINUTE)]);
    assert_eq!((world.verdict(), world.status().last_beat), (Verdict::Waiting, None));
    let world = world.restart(MINUTE, vec![process("name x")]);
    assert_eq!((world.verdict(), world.status().kind), (Verdict::Waiting, SubjectKind::Process));
}

#[test]
fn a_check_that_the_config_no_longer_defines_leaves_no_row() {
    let mut world = World::new("2026-01-10T03:10:00Z");
    world.step(vec![check(Timing::Every(HOUR), 10 * MINUTE)]);
    let mut world = world.restart(MINUTE, vec![]);
    let entries = world.entries();
    assert!(world.driver.subjects(&[]).is_empty());
    assert_eq!(world.driver.store().subjects().unwrap(), []);
    assert!(entries.iter().any(|entry| entry.contains("check backup was removed")), "{entries:?}");
}

#[test]
fn a_run_that_never_ended_is_told_in_the_journal() {
    let mut world = World::new("2026-01-10T03:10:00Z");
    world.step(vec![check(Timing::Every(HOUR), 10 * MINUTE)]);
    world.step(vec![signal(Signal::Started, None)]);
    world.pass(HOUR);
    world.step(vec![signal(Signal::Started, None)]);
    let entries = world.entries();
    assert!(entries.iter().any(|entry| entry.contains("a run of 3600 s never told its end")), "{entries:?}");
    assert_eq!(world.verdict(), Verdict::Stale);
}

#[test]
fn a_watched_process_ends_and_is_replaced_and_the_journal_tells_of_both() {
    let mut world = World::new("2026-01-10T03:10:00Z");
    world.step(vec![process("name x")]);
    world.step(vec![seen(7)]);
    assert_eq!((world.verdict(), world.status().pid), (Verdict::Alive, Some(7)));
    world.step(vec![absent()]);
    assert_eq!((world.verdict(), world.status().pid), (Verdict::Dead, None));
    world.step(vec![seen(8)]);
    assert_eq!((world.verdict(), world.status().pid), (Verdict::Alive, Some(8)));
    let entries = world.entries();
    assert!(entries.iter().any(|entry| entry.contains("pid 8 took the place of pid 7")), "{entries:?}");
}

#[test]
fn a_watched_process_is_the_same_over_a_restart_by_its_identity() {
    let mut world = World::new("2026-01-10T03:10:00Z");
    world.step(vec![process("name x")]);
    world.step(vec![seen(7)]);
    let mut world = world.restart(HOUR, vec![process("name x")]);
    assert_eq!(world.verdict(), Verdict::Alive, "as it was recorded, until somebody looks");
    let reused = Look::Seen { identity: Identity { start_time: 99, ..identity(7) }, age: MINUTE, naming: Naming::Pid };
    world.step(vec![Fact::Watched(Box::new(WatchFact::Looked { process: name(), look: reused }))]);
    assert_eq!(world.verdict(), Verdict::Dead);
    assert!(world.status().reason.contains("another start time"), "{}", world.status().reason);
}

#[test]
fn a_kept_signal_has_its_own_time_and_is_known_over_a_restart() {
    let mut world = World::new("2026-11-29T03:00:00Z");
    let kept = Kept { id: "7".to_owned(), at: wall("2026-11-29T01:30:00Z") };
    let at = Some(kept.at);
    let signaled = Signaled { check: name(), signal: Signal::Failed, run_id: None, state: None, kept: Some(kept) };
    world.step(vec![check(Timing::Every(DAY), HOUR), Fact::Watched(Box::new(WatchFact::Signaled(signaled)))]);
    assert_eq!((world.status().last_beat, world.driver.is_written()), (at, true));
    let world = world.restart(HOUR, vec![check(Timing::Every(DAY), HOUR)]);
    assert_eq!(world.driver.last_kept_signal(&name()).as_deref(), Some("7"));
}
