//! What lives without its supervisor, and what cannot be told.

use core::time::Duration;

use latido_policy::{Class, Event, FoundState, JobSettings, Life, Orphans, Phase, Reason, Verdict, Want};

use crate::harness::{
    Bench, JOB, ask, attempt, beat, end_orphan, ending, found, record_lost, record_phase, record_verdict, seconds,
    settings,
};
use crate::jobs::{LOST, NO_WAIT, RESUMED};

#[test]
fn a_killed_supervisor_has_its_orphan_ended_first() {
    let mut bench = Bench::running(settings());
    assert_eq!(
        bench.gone(attempt(1), Life::Alive),
        [
            record_verdict(attempt(1), Verdict::Alive, Verdict::Orphaned, Reason::SupervisorGone),
            record_phase(attempt(1), Phase::Draining, Reason::SupervisorGone),
            end_orphan(attempt(1), Reason::SupervisorGone),
        ]
    );
    assert_eq!(bench.pass(seconds(10_000)), [], "nothing is launched beside what may live");
    assert_eq!(
        bench.orphan_ended(attempt(1), 0),
        [
            record_verdict(attempt(1), Verdict::Orphaned, Verdict::Dead, Reason::ProvenGone),
            record_lost(attempt(1), 1, Reason::SupervisorGone),
        ]
    );
    assert_eq!(bench.view().pickups, 0, "counted when it is recorded");
    assert_eq!(
        bench.ended(attempt(1), ending(LOST)),
        [
            record_verdict(
                attempt(1),
                Verdict::Dead,
                Verdict::Ended,
                Reason::AttemptEnded { class: LOST, order: None }
            ),
            record_phase(attempt(1), Phase::BackingOff, NO_WAIT),
            ask(attempt(1), RESUMED),
        ]
    );
    assert_eq!(bench.view().pickups, 1);
    assert_eq!(bench.ended(attempt(1), ending(LOST)), [], "told again");
    assert_eq!(bench.view().pickups, 1, "and not counted again");
}

#[test]
fn survivors_hold_the_job_until_a_person_acts() {
    let mut bench = Bench::running(settings());
    bench.gone(attempt(1), Life::Alive);
    let because = Reason::Survivors { count: 2 };
    assert_eq!(bench.orphan_ended(attempt(1), 2), [record_phase(attempt(1), Phase::Held, because)]);
    assert_eq!((bench.verdict(), bench.pass(seconds(10_000))), (Verdict::Orphaned, vec![]));
    assert_eq!(
        bench.want(Want::Resume),
        [
            record_phase(attempt(1), Phase::Draining, Reason::ResumedByHand),
            end_orphan(attempt(1), Reason::ResumedByHand),
        ]
    );
    bench.orphan_ended(attempt(1), 0);
    let asked = bench.ended(attempt(1), ending(LOST));
    assert_eq!(asked.last(), Some(&ask(attempt(1), Reason::ResumedByHand)));
}

#[test]
fn an_orphan_is_left_to_a_person_where_the_policy_says_so() {
    let mut bench = Bench::running(JobSettings { orphans: Orphans::Hold, ..settings() });
    assert_eq!(
        bench.gone(attempt(1), Life::Alive),
        [
            record_verdict(attempt(1), Verdict::Alive, Verdict::Orphaned, Reason::SupervisorGone),
            record_phase(attempt(1), Phase::Held, Reason::OrphanHeld),
        ]
    );
    assert_eq!(
        bench.gone(attempt(1), Life::Gone),
        [
            record_verdict(attempt(1), Verdict::Orphaned, Verdict::Dead, Reason::ProvenGone),
            record_phase(attempt(1), Phase::Draining, Reason::ProvenGone),
            record_lost(attempt(1), 1, Reason::ProvenGone),
        ],
        "it ended by itself"
    );
}

#[test]
fn what_cannot_be_told_is_neither_ended_nor_resumed() {
    let mut bench = Bench::found(settings(), found(3, FoundState::Unattended { process: Life::Unknown }));
    assert_eq!((bench.verdict(), bench.phase()), (Verdict::Unknown, Phase::Held));
    for want in [Want::Run, Want::Resume, Want::Stop, Want::Resume] {
        assert_eq!(bench.want(want), []);
    }
    assert_eq!(bench.pass(seconds(100_000)), []);
    let because = Reason::ProvenGone;
    assert_eq!(
        bench.gone(attempt(3), Life::Gone),
        [
            record_verdict(attempt(3), Verdict::Unknown, Verdict::Dead, because),
            record_phase(attempt(3), Phase::Draining, because),
            record_lost(attempt(3), 1, because),
        ]
    );
    let asked = bench.ended(attempt(3), ending(LOST));
    assert_eq!(asked.last(), Some(&ask(attempt(3), Reason::ResumedByHand)), "what was asked for is not forgotten");
}

#[test]
fn a_resume_that_somebody_else_carries_out_is_not_carried_out_again() {
    let mut bench = Bench::found(settings(), found(3, FoundState::Unattended { process: Life::Unknown }));
    bench.want(Want::Resume);
    bench.started(attempt(4));
    bench.ended(attempt(4), ending(Class::Failed));
    let because = Reason::NotResumed { class: Class::Failed };
    assert_eq!((bench.phase(), bench.view().phase_because), (Phase::Ended, because));
}

#[test]
fn a_failed_look_is_not_a_death_and_passes_with_the_next_beat() {
    let mut bench = Bench::running(settings());
    let look = Event::LookFailed { subject: JOB, attempt: attempt(1) };
    assert_eq!(bench.tell(look), [record_verdict(attempt(1), Verdict::Alive, Verdict::Unknown, Reason::CannotTell)]);
    assert_eq!(bench.tell(look), []);
    assert_eq!(bench.pass(seconds(10_000)), []);
    let because = Reason::BeatsCome { silence: Duration::ZERO, interval: seconds(30) };
    assert_eq!(
        bench.heard(attempt(1), beat(1, 5)),
        [record_verdict(attempt(1), Verdict::Unknown, Verdict::Alive, because)]
    );
}
