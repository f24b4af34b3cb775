//! What plugins log is bounded, in one call and over time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::limits::now;
use crate::support::{World, beat, misbehaving, write};

/// Gathers what is logged, as text.
#[derive(Clone, Default)]
struct Gathered(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Gathered {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What one plugin logs in so many calls, where its instance is replaced after so many.
async fn logged(what: &str, calls: u64, calls_max: u64) -> String {
    let gathered = Gathered::default();
    let writer = gathered.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let world = World::new();
    let mut spec = misbehaving("write", what);
    (spec.limits.cpu, spec.limits.wall) = (Duration::from_secs(60), Duration::from_secs(60));
    spec.limits.calls = calls_max;
    let mut sink = world.host.load_sink(spec).await.unwrap();
    for number in 1..=calls {
        assert_eq!(write(&mut sink, &beat(number)).await, Ok(number));
    }
    sink.flush().await.unwrap();
    let log = gathered.0.lock().unwrap().clone();
    String::from_utf8(log).unwrap()
}

fn lines(log: &str) -> usize {
    log.lines().filter(|line| line.contains("line ")).count()
}

#[tokio::test(flavor = "current_thread")]
async fn a_flood_in_the_log_is_cut_counted_and_cannot_forge_lines() {
    let log = logged("flood-log", 1, 10_000).await;
    let lines = lines(&log);
    assert!((1..=100).contains(&lines), "{lines} lines");
    assert!(log.len() < 128 << 10, "{} bytes", log.len());
    assert!(!log.lines().any(|line| line.starts_with("FORGED")) && !log.contains('\u{1b}'));
    assert!(log.contains(&format!("dropped={}", 100_000 - lines)), "{}", &log[log.len().saturating_sub(500)..]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_plugin_that_always_talks_is_not_heard_more_often_through_new_instances() {
    let began = now();
    let log = logged("chatter", 100, 1).await;
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    assert!((500..=1_000 + 100 * seconds).contains(&lines(&log)), "{} lines in {seconds} s", lines(&log));
}
