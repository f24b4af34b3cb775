use std::time::Duration;

use latido::jobs::clock::Deadline;

/// Longer than anything takes on a loaded machine: a test that reaches it has failed.
const DEADLINE: Duration = Duration::from_secs(120);

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, DEADLINE, || holds().then_some(()));
}

/// The same for what takes longer than that.
#[track_caller]
pub(crate) fn wait_long_until(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    wait_for(what, within, || holds().then_some(()));
}

/// Waits until there is an answer.
#[track_caller]
fn wait_for<T>(what: &str, within: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Deadline::after(within);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(!deadline.has_passed(), "{what} did not come true within {within:?}");
        deadline.rest(Duration::from_millis(10));
    }
}
