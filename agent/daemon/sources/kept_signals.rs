//! Signals of checks that came while no agent ran: told in their order, once each, and then removed.

use std::collections::BTreeMap;
use std::time::Duration;

use latido_protocol::layout::StateDir;
use latido_protocol::{KeptSignal, SubjectName};

use super::watched;
use crate::driver_thread::DriverHandle;
use crate::kept_signals as files;

/// Who found no agent keeps a signal although one has just started: it is found by the next look.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Takes in what is kept, for ever.
pub(crate) async fn take_in_now_and_then(state: StateDir, driver: DriverHandle) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        take_in(&state, &driver).await;
    }
}

/// Takes in what is kept. It is removed when the store has it; what a crash leaves is known by its id.
pub(crate) async fn take_in(state: &StateDir, driver: &DriverHandle) {
    let folder = state.clone();
    let kept = match tokio::task::spawn_blocking(move || files::kept(&folder)).await {
        Ok(Ok(kept)) => kept,
        Ok(Err(error)) => return tracing::error!("cannot {}", latido_protocol::chain(&error)),
        Err(_) => return,
    };
    let Some(last) = kept.last().cloned() else { return };
    let Ok(fresh) = driver.ask(move |driver| fresh(kept, |check| driver.last_kept_signal(check))).await else { return };
    for signal in fresh {
        let check = signal.check.clone();
        if let Err(message) = watched::kept_signal(driver, signal).await {
            tracing::warn!(%check, "cannot {message}; a signal that was kept for it is dropped");
        }
    }
    if driver.ask(|driver| driver.is_written()).await.unwrap_or(false) {
        let folder = state.clone();
        let removed = tokio::task::spawn_blocking(move || files::remove(&folder, &last)).await;
        if let Ok(Err(error)) = removed {
            tracing::error!("cannot {}", latido_protocol::chain(&error));
        }
    }
}

/// Those that come after the last of the same check that was taken in.
fn fresh(kept: Vec<KeptSignal>, last: impl Fn(&SubjectName) -> Option<String>) -> Vec<KeptSignal> {
    let mut known: BTreeMap<SubjectName, usize> = BTreeMap::new();
    for (index, signal) in kept.iter().enumerate() {
        if last(&signal.check).as_ref() == Some(&signal.id) {
            known.insert(signal.check.clone(), index);
        }
    }
    let is_fresh = |(index, signal): &(usize, KeptSignal)| known.get(&signal.check).is_none_or(|known| index > known);
    kept.into_iter().enumerate().filter(is_fresh).map(|(_, signal)| signal).collect()
}

#[cfg(test)]
mod tests {
    use latido_protocol::WallTime;
    use latido_protocol::control::CheckSignal;

    use super::*;

    #[test]
    fn what_was_taken_in_of_a_check_is_not_taken_in_twice() {
        let signal = |id: &str, check: &str| KeptSignal {
            id: id.to_owned(),
            at: WallTime::from_millis(1),
            check: check.parse().unwrap(),
            signal: CheckSignal::Success,
            run_id: None,
            state: None,
        };
        let kept = vec![signal("1", "a"), signal("2", "b"), signal("3", "a"), signal("4", "a")];
        let ids = |last: &'static str| -> Vec<String> {
            let last = |check: &SubjectName| (check.as_str() == "a").then(|| last.to_owned());
            fresh(kept.clone(), last).into_iter().map(|signal| signal.id).collect()
        };
        assert_eq!(ids("3"), ["2", "4"]);
        assert_eq!(ids("4"), ["2"]);
        assert_eq!(ids("dropped long ago"), ["1", "2", "3", "4"]);
    }
}
