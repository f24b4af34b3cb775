//! Every state of a check and of a watched process met with every event, as committed texts: `UPDATE_EXPECTED=1` writes
//! them anew.

use std::fmt::Write as _;
use std::path::Path;

use latido_policy::{
    Absence, Action, CheckAction, CheckEvent, CheckFound, CheckSettings, Event, Exit, Expectation, Naming,
    OPEN_RUNS_MAX, ProcessAction, ProcessEvent, ProcessFound, Sighting, Signal, SubjectId,
};

use crate::harness::Bench;
use crate::watch::{CHECK, DAY, HOUR, MINUTE, PROCESS, daily, daily_at, hourly, process, run, watched_settings};

type Setup = fn() -> Bench;

fn after(mut bench: Bench, act: impl FnOnce(&mut Bench)) -> Bench {
    act(&mut bench);
    bench
}

/// Due in an hour, with half an hour of grace.
fn calendar() -> Bench {
    Bench::check_due_in(daily(), HOUR)
}

fn succeeded() -> Bench {
    after(calendar(), |bench| drop(bench.signal(Signal::Succeeded, run(1))))
}

fn running() -> Bench {
    after(succeeded(), |bench| drop(bench.signal(Signal::Started, run(2))))
}

fn failed() -> Bench {
    after(succeeded(), |bench| drop(bench.signal(Signal::Exited(3), run(2))))
}

const CHECKS: &[(&str, Setup)] = &[
    ("never heard", calendar),
    ("never heard, in its grace", || after(calendar(), |bench| drop(bench.pass(HOUR + MINUTE)))),
    ("never heard, missing", || after(calendar(), |bench| drop(bench.pass(2 * HOUR)))),
    ("first run under way", || after(calendar(), |bench| drop(bench.signal(Signal::Started, run(2))))),
    ("succeeded", succeeded),
    ("succeeded, and a run under way", running),
    ("succeeded, and a nameless run under way", || {
        after(succeeded(), |bench| {
            bench.signal(Signal::Started, None);
            bench.pass(MINUTE);
        })
    }),
    ("succeeded, met early", || {
        after(calendar(), |bench| {
            bench.pass(HOUR - MINUTE);
            bench.signal(Signal::Succeeded, run(1));
        })
    }),
    ("succeeded, every hour", || after(Bench::check(hourly()), |bench| drop(bench.signal(Signal::Succeeded, run(1))))),
    ("late", || after(succeeded(), |bench| drop(bench.pass(HOUR + MINUTE)))),
    ("late, every hour", || {
        after(Bench::check(hourly()), |bench| {
            bench.signal(Signal::Succeeded, run(1));
            bench.pass(HOUR + MINUTE);
        })
    }),
    ("late, run of before under way", || after(running(), |bench| drop(bench.pass(HOUR + MINUTE)))),
    ("stale", || after(succeeded(), |bench| drop(bench.pass(2 * HOUR)))),
    ("hung", || {
        after(Bench::check_due_in(daily(), DAY), |bench| {
            bench.signal(Signal::Started, run(2));
            bench.pass(3 * HOUR);
        })
    }),
    ("failing", failed),
    ("failing and overdue", || after(failed(), |bench| drop(bench.pass(2 * HOUR)))),
    ("a run never ended", || {
        after(succeeded(), |bench| {
            bench.signal(Signal::Started, None);
            bench.pass(MINUTE);
            bench.signal(Signal::Started, None);
        })
    }),
    ("as many runs as may be open", || {
        after(succeeded(), |bench| {
            for id in 0..OPEN_RUNS_MAX as u64 {
                bench.signal(Signal::Started, run(20 + id));
            }
        })
    }),
    ("paused, succeeded", || after(succeeded(), |bench| drop(bench.pause_check(Some(HOUR))))),
    ("paused, late", || {
        after(succeeded(), |bench| {
            bench.pass(HOUR + MINUTE);
            bench.pause_check(None);
        })
    }),
];

