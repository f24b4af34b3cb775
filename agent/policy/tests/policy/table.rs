//! Every state met with every event. The result is a text that is reviewed as code: `UPDATE_EXPECTED=1` writes it anew.

use core::num::NonZeroU32;
use std::fmt::Write as _;
use std::path::Path;

use latido_policy::{
    Action, BlackoutSettings, Budget, Class, Event, Excuse, Found, FoundState, Heard, JobSettings, LaunchFailure, Life,
    Limit, Orphans, Pacing, Proposal, ResumeOn, SlotId, SlotSet, SubjectId, Want,
};

use crate::harness::{Bench, JOB, attempt, beat, ending, found_running, seconds, settings, supervisor, with_epoch};

/// What is done before the event, to a job with these settings.
type Setup = fn() -> Bench;

fn table_settings() -> JobSettings {
    let mut settings = settings();
    settings.resume.on = ResumeOn { lost: true, failed: true, stale: true, ..ResumeOn::default() };
    settings.resume.backoff_first = seconds(8);
    settings
}

/// A job whose attempt 2 of epoch 2 is the known one, so that there is an older and a newer.
fn second(state: FoundState) -> Bench {
    Bench::found(table_settings(), crate::harness::found(2, state))
}

fn running() -> Bench {
    Bench::found(table_settings(), found_running(2, beat(3, 100)))
}

fn unattended(process: Life, orphans: Orphans) -> Bench {
    let mut settings = table_settings();
    settings.orphans = orphans;
    Bench::found(settings, crate::harness::found(2, FoundState::Unattended { process }))
}

fn after(mut bench: Bench, act: impl FnOnce(&mut Bench)) -> Bench {
    act(&mut bench);
    bench
}

fn backing_off() -> Bench {
    second(FoundState::Ended(ending(Class::Lost)))
}

fn asking() -> Bench {
    after(backing_off(), |bench| drop(bench.pass(seconds(20))))
}

/// Attempt 2 is launched by this policy.
fn launching() -> Bench {
    let first = crate::harness::found(1, FoundState::Ended(ending(Class::Lost)));
    after(Bench::found(table_settings(), first), |bench| {
        bench.pass(seconds(20));
        bench.answered(attempt(1), Proposal::Launch);
    })
}

fn refused(failure: LaunchFailure) -> Event {
    Event::LaunchRefused { subject: JOB, attempt: attempt(2), failure }
}

const GPU: SlotId = SlotId(1);

/// Attempt 2 may start and waits until a slot is free.
fn queued() -> Bench {
    let settings = JobSettings { slots: SlotSet::of(&[GPU]), ..table_settings() };
    let first = crate::harness::found(1, FoundState::Ended(ending(Class::Lost)));
    after(Bench::found(settings, first), |bench| {
        bench.tell(slot_limit(0));
        bench.pass(seconds(20));
        bench.answered(attempt(1), Proposal::Launch);
    })
}

fn slot_limit(running_max: u32) -> Event {
    Event::SlotConfigured { slot: GPU, running_max: Limit::At(running_max) }
}

/// Three attempts are started at once by others, so attempt 2 waits for the pace.
fn queued_for_the_pace() -> Bench {
    let first = crate::harness::found(1, FoundState::Ended(ending(Class::Lost)));
    after(Bench::found(table_settings(), first), |bench| {
        let pacing = Pacing { at_once: Limit::At(NonZeroU32::MIN), every: seconds(30) };
        bench.tell(Event::Configured { pacing, blackout: BlackoutSettings::default() });
        bench.pass(seconds(20));
        bench.tell(Event::JobAdded { subject: SubjectId(9), settings: table_settings(), found: Found::default() });
        bench.answered(attempt(1), Proposal::Launch);
    })
}

const STATES: &[(&str, Setup)] = &[
    ("pending, paused", || Bench::found(table_settings(), Found { want: Want::Pause(None), ..Found::default() })),
    ("queued for a slot", queued),
    ("queued for a slot, paused", || after(queued(), |bench| drop(bench.want(Want::Pause(Some(seconds(600))))))),
    ("queued for the pace", queued_for_the_pace),
    ("launching", launching),
    ("launching elsewhere", || second(FoundState::Launching)),
    ("running", running),
    ("running, look failed", || {
        after(running(), |bench| drop(bench.tell(Event::LookFailed { subject: JOB, attempt: attempt(2) })))
    }),
    ("running, paused", || after(running(), |bench| drop(bench.want(Want::Pause(Some(seconds(600))))))),
    ("draining, commanded", || after(running(), |bench| drop(bench.want(Want::Stop)))),
    ("draining, stale", || after(running(), |bench| drop(bench.pass(seconds(180))))),
    ("draining elsewhere", || {
        after(running(), |bench| drop(bench.heard(attempt(2), Heard { stopping: true, ..beat(4, 101) })))
    }),
    ("ending an orphan", || unattended(Life::Alive, Orphans::End)),
    ("recording as lost", || unattended(Life::Gone, Orphans::End)),
    ("backing off", backing_off),
    ("backing off, paused", || after(backing_off(), |bench| drop(bench.want(Want::Pause(Some(seconds(600))))))),
    ("backing off to launch", || after(launching(), |bench| drop(bench.tell(refused(LaunchFailure::Failed))))),
    ("asking", asking),
    ("held by the strategy", || after(asking(), |bench| drop(bench.answered(attempt(2), Proposal::Hold)))),
    ("held, orphan lives", || unattended(Life::Alive, Orphans::Hold)),
    ("held, survivors", || {
        after(unattended(Life::Alive, Orphans::End), |bench| drop(bench.orphan_ended(attempt(2), 2)))
    }),
    ("held, cannot be told", || unattended(Life::Unknown, Orphans::End)),
    ("stuck", || after(asking(), |bench| drop(bench.answered(attempt(2), Proposal::GiveUp)))),
    ("ended", || second(FoundState::Ended(ending(Class::Completed)))),
    ("ended before the first", || Bench::found(table_settings(), Found { want: Want::Stop, ..Found::default() })),
];

