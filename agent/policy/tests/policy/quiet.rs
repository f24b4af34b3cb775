//! Silence that was announced, standstill of what is busy, circles, and waiting for a person.

use core::time::Duration;

use latido_policy::{
    Action, BeatSource, Event, Excuse, Fingerprint, Ground, Heard, JobSettings, Limit, Phase, Reason, ResumeOn,
    StopReason, Verdict, Want,
};

use crate::harness::{Bench, JOB, attempt, beat, end_attempt, found_running, record_verdict, seconds, settings};

/// Ended by its own policy for everything that can be asked for.
fn strict() -> JobSettings {
    let mut settings = settings();
    settings.resume.on = ResumeOn { stale: true, hung: true, ..ResumeOn::default() };
    settings
}

fn hung_after(limit: u64) -> JobSettings {
    let mut settings = strict();
    settings.lease.hung_after = Limit::At(seconds(limit));
    settings
}

fn excused(since: u64, length: u64) -> Option<Excuse> {
    Some(Excuse { since: seconds(since), length: seconds(length) })
}

#[test]
fn announced_silence_is_alive_with_its_reason_and_its_end_begins_a_new_ttl() {
    let mut bench = Bench::running(hung_after(170));
    bench.heard(attempt(1), Heard { excuse: excused(0, 600), ..beat(1, 5) });
    assert_eq!(bench.pass(seconds(599)), []);
    assert_eq!((bench.verdict(), bench.view().because), (Verdict::Alive, Reason::Excused { left: seconds(1) }));
    let still = Heard { silence: seconds(599), still: seconds(599), excuse: excused(599, 600), ..beat(1, 604) };
    assert_eq!(bench.heard(attempt(1), still), [], "its supervisor counted all along");
    bench.pass(seconds(1));
    assert_eq!((bench.verdict(), bench.view().silence), (Verdict::Alive, Some(Duration::ZERO)));
    assert_eq!(bench.pass(seconds(169)).len(), 1, "late after one interval");
    let because = Reason::ProgressStill { still: seconds(170), hung_after: seconds(170), idle: None };
    assert_eq!(bench.pass(seconds(1)).last(), Some(&end_attempt(attempt(1), because)));
}

#[test]
fn a_restart_of_the_agent_neither_forgets_an_excuse_nor_renews_it() {
    let told = |silence, since| Heard { silence: seconds(silence), excuse: excused(since, 600), ..beat(1, silence) };
    let mut during = Bench::found(strict(), found_running(1, told(300, 300)));
    assert_eq!(during.view().because, Reason::Excused { left: seconds(300) });
    let mut actions = during.pass(seconds(300 + 179));
    actions.retain(|action| !matches!(action, Action::RecordVerdict { .. }));
    assert_eq!(actions, []);
    let mut afterwards = Bench::found(strict(), found_running(1, told(700, 700)));
    assert_eq!(afterwards.view().silence, Some(seconds(100)), "since its end");
    let because = Reason::LeaseRanOut { silence: seconds(180), ttl: seconds(180) };
    assert_eq!(afterwards.pass(seconds(80)).last(), Some(&end_attempt(attempt(1), because)));
}

#[test]
fn no_excuse_lasts_longer_than_the_lease_allows_however_often_it_is_renewed() {
    let mut settings = strict();
    settings.lease.excuse_max = seconds(300);
    let mut bench = Bench::running(settings);
    for step in 0..4 {
        let told = Heard { silence: seconds(100 * step), excuse: excused(100 * step, 100 * step + 200), ..beat(1, 9) };
        bench.heard(attempt(1), told);
        assert_eq!(bench.verdict(), Verdict::Alive, "renewed {step} times");
        bench.pass(seconds(100));
    }
    assert_eq!(bench.view().silence, Some(seconds(100)), "400 s, of which 300 are excused");
    let because = Reason::LeaseRanOut { silence: seconds(180), ttl: seconds(180) };
    assert_eq!(bench.pass(seconds(80)).last(), Some(&end_attempt(attempt(1), because)));
}

#[test]
fn where_no_excuse_counts_it_changes_nothing() {
    let mut settings = strict();
    settings.lease.excuse_max = Duration::ZERO;
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), Heard { excuse: excused(0, 600), ..beat(1, 5) });
    assert_eq!(bench.pass(seconds(180)).len(), 4, "late, stale, draining, end");
}

