//! The shortest story that still fails: whatever its failure does not need is left out.

/// Runs that are tried at most; each takes some milliseconds.
const RUNS_MAX: usize = 400;

/// Leaves out of a story what its failure does not need: halves first, then smaller parts, then single faults.
pub(crate) fn shorten<T: Clone>(story: Vec<T>, fails: impl Fn(&[T]) -> bool) -> Vec<T> {
    let mut story = story;
    let mut part = story.len().div_ceil(2).max(1);
    let mut runs = 0;
    loop {
        let (mut from, mut shorter) = (0, false);
        while from < story.len() && runs < RUNS_MAX {
            let mut candidate = story.clone();
            candidate.drain(from..(from + part).min(candidate.len()));
            runs += 1;
            if fails(&candidate) {
                (story, shorter) = (candidate, true);
            } else {
                from += part;
            }
        }
        if runs >= RUNS_MAX || (part == 1 && !shorter) {
            return story;
        }
        part = (part / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_failure_needs_is_left() {
        let fails = |story: &[u32]| story.contains(&3) && story.contains(&17);
        assert_eq!(shorten((0..40).collect(), fails), [3, 17]);
    }

    #[test]
    fn a_story_that_fails_without_anything_is_empty() {
        assert_eq!(shorten(vec![1, 2, 3], |_| true), [0; 0]);
    }
}
