//! Any order of signals, moments, looks and pauses.

use latido_policy::{
    Absence, Action, CheckEvent, Event, Expectation, Naming, OPEN_RUNS_MAX, Phase, ProcessEvent, ProcessFound,
    Sighting, Signal, Verdict,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::harness::{Bench, seconds};
use crate::watch::{CHECK, DAY, PROCESS, daily, hourly, process, run};

fn any_check_event() -> impl Strategy<Value = CheckEvent> {
    let subject = CHECK;
    let signal = prop_oneof![
        Just(Signal::Started),
        Just(Signal::Succeeded),
        Just(Signal::Failed),
        (0_u8..3).prop_map(Signal::Exited),
        Just(Signal::Logged)
    ];
    prop_oneof![
        8 => (signal, proptest::option::of(0_u64..12)).prop_map(move |(signal, id)| CheckEvent::Signaled {
            subject,
            signal,
            run: id.and_then(run),
        }),
        1 => proptest::option::of(0_u64..9000)
            .prop_map(move |length| CheckEvent::PauseWanted { subject, length: length.map(seconds) }),
        1 => Just(CheckEvent::UnpauseWanted { subject }),
    ]
}

fn any_process_event() -> impl Strategy<Value = ProcessEvent> {
    let subject = PROCESS;
    let naming = prop_oneof![
        Just(Naming::Name),
        Just(Naming::Pid),
        (0_u64..9000).prop_map(|ago| Naming::File { written_ago: seconds(ago) })
    ];
    prop_oneof![
        (1_u32..4, naming).prop_map(move |(pid, naming)| ProcessEvent::Seen {
            subject,
            sighting: Sighting { process: process(pid), age: seconds(3600), naming },
        }),
        Just(ProcessEvent::Absent { subject, absence: Absence::NoProcess }),
        (1_u32..4).prop_map(move |pid| ProcessEvent::Ended { subject, process: process(pid), exit: None }),
        Just(ProcessEvent::LookFailed { subject }),
        Just(ProcessEvent::UnpauseWanted { subject }),
        (0_u64..9000).prop_map(move |length| ProcessEvent::PauseWanted { subject, length: Some(seconds(length)) }),
    ]
}

/// Every verdict that is told goes on from the one told before, and none is told in a pause.
fn follow(shown: &mut Verdict, actions: &[Action]) {
    for action in actions {
        if let Action::RecordVerdict { previous, current, .. } = action {
            assert_eq!((previous, previous == current), (&*shown, false));
            *shown = *current;
        }
    }
}

proptest! {
    #[test]
    fn a_check_is_always_judged_and_never_due_in_the_past(
        on_calendar in any::<bool>(),
        steps in vec((any_check_event(), 0_u64..5000), 0..40),
    ) {
        let mut bench = Bench::check(if on_calendar { daily() } else { hourly() });
        let mut shown = Verdict::Waiting;
        let mut mark = 0;
        for (event, wait) in steps {
            follow(&mut shown, &bench.tell(Event::Check(event)));
            if on_calendar && bench.policy.check_memory(CHECK).unwrap().next.is_none() {
                mark += 1;
                let moment = bench.now.after(seconds(3000));
                follow(&mut shown, &bench.expect(Expectation { mark, moment, spacing: DAY, in_gap: false }));
            }
            follow(&mut shown, &bench.pass(seconds(wait)));
            let view = bench.policy.subject(CHECK).unwrap();
            prop_assert_eq!(view.verdict, shown);
            prop_assert!(bench.policy.check_memory(CHECK).unwrap().runs.open().count() <= OPEN_RUNS_MAX);
        }
        bench.unpause_check();
        bench.succeed();
        let memory = bench.policy.check_memory(CHECK).unwrap();
        prop_assert!(memory.owed.is_none(), "a success now meets all that came due");
        prop_assert!(matches!(bench.check_verdict(), Verdict::Alive), "{:?}", bench.of(CHECK));
    }

    #[test]
    fn a_silent_check_is_told_sooner_or_later(steps in vec((any_check_event(), 0_u64..5000), 0..40)) {
        let mut bench = Bench::check(hourly());
        for (event, wait) in steps {
            bench.tell(Event::Check(event));
            bench.pass(seconds(wait));
        }
        bench.unpause_check();
        bench.pass(2 * DAY);
        prop_assert!(
            matches!(bench.check_verdict(), Verdict::Missing | Verdict::Stale | Verdict::Failing),
            "{:?}", bench.of(CHECK)
        );
    }

    #[test]
    fn a_process_is_alive_by_the_identity_that_was_seen_last(steps in vec(any_process_event(), 0..60)) {
        let mut bench = Bench::process(ProcessFound::default());
        let mut shown = Verdict::Waiting;
        for event in steps {
            follow(&mut shown, &bench.tell(Event::Process(event)));
            follow(&mut shown, &bench.pass(seconds(1)));
            let view = bench.policy.subject(PROCESS).unwrap();
            prop_assert_eq!(view.verdict, shown);
            if let (ProcessEvent::Ended { process, .. }, Phase::Running) = (event, view.phase) {
                let is_it = bench.policy.process_seen(PROCESS) == Some(process);
                prop_assert!(!is_it || view.verdict == Verdict::Dead);
            }
        }
    }
}
