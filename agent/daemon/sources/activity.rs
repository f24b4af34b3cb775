//! What attempts do, whether they say so or not: CPU time and I/O over all their processes, and what the first one waits in.

use std::collections::BTreeMap;
use std::time::Duration;

use latido_driver::{AttemptName, Fact};
use latido_process::activity::{Activity, Doing, Roots, Sampler};
use latido_protocol::files::Identity;

use super::jobs::Jobs;
use crate::clock;

/// One pass over `/proc` for all attempts costs under a tenth of a second where a thousand run: less than a hundredth of a CPU.
const SAMPLE_EVERY: Duration = Duration::from_secs(10);

/// Work that uses less than this share of a CPU between two samples is idle: a beat now and then is no work.
const BUSY_SHARE: u32 = 100;

/// So many bytes read and written between two samples are work; a beat and a line of the log are less.
const BUSY_BYTES: u64 = 64 * 1024;

/// An attempt that runs, by the processes that its others descend from.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) attempt: AttemptName,
    pub(crate) process: Identity,
    pub(crate) supervisor: Option<Identity>,
}

/// What was seen of an attempt last.
struct Seen {
    activity: Activity,
    sampled_at: Duration,
    moved_at: Duration,
    was_told_idle: bool,
}

/// Samples all attempts for ever.
pub(crate) async fn sample_now_and_then(jobs: Jobs) {
    let Ok(mut sampler) = Sampler::new() else {
        tracing::warn!("/proc cannot be opened: nobody is seen to be busy but by output");
        return std::future::pending().await;
    };
    let mut seen = BTreeMap::new();
    loop {
        tokio::time::sleep(SAMPLE_EVERY).await;
        let running = jobs.running();
        let sampled = tokio::task::spawn_blocking(move || {
            let activities = sample(&mut sampler, &running);
            (sampler, running, activities)
        });
        let Ok((returned, running, activities)) = sampled.await else { return };
        sampler = returned;
        match activities {
            Ok(activities) => {
                for fact in facts(&mut seen, running, activities, clock::reading().monotonic) {
                    if jobs.driver().tell(fact).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "cannot look at what attempts do"),
        }
    }
}

fn sample(sampler: &mut Sampler, running: &[Running]) -> std::io::Result<Vec<Activity>> {
    let roots = running.iter().map(|one| Roots { process: &one.process, supervisor: one.supervisor.as_ref() });
    sampler.sample(&roots.collect::<Vec<_>>())
}

/// What is to be told of a pass. Who is busy is told once, and then when that is over.
fn facts(
    seen: &mut BTreeMap<AttemptName, Seen>,
    running: Vec<Running>,
    activities: Vec<Activity>,
    now: Duration,
) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut still = BTreeMap::new();
    for (Running { attempt, .. }, activity) in running.into_iter().zip(activities) {
        let before = seen.remove(&attempt);
        let moved = before.as_ref().is_none_or(|before| is_busy(&before.activity, &activity, now - before.sampled_at));
        let moved_at = before.as_ref().filter(|_| !moved).map_or(now, |before| before.moved_at);
        let idle = now.saturating_sub(moved_at);
        let was_told_idle = before.is_none_or(|before| before.was_told_idle);
        if was_told_idle || !idle.is_zero() {
            let doing = activity.first.as_ref().map(words);
            facts.push(Fact::ActivitySeen { attempt: attempt.clone(), idle, doing });
        }
        still.insert(attempt, Seen { activity, sampled_at: now, moved_at, was_told_idle: !idle.is_zero() });
    }
    *seen = still;
    facts
}

fn is_busy(before: &Activity, after: &Activity, between: Duration) -> bool {
    let bytes = |one: &Activity| one.read_chars.saturating_add(one.written_chars);
    let disk = |one: &Activity| one.read_bytes.saturating_add(one.written_bytes);
    after.cpu.saturating_sub(before.cpu) * BUSY_SHARE >= between
        || bytes(after).saturating_sub(bytes(before)) >= BUSY_BYTES
        || disk(after).saturating_sub(disk(before)) >= BUSY_BYTES
}

/// What a process is doing, as a sentence goes on.
fn words(doing: &Doing) -> String {
    let place = doing.wchan.as_ref().filter(|place| *place != "0").map(|place| format!(" in {place}"));
    let call = doing.syscall.map(|number| format!(" (system call {number})"));
    let does = match doing.state {
        'R' => "runs",
        'S' => "sleeps",
        'D' => "waits for a disk or a device",
        'T' => "is stopped by a signal",
        't' => "is stopped by a debugger",
        'I' => "is idle",
        _ => "is in an unusual state",
    };
    format!("its first process {does}{}{}", place.unwrap_or_default(), call.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Vec<Running> {
        let process = latido_process::identity::own().unwrap();
        let attempt = AttemptName { job: "a".parse().unwrap(), number: 1, epoch: 1 };
        vec![Running { attempt, process, supervisor: None }]
    }

    fn worked(milliseconds: u64) -> Vec<Activity> {
        let first = Some(Doing { state: 'S', wchan: Some("pipe_read".to_owned()), syscall: Some(0) });
        vec![Activity { cpu: Duration::from_millis(milliseconds), first, ..Activity::default() }]
    }

    #[test]
    fn who_is_busy_is_told_once_and_who_is_idle_with_what_it_waits_in() {
        let mut seen = BTreeMap::new();
        let mut told = |cpu, at| {
            let facts = facts(&mut seen, running(), worked(cpu), Duration::from_secs(at));
            let mut list = Vec::new();
            for fact in facts {
                let Fact::ActivitySeen { idle, doing, .. } = fact else { panic!("{fact:?}") };
                list.push((idle.as_secs(), doing.unwrap_or_default()));
            }
            list
        };
        let waits = "its first process sleeps in pipe_read (system call 0)".to_owned();
        assert_eq!(told(0, 100), [(0, waits.clone())], "a first look");
        assert_eq!(told(500, 110), []);
        assert_eq!(told(510, 120), [(10, waits.clone())], "a hundredth of a second in ten is no work");
        assert_eq!(told(520, 130), [(20, waits.clone())]);
        assert_eq!(told(5_000, 140), [(0, waits)], "it works again");
        assert_eq!(told(9_000, 150), []);
    }

    #[test]
    fn a_process_without_a_place_is_told_by_its_state() {
        let doing =
            |state, wchan: Option<&str>| words(&Doing { state, wchan: wchan.map(str::to_owned), syscall: None });
        assert_eq!(doing('R', Some("0")), "its first process runs");
        assert_eq!(doing('D', None), "its first process waits for a disk or a device");
    }
}