#[test]
fn who_announces_silence_before_its_first_beat_is_waited_for() {
    let mut settings = strict();
    settings.lease.beats = BeatSource::Own;
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), Heard { excuse: excused(0, 600), ..beat(0, 5) });
    assert_eq!((bench.pass(seconds(600 + 59)), bench.verdict()), (vec![], Verdict::Waiting));
    assert_eq!(bench.pass(seconds(1)).len(), 1);
    assert_eq!(bench.verdict(), Verdict::Missing);
}

// eaprelsky/konoha#69
#[test]
fn c044_whoever_waits_for_a_person_is_told_of_at_once_and_never_ended_for_it() {
    let mut bench = Bench::running(hung_after(60));
    bench.heard(attempt(1), beat(1, 5));
    let because = Reason::NeedsPerson { silence: Duration::ZERO };
    assert_eq!(
        bench.heard(attempt(1), Heard { needs_person: true, ..beat(2, 6) }),
        [record_verdict(attempt(1), Verdict::Alive, Verdict::Hung, because)]
    );
    assert_eq!(because.stop_reason(), None);
    assert_eq!(bench.pass(seconds(100_000)), []);
    assert_eq!(bench.view().because, Reason::NeedsPerson { silence: seconds(100_000) });
    bench.heard(attempt(1), beat(3, 100_010));
    assert_eq!(bench.verdict(), Verdict::Alive);
    assert_eq!(bench.want(Want::Stop).last(), Some(&end_attempt(attempt(1), Reason::Commanded)));
}

// Abilityai/trinity#1369
#[test]
fn c041_a_job_that_stands_still_and_is_busy_is_told_of_and_ended_only_if_that_is_asked_for() {
    let told = |still, idle| Heard { still: seconds(still), idle: Some(seconds(idle)), ..beat(still, still) };
    let busy = Reason::ProgressStill { still: seconds(10), hung_after: seconds(10), idle: Some(seconds(1)) };
    let mut bench = Bench::running(hung_after(10));
    bench.heard(attempt(1), told(9, 1));
    assert_eq!(bench.pass(seconds(1)), [record_verdict(attempt(1), Verdict::Alive, Verdict::Hung, busy)]);
    assert!(busy.to_string().ends_with("it is busy: output, CPU time or I/O grew 1s ago"), "{busy}");
    for second in 20..40 {
        bench.pass(seconds(1));
        assert_eq!(bench.heard(attempt(1), told(second, 1)), [], "at {second}s");
    }
    let idle = Reason::ProgressStill { still: seconds(50), hung_after: seconds(10), idle: Some(seconds(10)) };
    assert_eq!(bench.heard(attempt(1), told(50, 10)).last(), Some(&end_attempt(attempt(1), idle)), "nor is it busy");

    let mut settings = hung_after(10);
    settings.resume.spare_busy = false;
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), told(9, 1));
    assert_eq!(bench.pass(seconds(1)).last(), Some(&end_attempt(attempt(1), busy)));
}

/// Tells what a look from outside saw of an attempt.
fn seen(bench: &mut Bench, number: u32, idle: u64) -> Vec<Action> {
    bench.tell(Event::ActivitySeen { subject: JOB, attempt: attempt(number), idle: seconds(idle) })
}

#[test]
fn who_is_seen_to_compute_is_busy_though_its_supervisor_hears_no_output() {
    let still = |idle| Reason::ProgressStill { still: seconds(10), hung_after: seconds(10), idle: Some(seconds(idle)) };
    for (heard, looked, less) in [(None, 2, 2), (Some(50), 2, 2), (Some(2), 50, 2)] {
        let mut bench = Bench::running(hung_after(10));
        bench.heard(attempt(1), Heard { idle: heard.map(seconds), ..beat(1, 5) });
        assert_eq!(seen(&mut bench, 1, looked), []);
        let verdict = record_verdict(attempt(1), Verdict::Alive, Verdict::Hung, still(less));
        assert_eq!(bench.pass(seconds(10)), [verdict], "{heard:?} and {looked}");
        assert_eq!(bench.pass(seconds(160)), [], "nobody is ended for what was not looked at");
    }
}

