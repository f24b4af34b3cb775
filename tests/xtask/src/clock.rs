//! The only file of xtask that reads a clock or sleeps.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Measures from where it was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at zero.
    #[expect(clippy::disallowed_methods, reason = "xtask's clock: stage times and deadlines of the demo")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Waits a moment between two looks at something that tells nobody when it changes.
#[expect(
    clippy::disallowed_methods,
    reason = "the demo looks at other processes from outside and has no event to wait on"
)]
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Calls `look` until it answers, at most for `limit`.
///
/// # Errors
///
/// Names `what` where the limit passed without an answer; passes on what `look` failed with.
pub(crate) fn wait_for<T>(
    what: &str,
    limit: Duration,
    every: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let watch = Stopwatch::start();
    loop {
        if let Some(answer) = look()? {
            return Ok(answer);
        }
        if watch.elapsed() >= limit {
            bail!("waited {} s in vain for {what}", limit.as_secs());
        }
        pause(every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_the_answer_or_names_what_it_waited_for() {
        let mut looks = 0;
        let third = wait_for("the third look", Duration::from_secs(60), Duration::ZERO, || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        });
        assert_eq!(third.unwrap(), 3);

        let never = wait_for("a miracle", Duration::ZERO, Duration::ZERO, || Ok(None::<()>)).unwrap_err();
        assert_eq!(never.to_string(), "waited 0 s in vain for a miracle");
    }
}