fn started(attempt: latido_policy::Attempt) -> Event {
    Event::AttemptStarted { subject: JOB, attempt, supervisor: supervisor(attempt), process: None }
}

const NOTHING_LEFT: Budget = Budget { turns: Limit::At(0), tokens: Limit::None, money: Limit::None };

fn excuse() -> Excuse {
    Excuse { since: seconds(0), length: seconds(300) }
}

fn events() -> Vec<(&'static str, Event)> {
    let (subject, present, older, newer) = (JOB, attempt(2), attempt(1), with_epoch(3, 9));
    let heard = |heard| Event::Heard { subject, attempt: present, heard };
    let gone = |process| Event::SupervisorGone { subject, attempt: present, process };
    let over = |attempt, class| Event::AttemptEnded { subject, attempt, ending: ending(class) };
    let orphan = |survivors| Event::OrphanEnded { subject, attempt: present, survivors };
    let answer = |proposal| Event::StrategyAnswered { subject, attempt: present, proposal };
    let want = |want| Event::WantChanged { subject, want };
    let added = |found| Event::JobAdded { subject, settings: table_settings(), found };
    vec![
        ("run is wanted", want(Want::Run)),
        ("stop is wanted", want(Want::Stop)),
        ("resume is wanted", want(Want::Resume)),
        ("a pause is wanted", want(Want::Pause(None))),
        ("its budget is used up", Event::BudgetChanged { subject, budget: NOTHING_LEFT }),
        ("found running again", added(found_running(2, beat(4, 110)))),
        ("found ended again", added(crate::harness::found(2, FoundState::Ended(ending(Class::Failed))))),
        ("started", started(present)),
        ("an older one started", started(older)),
        ("a newer one started", started(newer)),
        ("seen running", Event::AttemptSeen { subject, attempt: present, supervisor: supervisor(present) }),
        ("refused: locked", refused(LaunchFailure::Locked)),
        ("refused: superseded", refused(LaunchFailure::Superseded)),
        ("refused: not wanted", refused(LaunchFailure::NotWanted)),
        ("refused: failed", refused(LaunchFailure::Failed)),
        ("refused: unreadable", refused(LaunchFailure::Unreadable)),
        ("heard a beat", heard(beat(4, 110))),
        ("heard an old beat", heard(beat(2, 50))),
        ("heard it fails", heard(Heard { failing: true, ..beat(4, 110) })),
        ("heard it stops", heard(Heard { stopping: true, ..beat(4, 110) })),
        ("heard it needs a person", heard(Heard { needs_person: true, ..beat(4, 110) })),
        ("heard an excuse", heard(Heard { excuse: Some(excuse()), ..beat(4, 110) })),
        ("an older one is heard", Event::Heard { subject, attempt: older, heard: beat(9, 900) }),
        ("a newer one is heard", Event::Heard { subject, attempt: newer, heard: beat(9, 900) }),
        ("its activity is seen", Event::ActivitySeen { subject, attempt: present, idle: seconds(5) }),
        ("an older one's is seen", Event::ActivitySeen { subject, attempt: older, idle: seconds(5) }),
        ("supervisor gone, alive", gone(Life::Alive)),
        ("supervisor gone, gone", gone(Life::Gone)),
        ("supervisor gone, unknown", gone(Life::Unknown)),
        ("ended: completed", over(present, Class::Completed)),
        ("ended: failed", over(present, Class::Failed)),
        ("ended: lost", over(present, Class::Lost)),
        ("ended: stopped", over(present, Class::Stopped)),
        ("ended: limit", over(present, Class::Limit)),
        ("an older one ended", over(older, Class::Lost)),
        ("a newer one ended", over(newer, Class::Lost)),
        ("orphan ended", orphan(0)),
        ("orphan survived", orphan(2)),
        ("answer: launch", answer(Proposal::Launch)),
        ("answer: wait", answer(Proposal::Wait(seconds(30)))),
        ("answer: hold", answer(Proposal::Hold)),
        ("answer: give up", answer(Proposal::GiveUp)),
        ("answer: failed", answer(Proposal::Failed)),
        ("its slot has room", slot_limit(1)),
        ("a long gap", Event::GapFound { length: seconds(3600) }),
        ("the store is away", Event::StoreFailed),
        ("look failed", Event::LookFailed { subject, attempt: present }),
        ("removed", Event::JobRemoved { subject }),
    ]
}