fn check_events(bench: &Bench) -> Vec<(&'static str, Event)> {
    let subject = CHECK;
    let signal = |signal, run| Event::Check(CheckEvent::Signaled { subject, signal, run });
    let expected = |expectation| Event::Check(CheckEvent::Expected { subject, expectation });
    let added = |settings| Event::Check(CheckEvent::Added { subject, settings, found: CheckFound::default() });
    vec![
        ("started", signal(Signal::Started, None)),
        ("started, run 2", signal(Signal::Started, run(2))),
        ("started, run 3", signal(Signal::Started, run(3))),
        ("started, run 1", signal(Signal::Started, run(1))),
        ("succeeded", signal(Signal::Succeeded, None)),
        ("succeeded, run 2", signal(Signal::Succeeded, run(2))),
        ("succeeded, run 1", signal(Signal::Succeeded, run(1))),
        ("failed", signal(Signal::Failed, None)),
        ("failed, run 2", signal(Signal::Failed, run(2))),
        ("exit status 0, run 2", signal(Signal::Exited(0), run(2))),
        ("exit status 1, run 2", signal(Signal::Exited(1), run(2))),
        ("logged", signal(Signal::Logged, run(2))),
        ("expected, the same", expected(daily_at(1, bench.now.after(MINUTE)))),
        ("expected, the next", expected(daily_at(2, bench.now.after(DAY)))),
        ("expected, in a gap", expected(Expectation { in_gap: true, ..daily_at(3, bench.now) })),
        ("found again", added(daily())),
        ("found with another grace", added(CheckSettings { grace: DAY, ..daily() })),
        ("found with a schedule", added(hourly())),
        ("a pause is wanted", Event::Check(CheckEvent::PauseWanted { subject, length: Some(MINUTE) })),
        ("an end of the pause", Event::Check(CheckEvent::UnpauseWanted { subject })),
        ("removed", Event::Check(CheckEvent::Removed { subject })),
        ("an event of a process", Event::Process(ProcessEvent::LookFailed { subject })),
    ]
}

const PROCESSES: &[(&str, Setup)] = &[
    ("not looked at", || Bench::process(ProcessFound::default())),
    ("not looked at, seen before", || {
        Bench::process(ProcessFound { seen: Some(process(7)), ..ProcessFound::default() })
    }),
    ("never seen", || after(Bench::process(ProcessFound::default()), |bench| drop(bench.miss(Absence::Unnamed)))),
    ("missing", || {
        after(Bench::process(ProcessFound::default()), |bench| {
            bench.miss(Absence::Unnamed);
            bench.pass(MINUTE);
        })
    }),
    ("alive", alive),
    ("unknown, never seen", || after(Bench::process(ProcessFound::default()), |bench| drop(bench.look_in_vain()))),
    ("unknown", || after(alive(), |bench| drop(bench.look_in_vain()))),
    ("gone", || after(alive(), |bench| drop(bench.miss(Absence::NoProcess)))),
    ("ended", || after(alive(), |bench| drop(bench.tell(process_ended(7))))),
    ("paused, alive", || {
        after(alive(), |bench| {
            bench.tell(Event::Process(ProcessEvent::PauseWanted { subject: PROCESS, length: Some(HOUR) }));
        })
    }),
];

fn alive() -> Bench {
    after(Bench::process(ProcessFound::default()), |bench| drop(bench.see(process(7))))
}

fn process_ended(pid: u32) -> Event {
    let exit = Some(Exit::Status(1));
    Event::Process(ProcessEvent::Ended { subject: PROCESS, process: process(pid), exit })
}

fn process_events(_: &Bench) -> Vec<(&'static str, Event)> {
    let subject = PROCESS;
    let seen = |pid, naming| {
        let sighting = Sighting { process: process(pid), age: HOUR, naming };
        Event::Process(ProcessEvent::Seen { subject, sighting })
    };
    let absent = |absence| Event::Process(ProcessEvent::Absent { subject, absence });
    let (settings, found) = (watched_settings(), ProcessFound::default());
    vec![
        ("seen by name", seen(7, Naming::Name)),
        ("another by name", seen(8, Naming::Name)),
        ("seen by number", seen(7, Naming::Pid)),
        ("another by number", seen(8, Naming::Pid)),
        ("seen by an older file", seen(7, Naming::File { written_ago: DAY })),
        ("another by an older file", seen(8, Naming::File { written_ago: DAY })),
        ("another by its own file", seen(8, Naming::File { written_ago: HOUR })),
        ("unnamed", absent(Absence::Unnamed)),
        ("no process", absent(Absence::NoProcess)),
        ("number reused", absent(Absence::Reused)),
        ("ended", process_ended(7)),
        ("another ended", process_ended(8)),
        ("look failed", Event::Process(ProcessEvent::LookFailed { subject })),
        ("found again", Event::Process(ProcessEvent::Added { subject, settings, found })),
        ("a pause is wanted", Event::Process(ProcessEvent::PauseWanted { subject, length: Some(MINUTE) })),
        ("an end of the pause", Event::Process(ProcessEvent::UnpauseWanted { subject })),
        ("removed", Event::Process(ProcessEvent::Removed { subject })),
        ("an event of a check", Event::Check(CheckEvent::UnpauseWanted { subject })),
    ]
}

