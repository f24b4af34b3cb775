//! What endings tell, however they are told.

use super::*;
use crate::{Budget, ResumeOn};

const TOO_MANY: Limit<u32> = Limit::At(3);

fn policy(first: u64, longest: u64) -> ResumePolicy {
    ResumePolicy {
        on: ResumeOn::default(),
        max_attempts: Limit::None,
        max_pickups: u32::MAX,
        backoff_first: Duration::from_secs(first),
        backoff_longest: Duration::from_secs(longest),
        max_attempts_without_progress: Limit::None,
        max_identical_deaths: TOO_MANY,
        wall_time_max: Limit::None,
        budget: Budget::default(),
        spare_busy: true,
    }
}

fn assumed(endings: u32) -> History {
    let mut history = History::default();
    assert!(history.assume(endings, 0));
    history
}

fn death(outcome: u64, checkpoint: Option<u64>, ran_for: Duration) -> Ending {
    Ending {
        class: Class::Failed,
        outcome: Fingerprint(outcome),
        checkpoint: checkpoint.map(Fingerprint),
        launch_failed: false,
        ran_for,
        is_seen: true,
        order: None,
        spent: Spent::default(),
    }
}

/// The delay without its jitter, which shortens it by less than a fifth.
fn near(actual: Duration, whole: u64) -> bool {
    let whole = Duration::from_secs(whole);
    actual <= whole && actual > whole * 4 / 5 - Duration::from_nanos(1)
}

#[test]
fn the_delay_doubles_up_to_the_longest() {
    let mut history = History::default();
    for whole in [5, 10, 20, 40, 60, 60, 60] {
        history.attempt_ended(&death(1, None, Duration::from_secs(9)));
        let delay = history.delay(&policy(5, 60), 7);
        assert!(near(delay, whole), "{delay:?} is not near {whole}s");
    }
}

#[test]
fn a_new_best_checkpoint_resets_the_delay() {
    let mut history = History::default();
    for (checkpoint, whole) in [(Some(1), 5), (Some(1), 10), (None, 20), (Some(2), 5), (Some(1), 10), (Some(2), 20)] {
        history.attempt_ended(&death(1, checkpoint, Duration::from_secs(9)));
        let delay = history.delay(&policy(5, 600), 7);
        assert!(near(delay, whole), "{delay:?} is not near {whole}s at {checkpoint:?}");
    }
}

#[test]
fn a_checkpoint_made_and_left_again_counts_for_its_attempt() {
    let mut history = assumed(3);
    history.saw(Some(Fingerprint(1)));
    history.saw(Some(Fingerprint(2)));
    history.attempt_ended(&death(1, Some(1), Duration::from_secs(9)));
    assert!(near(history.delay(&policy(5, 600), 7), 5));
}

#[test]
fn a_checkpoint_that_was_found_is_not_new() {
    let mut history = assumed(2);
    history.learn(Some(Fingerprint(1)));
    history.attempt_ended(&death(1, Some(1), Duration::from_secs(9)));
    assert!(near(history.delay(&policy(5, 600), 7), 20));
}

#[test]
fn no_backoff_means_no_delay() {
    let mut history = assumed(40);
    history.attempt_ended(&death(1, None, Duration::ZERO));
    assert_eq!(history.delay(&policy(0, 60), 7), Duration::ZERO);
}

#[test]
fn the_seed_spreads_the_delays_and_repeats_them() {
    let mut history = History::default();
    history.attempt_ended(&death(1, None, Duration::ZERO));
    let delays: Vec<_> = (0..100).map(|seed| history.delay(&policy(100, 100), seed)).collect();
    assert_eq!(delays, (0..100).map(|seed| history.delay(&policy(100, 100), seed)).collect::<Vec<_>>());
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(*most - *least > Duration::from_secs(15), "{least:?}..{most:?}");
}

#[test]
fn a_delay_without_end_does_not_overflow() {
    let mut history = assumed(u32::MAX);
    history.attempt_ended(&death(1, None, Duration::ZERO));
    let mut policy = policy(1, 1);
    policy.backoff_first = Duration::MAX;
    policy.backoff_longest = Duration::MAX;
    assert!(history.delay(&policy, 7) > Duration::MAX / 2);
}

#[test]
fn three_identical_quick_deaths_are_too_many() {
    let quick = Duration::from_millis(999);
    let mut history = History::default();
    history.attempt_ended(&death(1, None, quick));
    history.attempt_ended(&death(1, None, quick));
    assert_eq!(history.identical_deaths(TOO_MANY), None);
    history.attempt_ended(&death(1, None, quick));
    assert_eq!(history.identical_deaths(TOO_MANY), Some(3));
}