fn short(action: &Action) -> String {
    match action {
        Action::RecordVerdict { previous, current, .. } => format!("{previous} to {current}"),
        Action::RecordPhase { phase, because, .. } => format!("phase {phase} ({because})"),
        Action::RecordLost { attempt, pickups, .. } => format!("RECORD {} LOST, pickups {pickups}", attempt.number.0),
        Action::EndOrphan { attempt, .. } => format!("END ORPHAN {}", attempt.number.0),
        Action::EndAttempt { attempt, because, .. } => {
            format!("END {} ({:?})", attempt.number.0, because.stop_reason().unwrap())
        }
        Action::AskStrategy { attempt, .. } => format!("ASK about {}", attempt.number.0),
        Action::Launch { attempt, .. } => format!("LAUNCH {} epoch {}", attempt.number.0, attempt.epoch.0),
        Action::RecordGap { length } => format!("gap {length:?}"),
        Action::Registry(action) => format!("{action:?}"),
        Action::RecordBlackout { change } => format!("blackout {change:?}"),
        Action::Alert(action) => format!("{action:?}"),
        Action::Check(_) | Action::Process(_) => unreachable!("a job gives out neither"),
    }
}

/// Puts a fresh job into its state, does one thing, and tells in one line what came of it.
fn check(setup: Setup, act: impl FnOnce(&mut Bench) -> Vec<Action>) -> String {
    let mut bench = setup();
    let before = (bench.policy.refused_count(), bench.policy.unexpected_count());
    let actions = act(&mut bench);
    let state = bench.policy.subject(JOB).map_or("gone".to_owned(), |view| format!("{} {}", view.phase, view.verdict));
    let mut line = format!("{state:<20}");
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

fn table() -> String {
    let mut text = String::new();
    for (name, setup) in STATES {
        let bench = setup();
        writeln!(text, "{name}: {} {}", bench.phase(), bench.verdict()).unwrap();
        for (event_name, event) in events() {
            writeln!(text, "  {event_name:<26} {}", check(*setup, |bench| bench.tell(event))).unwrap();
        }
        writeln!(text, "  {:<26} {}", "its time comes", check(*setup, time_comes)).unwrap();
    }
    text
}

fn time_comes(bench: &mut Bench) -> Vec<Action> {
    let next = bench.policy.poll_timeout().unwrap_or(bench.now);
    bench.pass(next.since(bench.now))
}

#[test]
fn every_state_meets_every_event_as_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/job_table.txt");
    let actual = table();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (number, (actual, expected)) in actual.lines().zip(expected.lines()).enumerate() {
        assert_eq!(actual, expected, "line {} of {}", number + 1, path.display());
    }
    assert_eq!(actual.lines().count(), expected.lines().count());
}

#[test]
fn every_event_told_twice_does_what_it_does_once() {
    for (name, setup) in STATES {
        for (event_name, event) in events() {
            let mut bench = setup();
            bench.tell(event);
            let once = bench.policy.subject(JOB);
            let acts: Vec<_> = bench.tell(event).iter().filter(|action| acts(action)).map(short).collect();
            let may_act_again = matches!(event, Event::WantChanged { want: Want::Stop | Want::Resume, .. });
            let is_about_all = matches!(event, Event::GapFound { .. } | Event::StoreFailed);
            if is_about_all {
                continue;
            }
            assert!(acts.is_empty() || may_act_again, "{name}, {event_name} again: {acts:?}");
            let told = bench.policy.subject(JOB);
            assert_eq!(told.map(|view| view.attempt), once.map(|view| view.attempt), "{name}, {event_name} again");
            assert_eq!(told.map(|view| view.pickups), once.map(|view| view.pickups), "{name}, {event_name} again");
        }
    }
}

fn acts(action: &Action) -> bool {
    match action {
        Action::RecordVerdict { .. }
        | Action::RecordPhase { .. }
        | Action::RecordGap { .. }
        | Action::RecordBlackout { .. }
        | Action::Registry(_)
        | Action::Alert(_) => false,
        Action::Check(_) | Action::Process(_) => unreachable!("a job gives out neither"),
        Action::RecordLost { .. }
        | Action::EndOrphan { .. }
        | Action::EndAttempt { .. }
        | Action::AskStrategy { .. }
        | Action::Launch { .. } => true,
    }
}

#[test]
fn no_event_about_one_job_moves_another() {
    let other = SubjectId(8);
    for (name, setup) in STATES {
        for (event_name, event) in events() {
            let mut bench = setup();
            let found = found_running(2, beat(3, 100));
            bench.tell(Event::JobAdded { subject: other, settings: table_settings(), found });
            let before = bench.policy.subject(other);
            if matches!(event, Event::GapFound { .. } | Event::StoreFailed) {
                continue; // They are about the agent, and so about everybody.
            }
            bench.tell(event);
            assert_eq!(bench.policy.subject(other), before, "{name}, {event_name}");
        }
    }
}
