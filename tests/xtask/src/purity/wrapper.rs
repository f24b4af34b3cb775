//! The policy behind one exported function. It is built without optimisation, so that all that can be reached from
//! the four calls stays in the module.

use core::time::Duration;

use latido_policy::{Event, Moment, Policy};

/// Drives the policy through its four calls; the numbers only keep the compiler from knowing the outcome.
#[unsafe(no_mangle)]
pub extern "C" fn drive(seconds: u64) -> u64 {
    let mut policy = Policy::new();
    let now = Moment::ORIGIN.after(Duration::from_secs(seconds));
    policy.handle_event(Event::GapFound { length: Duration::from_secs(seconds) }, now);
    policy.handle_timeout(now);
    let mut actions = u64::from(policy.poll_timeout().is_some());
    while policy.poll_action().is_some() {
        actions += 1;
    }
    actions + policy.subjects().count() as u64
}