#[test]
fn another_death_a_longer_life_or_progress_breaks_the_row() {
    let quick = Duration::from_millis(10);
    for other in [death(2, None, quick), death(1, None, Duration::from_secs(1)), death(1, Some(1), quick)] {
        let mut history = History::default();
        for ending in [death(1, None, quick), death(1, None, quick), other, death(1, None, quick)] {
            history.attempt_ended(&ending);
            assert_eq!(history.identical_deaths(TOO_MANY), None, "after {other:?}");
        }
    }
}

#[test]
fn deaths_that_nobody_saw_are_not_identical() {
    let mut history = History::default();
    for _ in 0..5 {
        history.attempt_ended(&Ending { is_seen: false, ..death(1, None, Duration::ZERO) });
    }
    assert_eq!(history.identical_deaths(TOO_MANY), None);
}

#[test]
fn a_resume_by_hand_starts_over_and_remembers_checkpoints() {
    let mut history = History::default();
    for _ in 0..3 {
        history.attempt_ended(&death(1, Some(1), Duration::ZERO));
    }
    history.resumed_by_hand();
    history.attempt_ended(&death(1, Some(1), Duration::ZERO));
    assert_eq!(history.identical_deaths(TOO_MANY), None);
    history.attempt_ended(&death(1, Some(1), Duration::ZERO));
    assert!(near(history.delay(&policy(5, 600), 7), 10));
}

#[test]
fn what_is_told_again_in_its_order_makes_the_same_history() {
    let endings: Vec<_> = (1..9).map(|step| death(step % 3, (step % 4 == 0).then_some(step), Duration::ZERO)).collect();
    let mut lived = History::default();
    for ending in &endings {
        lived.saw(ending.checkpoint);
        lived.attempt_ended(ending);
    }
    let mut told = History::default();
    endings.iter().for_each(|ending| told.attempt_ended(ending));
    assert_eq!(told, lived);
    assert!(!told.assume(8, 3), "nothing is missing");
    assert_eq!((told, told.delay(&policy(5, 60), 7)), (lived, lived.delay(&policy(5, 60), 7)));
}

#[test]
fn a_resume_by_hand_gives_back_attempts_and_time_and_no_budget() {
    let spends = Ending { spent: Spent { turns: 2, ..Spent::default() }, ..death(1, None, Duration::from_secs(5)) };
    let mut history = History::after(Spent { turns: 3, ..Spent::default() });
    history.attempt_ended(&spends);
    history.attempt_ended(&spends);
    let sums = |history: &History| (history.attempts(), history.without_progress(), history.ran().as_secs());
    assert_eq!((sums(&history), history.spent().turns), ((2, 2, 10), 7));
    history.resumed_by_hand();
    assert_eq!((sums(&history), history.spent().turns), ((0, 0, 0), 7));
}

#[test]
fn a_checkpoint_from_before_a_resume_by_hand_is_no_progress_after_it() {
    let mut history = History::default();
    history.attempt_ended(&death(1, Some(1), Duration::ZERO));
    history.resumed_by_hand();
    let mut without_progress = |checkpoint| {
        history.attempt_ended(&death(1, Some(checkpoint), Duration::ZERO));
        history.without_progress()
    };
    assert_eq!([1, 2, 1].map(&mut without_progress), [1, 0, 1]);
}

#[test]
fn what_is_learnt_twice_pushes_no_other_checkpoint_out() {
    let mut history = History::default();
    (0..16).for_each(|checkpoint| history.learn(Some(Fingerprint(checkpoint))));
    (0..16).for_each(|_| history.learn(Some(Fingerprint(15))));
    history.learn(None);
    history.attempt_ended(&death(1, Some(0), Duration::ZERO));
    assert_eq!(history.without_progress(), 1);
}

#[test]
fn what_was_known_of_progress_counts_where_files_tell_less() {
    let told_again = |told_before: usize, by_hand: bool, known: Fruitless| {
        let mut history = History::default();
        let endings = [2, 1, 1].map(|checkpoint| death(1, Some(checkpoint), Duration::ZERO));
        endings[..told_before].iter().for_each(|ending| history.attempt_ended(ending));
        if by_hand {
            history.resumed_by_hand();
        }
        history.remember(known);
        endings[told_before..].iter().for_each(|ending| history.attempt_ended(ending));
        history.without_progress()
    };
    let mut heard = History::default();
    heard.saw(Some(Fingerprint(1)));
    for checkpoint in [Some(2), Some(1), Some(1)] {
        heard.attempt_ended(&death(1, checkpoint, Duration::ZERO));
    }
    assert_eq!(heard.fruitless_known(), Fruitless { endings: 3, in_a_row: 2 });
    let known = heard.fruitless_known();
    assert_eq!([2, 3].map(|before| told_again(before, false, Fruitless::default())), [1, 1], "the files alone");
    assert_eq!([2, 3].map(|before| told_again(before, false, known)), [2, 2]);
    assert_eq!(told_again(3, true, known), 0, "a person began anew");
    assert_eq!(told_again(3, false, Fruitless { endings: 4, in_a_row: 3 }), 1, "of an ending that was not told");
}