fn short(action: &Action) -> String {
    match action {
        Action::RecordVerdict { previous, current, because, .. } => format!("{previous} to {current} ({because})"),
        Action::RecordPhase { phase, because, .. } => format!("phase {phase} ({because})"),
        Action::Check(CheckAction::RecordUnended { run, open_for, .. }) => {
            format!("UNENDED {:?} after {}s", run.map(|run| run.0), open_for.as_secs())
        }
        Action::Process(ProcessAction::RecordReplaced { previous, current, .. }) => {
            format!("{} REPLACED BY {}", previous.pid, current.pid)
        }
        Action::RecordLost { .. }
        | Action::EndOrphan { .. }
        | Action::EndAttempt { .. }
        | Action::AskStrategy { .. }
        | Action::Launch { .. }
        | Action::RecordBlackout { .. }
        | Action::Alert(_)
        | Action::Registry(_)
        | Action::RecordGap { .. } => unreachable!("what is only watched orders nothing"),
    }
}

/// Puts a fresh subject into its state, does one thing, and tells in one line what came of it.
fn line(subject: SubjectId, setup: Setup, act: impl FnOnce(&mut Bench) -> Vec<Action>) -> String {
    let mut bench = setup();
    let before = (bench.policy.refused_count(), bench.policy.unexpected_count());
    let actions = act(&mut bench);
    let state =
        bench.policy.subject(subject).map_or("gone".to_owned(), |view| format!("{} {}", view.phase, view.verdict));
    let mut line = format!("{state:<16}");
    for action in &actions {
        write!(line, " | {}", short(action)).unwrap();
    }
    if bench.policy.refused_count() > before.0 {
        line.push_str(" | refused");
    }
    if bench.policy.unexpected_count() > before.1 {
        line.push_str(" | unexpected");
    }
    line.trim_end().to_owned()
}

fn time_comes(bench: &mut Bench) -> Vec<Action> {
    let next = bench.policy.poll_timeout().unwrap_or(bench.now);
    bench.pass(next.since(bench.now))
}

type Events = fn(&Bench) -> Vec<(&'static str, Event)>;

fn table(subject: SubjectId, states: &[(&str, Setup)], events: Events) -> String {
    let mut text = String::new();
    for (name, setup) in states {
        let bench = setup();
        let view = bench.policy.subject(subject).unwrap();
        writeln!(text, "{name}: {} {} ({})", view.phase, view.verdict, view.because).unwrap();
        for (event_name, event) in events(&bench) {
            writeln!(text, "  {event_name:<25} {}", line(subject, *setup, |bench| bench.tell(event))).unwrap();
        }
        writeln!(text, "  {:<25} {}", "its time comes", line(subject, *setup, time_comes)).unwrap();
    }
    text
}

fn compare(file: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (number, (actual, expected)) in actual.lines().zip(expected.lines()).enumerate() {
        assert_eq!(actual, expected, "line {} of {}", number + 1, path.display());
    }
    assert_eq!(actual.lines().count(), expected.lines().count());
}

#[test]
fn every_state_of_a_check_meets_every_event_as_the_table_says() {
    compare("check_table.txt", &table(CHECK, CHECKS, check_events));
}

#[test]
fn every_state_of_a_process_meets_every_event_as_the_table_says() {
    compare("process_table.txt", &table(PROCESS, PROCESSES, process_events));
}

#[test]
fn a_signal_with_an_id_told_twice_does_what_it_does_once() {
    for (name, setup) in CHECKS {
        for signal in [Signal::Started, Signal::Succeeded, Signal::Failed, Signal::Exited(1)] {
            let mut bench = setup();
            bench.signal(signal, run(2));
            let once = bench.policy.check_memory(CHECK);
            assert_eq!(bench.signal(signal, run(2)), [], "{name}, {signal:?} again");
            assert_eq!(bench.policy.check_memory(CHECK), once, "{name}, {signal:?} again");
        }
    }
}
