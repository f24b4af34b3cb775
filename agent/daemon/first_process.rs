//! The agent as the first process of a pid namespace, as in a container.

use tokio::signal::unix::Signal;

/// The first process of a pid namespace, as in a container: whatever loses its parent becomes its child, and with its end the
/// kernel kills all others.
pub(crate) fn is_first_process() -> bool {
    std::process::id() == 1
}

/// What is said of jobs that nothing happens to.
pub(crate) const RUN_ON: &str = "jobs run on";

/// What becomes of jobs when the agent ends.
pub(crate) fn of_jobs() -> &'static str {
    if is_first_process() {
        "and with it, since it is the first process here, the kernel ends all jobs"
    } else {
        RUN_ON
    }
}

/// Leaves no zombie of what nobody else waits for. Those who wait for a supervisor see its end by a pidfd, whoever collects it.
pub(crate) async fn collect_what_comes(mut ended: Signal) {
    loop {
        latido_process::start::collect_all();
        if ended.recv().await.is_none() {
            return;
        }
    }
}
