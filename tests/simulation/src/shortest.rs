//! The shortest run that still fails: faults are left out as long as the same check breaks.

use crate::faults::Planned;
use crate::{Attempted, attempt_run};

/// Runs that are tried at most; each takes some milliseconds.
const RUNS_MAX: usize = 400;

/// Leaves out of a plan what its failure does not need: halves first, then smaller parts, then single faults.
pub(crate) fn shorten(seed: u64, plan: Vec<Planned>, check: &str) -> Vec<Planned> {
    let mut plan = plan;
    let mut part = plan.len().div_ceil(2).max(1);
    let mut runs = 0;
    loop {
        let mut from = 0;
        let mut shorter = false;
        while from < plan.len() && runs < RUNS_MAX {
            let mut candidate = plan.clone();
            candidate.drain(from..(from + part).min(candidate.len()));
            runs += 1;
            if fails_alike(seed, &candidate, check) {
                plan = candidate;
                shorter = true;
            } else {
                from += part;
            }
        }
        if runs >= RUNS_MAX || (part == 1 && !shorter) {
            return plan;
        }
        part = (part / 2).max(1);
    }
}

fn fails_alike(seed: u64, plan: &[Planned], check: &str) -> bool {
    let Attempted { failure, .. } = attempt_run(seed, plan.to_vec(), false);
    failure.is_some_and(|failure| failure.check == check)
}