#[test]
fn who_stands_still_is_ended_when_a_look_finds_it_idle_for_as_long() {
    let mut bench = Bench::running(hung_after(10));
    bench.heard(attempt(1), beat(1, 5));
    seen(&mut bench, 1, 0);
    bench.pass(seconds(20));
    assert_eq!((seen(&mut bench, 1, 9), bench.verdict()), (vec![], Verdict::Hung));
    let idle = Reason::ProgressStill { still: seconds(20), hung_after: seconds(10), idle: Some(seconds(10)) };
    assert_eq!(seen(&mut bench, 1, 10).last(), Some(&end_attempt(attempt(1), idle)));
    assert!(idle.to_string().ends_with("nor has it done anything for 10s"), "{idle}");
    seen(&mut bench, 1, 0);
    bench.heard(attempt(1), Heard { still: seconds(21), ..beat(2, 26) });
    assert_eq!(bench.phase(), Phase::Running, "and an order is void when it is seen to move before it is carried out");
}

#[test]
fn what_was_seen_of_an_older_attempt_says_nothing_of_its_successor() {
    let mut bench = Bench::running(hung_after(10));
    seen(&mut bench, 1, 0);
    bench.started(attempt(2));
    let refused = bench.policy.refused_count();
    assert_eq!((seen(&mut bench, 1, 0), bench.policy.refused_count()), (vec![], refused + 1));
    let none = Reason::ProgressStill { still: seconds(10), hung_after: seconds(10), idle: None };
    assert_eq!(bench.pass(seconds(10)).last(), Some(&end_attempt(attempt(2), none)));
}

#[test]
fn a_look_that_sees_it_move_is_neither_a_beat_nor_progress() {
    let mut bench = Bench::running(hung_after(900));
    bench.heard(attempt(1), beat(1, 5));
    for _ in 0..17 {
        bench.pass(seconds(10));
        seen(&mut bench, 1, 0);
    }
    let view = bench.view();
    assert_eq!((view.verdict, view.silence, view.still), (Verdict::Late, Some(seconds(170)), Some(seconds(170))));
    let because = Reason::LeaseRanOut { silence: seconds(180), ttl: seconds(180) };
    assert_eq!(bench.pass(seconds(10)).last(), Some(&end_attempt(attempt(1), because)));
}

// arhen/pi-extensions#2
#[test]
fn c042_a_job_that_prints_nothing_and_computes_is_never_ended_for_it() {
    let mut bench = Bench::running(hung_after(15));
    for second in 1..600 {
        bench.pass(seconds(1));
        let told = Heard { still: seconds(second), idle: Some(Duration::ZERO), has_output: false, ..beat(0, second) };
        let ended = bench
            .heard(attempt(1), told)
            .iter()
            .any(|action| matches!(action, Action::EndAttempt { .. } | Action::RecordPhase { .. }));
        assert!(!ended, "at {second}s");
    }
    assert_eq!(bench.verdict(), Verdict::Hung);
}

#[test]
fn a_lease_is_a_promise_and_who_breaks_it_is_ended_however_busy() {
    let mut bench = Bench::running(strict());
    bench.heard(attempt(1), Heard { idle: Some(Duration::ZERO), ..beat(1, 5) });
    let because = Reason::LeaseRanOut { silence: seconds(180), ttl: seconds(180) };
    assert_eq!(bench.pass(seconds(180)).last(), Some(&end_attempt(attempt(1), because)));
}

/// Tells beat after beat, each with its progress.
fn tell_progress(bench: &mut Bench, steps: impl IntoIterator<Item = u64>) {
    for (index, step) in steps.into_iter().enumerate() {
        bench.pass(seconds(1));
        let sequence = index as u64 + 1;
        bench.heard(attempt(1), Heard { progress: Some(Fingerprint(step)), ..beat(sequence, sequence) });
    }
}

