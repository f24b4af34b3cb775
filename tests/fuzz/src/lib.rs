//! Fuzzing on stable Rust: inputs are made out of a corpus by mutation, and each is given to one check.
//!
//! A check is a test of the crate whose parser it tries, named `fuzz_…`, so that it reaches what is private there. It
//! panics where a property does not hold, and answers in a few words what it saw. Inputs that show something else are kept and
//! mutated further, which leads into a parser step by step, as coverage does elsewhere, and needs no instrumented build.
//! The folder `corpus/` beside this crate has a folder for each target: that is the list of targets.
//!
//! An ordinary test run tries [`SHORT_COUNT`] inputs of a fixed seed for each target; `cargo xtask fuzz` is the long form.

mod clock;
mod memory;
mod mutate;
mod smallest;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use clock::Stopwatch;
use mutate::Mutator;

/// Inputs for each target in an ordinary test run: all targets together take a few seconds.
pub const SHORT_COUNT: u64 = 2_000;

/// Seed of the ordinary test run: what it finds, everybody finds.
const SHORT_SEED: u64 = 4;

/// No input keeps a parser busy so long, on the slowest machine under load: it does not end.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// Memory that any input may take, and how much more for each byte of it: a list of one-digit numbers becomes a value of
/// 32 bytes for every two of the text, in a list that doubles when it is full.
const MEMORY_MAX: usize = 1024 * 1024;
const MEMORY_PER_BYTE_MAX: usize = 128;

/// Inputs that are kept because they showed something else; then those that were kept first go on being mutated.
const KEPT_MAX: usize = 4_096;

/// Where a run ends, and from what it is made.
#[derive(Clone, Copy, Debug)]
struct Effort {
    seed: u64,
    count_max: u64,
    run_for: Option<Duration>,
}

impl Effort {
    /// What the environment asks for: `LATIDO_FUZZ_SECONDS` is set by `cargo xtask fuzz`, `LATIDO_FUZZ_SEED` too.
    fn asked_for() -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let run_for = number("LATIDO_FUZZ_SECONDS").map(Duration::from_secs);
        let count_max = if run_for.is_some() { u64::MAX } else { SHORT_COUNT };
        Self { seed: number("LATIDO_FUZZ_SEED").unwrap_or(SHORT_SEED), count_max, run_for }
    }
}

/// What was tried.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    count: u64,
    kept_count: usize,
}

/// A property that does not hold for an input.
#[derive(Debug)]
struct Finding {
    input: Vec<u8>,
    what: String,
}

#[expect(clippy::print_stdout, reason = "shown by the runner with the failed test, and by the long form")]
fn say(what: &str) {
    println!("{what}");
}

/// Gives mutations of a target's corpus to its check. `words` are pieces that mean something to the parser.
///
/// The check answers what it saw, without anything that every input has differently.
///
/// # Panics
/// Where the check does, where it takes too much memory, or does not end: with the smallest input that was found to do so,
/// and the file that holds it.
pub fn fuzz(target: &str, words: &[&str], check: impl Fn(&[u8]) -> String + Send + Sync + 'static) {
    quiet_panics();
    let effort = Effort::asked_for();
    say(&format!("fuzz target {target}: seed {}", effort.seed));
    let corpus = corpus(target);
    let mutator = Mutator::new(effort.seed, words, corpus.clone());
    let current = Arc::new(Mutex::new(Vec::new()));
    let (done, result) = channel();
    let worker = {
        let current = Arc::clone(&current);
        move || {
            let _ = done.send(work(&check, mutator, corpus, effort, &current));
        }
    };
    let worker = std::thread::spawn(worker);
    let mut last = Vec::new();
    let result = loop {
        match result.recv_timeout(ENDS_WITHIN) {
            Ok(result) => break result,
            Err(RecvTimeoutError::Timeout) => {
                let input = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if input == last && !input.is_empty() {
                    break Err(Finding { input: input[8..].to_vec(), what: "it does not end".to_owned() });
                }
                last = input;
            }
            Err(RecvTimeoutError::Disconnected) => panic!("the engine itself failed: {:?}", worker.join().err()),
        }
    };
    match result {
        Ok(tried) => {
            say(&format!("fuzz target {target}: {} inputs, {} kept, nothing found", tried.count, tried.kept_count));
        }
        Err(finding) => report(target, effort, &finding),
    }
}

