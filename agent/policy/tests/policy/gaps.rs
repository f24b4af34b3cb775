//! What the simulator and the mutants found that no other test holds.

use latido_policy::{Class, Event, FoundState, LaunchFailure, Phase, Proposal};

use crate::harness::{Bench, JOB, attempt, ending, found, launch, seconds, settings, with_epoch};

/// A job whose attempt 2 was ordered and refused.
fn refused(failure: LaunchFailure) -> Bench {
    let mut bench = Bench::found(settings(), found(1, FoundState::Ended(ending(Class::Lost))));
    bench.answered(attempt(1), Proposal::Launch);
    bench.tell(Event::LaunchRefused { subject: JOB, attempt: attempt(2), failure });
    bench
}

/// A supervisor that fails before it reports leaves a numbered attempt behind, so that the number is taken and nobody
/// else has started anything.
#[test]
fn a_launch_that_was_superseded_by_nobody_is_ordered_again() {
    let mut bench = refused(LaunchFailure::Superseded);
    assert_eq!(bench.phase(), Phase::BackingOff);
    bench.tell(Event::AttemptEnded { subject: JOB, attempt: with_epoch(2, 2), ending: ending(Class::Lost) });
    bench.answered(with_epoch(2, 2), Proposal::Launch);
    assert_eq!((bench.phase(), bench.view().attempt), (Phase::Launching, with_epoch(3, 3)));
}

/// The pause is over for the agent, and the file may still speak of it.
#[test]
fn a_launch_that_is_not_wanted_at_the_moment_is_ordered_again() {
    let mut bench = refused(LaunchFailure::NotWanted);
    assert_eq!(bench.phase(), Phase::BackingOff);
    let ordered = bench.pass(seconds(2));
    let again = with_epoch(2, 3);
    assert!(
        ordered.contains(&launch(again, latido_policy::Reason::Resumed { after: Class::Lost, order: None })),
        "{ordered:?}"
    );
}