#[test]
fn work_that_moves_in_a_circle_is_hung_and_something_new_ends_that() {
    let mut settings = settings();
    settings.lease.looping_after = Limit::At(20);
    settings.lease.hung_after = Limit::At(seconds(900));
    let mut bench = Bench::running(settings);
    tell_progress(&mut bench, (0..22).map(|step| step % 3));
    assert_eq!(bench.verdict(), Verdict::Alive);
    bench.heard(attempt(1), Heard { progress: Some(Fingerprint(1)), ..beat(23, 30) });
    let because = Reason::Looping { repeated: 20, looping_after: 20 };
    assert_eq!((bench.verdict(), bench.view().because), (Verdict::Hung, because));
    assert_eq!(because.stop_reason(), Some(StopReason::Hung));
    bench.heard(attempt(1), Heard { progress: Some(Fingerprint(9)), ..beat(24, 31) });
    assert_eq!(bench.verdict(), Verdict::Alive);
}

#[test]
fn work_that_gets_on_is_never_in_a_circle() {
    let mut settings = strict();
    settings.lease.looping_after = Limit::At(2);
    let mut bench = Bench::running(settings);
    tell_progress(&mut bench, 0..1000);
    assert_eq!(bench.verdict(), Verdict::Alive);
}

#[test]
fn a_circle_is_ended_where_that_is_asked_for() {
    let mut settings = strict();
    settings.lease.looping_after = Limit::At(5);
    let mut bench = Bench::running(settings);
    tell_progress(&mut bench, [1, 2, 1, 2, 1, 2]);
    let because = Reason::Looping { repeated: 5, looping_after: 5 };
    let heard = Heard { progress: Some(Fingerprint(1)), ..beat(7, 7) };
    assert_eq!(bench.heard(attempt(1), heard).last(), Some(&end_attempt(attempt(1), because)));
}

#[test]
fn no_output_in_time_is_a_limit_and_only_what_was_looked_at_counts() {
    let mut settings = settings();
    settings.lease.first_output_within = Limit::At(seconds(60));
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), beat(0, 59));
    assert_eq!(bench.pass(seconds(10_000)), [], "nobody has looked since");
    let because = Reason::NoOutput { waited: seconds(60), first_output_within: seconds(60) };
    let silent = Heard { silence: seconds(1), ..beat(0, 60) };
    assert_eq!(bench.heard(attempt(1), silent).last(), Some(&end_attempt(attempt(1), because)));
    assert_eq!(because.stop_reason(), Some(StopReason::Limit));

    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), Heard { has_output: true, ..beat(0, 61) });
    assert_eq!(bench.pass(seconds(10_000)), []);
}

#[test]
fn a_failed_look_at_an_excused_job_is_unknown_and_ends_nothing() {
    let mut bench = Bench::running(strict());
    bench.heard(attempt(1), Heard { excuse: excused(0, 60), ..beat(1, 5) });
    bench.tell(Event::LookFailed { subject: JOB, attempt: attempt(1) });
    assert_eq!((bench.verdict(), bench.pass(seconds(10_000))), (Verdict::Unknown, vec![]));
}

/// The supervisor carries an order out only while what it rests on is so: word of progress or of health voids it.
#[test]
fn an_order_for_want_of_progress_rests_on_what_was_seen_and_is_void_with_the_next_progress() {
    let moves = |sequence, progress| Heard { progress: Some(Fingerprint(progress)), ..beat(sequence, sequence) };
    let broken = Heard { broken: true, ..moves(9, 1) };
    let repeats: Vec<Heard> = (2..6).map(|sequence| Heard { still: seconds(sequence), ..moves(sequence, 1) }).collect();
    for (limits, told, ground) in [
        ((Limit::At(seconds(5)), Limit::None), &repeats[..], Ground::Still(seconds(5))),
        ((Limit::None, Limit::At(3)), &repeats[..3], Ground::Repeating { beats: 4 }),
        ((Limit::None, Limit::None), &[broken][..], Ground::Broken),
    ] {
        let mut settings = settings();
        settings.resume.on.hung = true;
        (settings.lease.hung_after, settings.lease.looping_after) = limits;
        let mut bench = Bench::running(settings);
        bench.heard(attempt(1), moves(1, 1));
        let (last, before) = told.split_last().unwrap();
        before.iter().for_each(|heard| _ = bench.heard(attempt(1), *heard));
        let (subject, heard) = (JOB, *last);
        bench.policy.handle_event(Event::Heard { subject, attempt: attempt(1), heard }, bench.now);
        let actions: Vec<Action> = core::iter::from_fn(|| bench.policy.poll_action()).collect();
        let rests = |action: &Action| matches!(action, Action::EndAttempt { ground: Some(of), .. } if *of == ground);
        assert!(actions.iter().any(rests), "{ground:?}: {actions:?}");
        assert_eq!(bench.phase(), Phase::Draining);
        bench.heard(attempt(1), moves(10, 2));
        assert_eq!((bench.phase(), bench.verdict()), (Phase::Running, Verdict::Alive), "{ground:?}");
    }
}