/// Tries inputs until the effort is spent. `current` holds the number and the bytes of what is being tried.
fn work(
    check: &dyn Fn(&[u8]) -> String,
    mut mutator: Mutator,
    corpus: Vec<Vec<u8>>,
    effort: Effort,
    current: &Mutex<Vec<u8>>,
) -> Result<Tried, Finding> {
    QUIET.set(true);
    let began = Stopwatch::start();
    let mut tried = Tried::default();
    let mut seen = BTreeSet::new();
    let mut first = corpus.into_iter();
    while tried.count < effort.count_max && effort.run_for.is_none_or(|run_for| began.elapsed() < run_for) {
        let input = first.next().unwrap_or_else(|| mutator.make());
        let mut shown = tried.count.to_le_bytes().to_vec();
        shown.extend_from_slice(&input);
        *current.lock().unwrap_or_else(PoisonError::into_inner) = shown;
        tried.count += 1;
        match try_one(check, &input) {
            Ok(saw) => {
                if seen.len() < KEPT_MAX && seen.insert(saw) {
                    mutator.keep(input);
                }
            }
            Err(what) => {
                let input = smallest::smallest(input, |smaller| try_one(check, smaller).is_err());
                let what = try_one(check, &input).err().unwrap_or(what);
                return Err(Finding { input, what });
            }
        }
    }
    tried.kept_count = seen.len();
    Ok(tried)
}

/// What the check saw, or why a property does not hold.
fn try_one(check: &dyn Fn(&[u8]) -> String, input: &[u8]) -> Result<String, String> {
    let before = memory::begin();
    let saw = catch_unwind(AssertUnwindSafe(|| check(input)));
    let taken = memory::highest().saturating_sub(before);
    let saw = saw.map_err(|panic| match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).to_owned(),
        (None, None) => "it panicked".to_owned(),
    })?;
    let allowed = MEMORY_MAX + MEMORY_PER_BYTE_MAX * input.len();
    if taken > allowed {
        return Err(format!("it takes more than {allowed} bytes of memory for {} bytes of input", input.len()));
    }
    Ok(saw)
}

fn report(target: &str, effort: Effort, finding: &Finding) -> ! {
    let folder = root().join("target/fuzz");
    let path = folder.join(format!("{target}-{:016x}", effort.seed));
    let saved = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, &finding.input));
    let place = saved.map_or_else(|error| format!("not saved: {error}"), |()| format!("saved as {}", path.display()));
    panic!(
        "fuzz target {target}, seed {}: {}\n  smallest input ({} bytes, {place}): {}",
        effort.seed,
        finding.what,
        finding.input.len(),
        finding.input[..finding.input.len().min(400)].escape_ascii()
    );
}

/// The committed inputs of a target, by their files' names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths: BTreeSet<PathBuf> = entries.map(|entry| entry.expect("a folder is listed").path()).collect();
    assert!(!paths.is_empty(), "{} has no example", folder.display());
    paths.iter().map(|path| std::fs::read(path).expect("an example is read")).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(".")).to_owned()
}

thread_local! {
    /// Panics of this thread are caught and judged, and print nothing.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
}

/// An error with its causes, joined, in a form that is the same for all inputs that meet it: without what was quoted of
/// the input, and without numbers.
pub fn kind_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a text does not fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    let mut quoted = false;
    let mut kind = String::new();
    for c in text.chars() {
        if c == '`' || c == '"' {
            quoted = !quoted;
        } else if !quoted && !c.is_ascii_digit() {
            kind.push(c);
        }
        if kind.len() > 120 {
            break;
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(check: impl Fn(&[u8]) -> String + Send + Sync + 'static) -> String {
        let caught = catch_unwind(AssertUnwindSafe(|| fuzz("own", &["<a>", "<b>"], check)));
        *caught.expect_err("the fault is found").downcast::<String>().expect("a message")
    }

    #[test]
    fn a_fault_behind_two_steps_is_found_and_made_small() {
        let has = |input: &[u8], word: &[u8]| input.windows(word.len()).any(|piece| piece == word);
        let message = found(move |input| {
            assert!(!(has(input, b"<a>") && has(input, b"<b>")), "both");
            format!("{} {}", has(input, b"<a>"), has(input, b"<b>"))
        });
        assert!(message.contains("seed 4: both") && message.contains("smallest input (6 bytes, saved as"), "{message}");
    }

    #[test]
    fn an_input_that_takes_much_memory_is_found() {
        let message = found(|input| {
            let taken = if input.contains(&b'x') { vec![1_u8; 64 * MEMORY_MAX] } else { Vec::new() };
            format!("{}", taken.is_empty())
        });
        assert!(message.contains("bytes of memory for 1 bytes of input"), "{message}");
    }
}
