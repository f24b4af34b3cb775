//! Stages with a name, a time and a budget.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clock::Stopwatch;
use crate::say;

/// What ran so far. The first stage that fails ends the rest.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    done: Vec<Stage>,
}

#[derive(Debug)]
struct Stage {
    name: &'static str,
    budget: Duration,
    took: Duration,
}

impl Stages {
    /// Runs one stage.
    ///
    /// # Errors
    ///
    /// Names the stage that failed and when.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        budget: Duration,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        say::headline(name);
        let watch = Stopwatch::start();
        let result = work();
        let took = watch.elapsed();
        self.done.push(Stage { name, budget, took });
        result.with_context(|| format!("stage `{name}` failed after {}; nothing after it was run", clock(took)))
    }

    /// Writes a line for each stage: its time, its budget, and whether it kept to it.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("{:<28}{:>9}{:>9}\n", "stage", "time", "budget");
        let mut total = Stage { name: "in all", budget: Duration::ZERO, took: Duration::ZERO };
        for stage in &self.done {
            total.budget += stage.budget;
            total.took += stage.took;
            text.push_str(&row(stage));
        }
        text.push_str(&row(&total));
        text
    }
}

/// A budget.
pub(crate) const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

fn row(stage: &Stage) -> String {
    let mut text = format!("{:<28}{:>9}{:>9}", stage.name, clock(stage.took), clock(stage.budget));
    if stage.took > stage.budget {
        let _ = write!(text, "  OVER by {}", clock(stage.took - stage.budget));
    }
    text.push('\n');
    text
}

fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{}m{:02}s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_who_was_over_budget() {
        let stage =
            |name, budget, took| Stage { name, budget: Duration::from_secs(budget), took: Duration::from_secs(took) };
        let stages = Stages { done: vec![stage("guests", 60, 10), stage("build", 60, 95)] };
        let text = stages.table();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "guests                         10.0 s    1m00s");
        assert_eq!(lines[2], "build                           1m35s    1m00s  OVER by 35.0 s");
        assert_eq!(lines[3], "in all                          1m45s    2m00s");
    }

    #[test]
    fn a_failed_stage_is_named_and_still_in_the_table() {
        let mut stages = Stages::default();
        let error = stages.run("build", Duration::from_secs(1), || anyhow::bail!("no compiler")).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.starts_with("stage `build` failed after 0.0 s") && text.ends_with("no compiler"), "{text}");
        assert!(stages.table().contains("build"));
    }
}