/// An order that rests on the last beat is void with the next one, also where that says nothing new.
#[test]
fn a_loop_that_goes_on_is_ordered_to_end_again() {
    let mut settings = settings();
    settings.resume.on.hung = true;
    settings.lease.looping_after = Limit::At(2);
    let mut bench = Bench::running(settings);
    for sequence in 1..=5 {
        let heard = Heard { progress: Some(Fingerprint(1)), ..beat(sequence, sequence) };
        let orders = bench.heard(attempt(1), heard);
        let ends = orders.iter().any(|action| matches!(action, Action::EndAttempt { .. }));
        assert_eq!(ends, sequence >= 3, "beat {sequence}: {orders:?}");
    }
}

/// The supervisor tells the same beat again while it carries an order out.
#[test]
fn an_order_stands_while_nothing_else_is_heard() {
    let mut stale = Bench::running(strict());
    stale.heard(attempt(1), beat(1, 5));
    stale.pass(seconds(180));
    assert_eq!(stale.phase(), Phase::Draining);
    stale.pass(seconds(5));
    assert_eq!(stale.heard(attempt(1), Heard { silence: seconds(185), ..beat(1, 190) }), []);

    let mut settings = strict();
    settings.lease.looping_after = Limit::At(2);
    let mut looping = Bench::running(settings);
    tell_progress(&mut looping, [1, 1, 1]);
    assert_eq!(looping.phase(), Phase::Draining);
    let again = Heard { progress: Some(Fingerprint(1)), silence: seconds(1), ..beat(3, 4) };
    assert_eq!(looping.heard(attempt(1), again), []);
}

/// The grounds of the orders among these actions.
fn grounds(actions: &[Action]) -> Vec<Ground> {
    let ground = |action: &Action| if let Action::EndAttempt { ground, .. } = action { *ground } else { None };
    actions.iter().filter_map(ground).collect()
}

#[test]
fn silence_before_the_first_beat_has_the_time_of_the_start_and_after_it_the_ttl() {
    let mut settings = strict();
    settings.lease.beats = BeatSource::Own;
    settings.lease.start_within = seconds(600);
    for (heard, limit) in [(None, 600), (Some(beat(1, 0)), 180)] {
        let mut bench = Bench::running(settings);
        heard.into_iter().for_each(|heard| _ = bench.heard(attempt(1), heard));
        bench.pass(seconds(limit - 1));
        assert_eq!(bench.phase(), Phase::Running, "{heard:?}");
        bench.now = bench.now.after(seconds(1));
        bench.policy.handle_timeout(bench.now);
        let actions: Vec<Action> = core::iter::from_fn(|| bench.policy.poll_action()).collect();
        assert_eq!(grounds(&actions), [Ground::Silent(seconds(limit))], "{heard:?}");
    }
}

#[test]
fn whoever_sends_no_beats_and_need_not_is_never_ended_for_silence() {
    let mut bench = Bench::running(strict());
    bench.pass(seconds(1000));
    assert_eq!(bench.heard(attempt(1), Heard { silence: seconds(1000), ..beat(0, 1000) }), []);
    assert_eq!((bench.phase(), bench.verdict()), (Phase::Running, Verdict::Alive));
}

#[test]
fn an_excuse_that_does_not_count_takes_nothing_from_the_silence_before_it() {
    let mut settings = strict();
    settings.lease.excuse_max = Duration::ZERO;
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), Heard { silence: seconds(100), excuse: excused(10, 600), ..beat(1, 200) });
    assert_eq!(bench.view().silence, Some(seconds(100)));
}
