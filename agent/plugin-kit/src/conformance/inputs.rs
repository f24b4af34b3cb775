//! What plugins are called with to see what they bear: nothing, the most that there is, and texts that mean harm.

use latido_plugin_host::{
    Attribute, Budget, Command, Entries, Field, Outcome, Output, PastAttempt, Progress, Situation, Subject,
    SubjectKind, Usage, Verdict,
};

use crate::case::VERDICTS;

/// The largest number that the package allows: a double holds it exactly.
const LARGE: u64 = (1 << 53) - 1;

/// Texts that have broken programs before.
pub(super) const HOSTILE: [&str; 14] = [
    "",
    " ",
    "'; DROP TABLE entries; --",
    "\"}]}\\u0000\\",
    "{{secret:url}} {{value:x}} {{",
    "line\nfeed\r\nand\ttab",
    "\u{1b}[31mred\u{7}",
    "\u{202e}evil\u{2066}",
    "🦀👩‍👩‍👧‍👦é\u{301}",
    "../../etc/passwd",
    "%s%n%x ${jndi:ldap://x} $(id) `id`",
    "NaN",
    "\u{fffd}\u{feff}\u{10ffff}",
    "<script>alert(1)</script>&amp;]]>",
];

/// The kinds of entries, and one of a later version.
const KINDS: [&str; 9] =
    ["beat", "transition", "phase", "attempt-started", "attempt-ended", "lease-expired", "alert", "agent", "of-later"];

/// The text by which an entry is found again wherever it was stored.
pub(crate) fn mark(sequence: u64) -> String {
    format!("mark-{sequence:06}-x")
}

/// Entries of every kind with every field, from `first` on, each with its mark.
pub(crate) fn entries(first: u64, count: usize, now: u64) -> Entries {
    let mut entries = Entries::new("conformance");
    let skipped = usize::try_from(first.saturating_sub(1)).unwrap_or(0) % KINDS.len();
    // An entry is the same in whatever batch it comes.
    for (sequence, kind) in (first..).zip(KINDS.iter().cycle().skip(skipped)).take(count) {
        let mut says = entries.add(sequence, now + sequence, kind);
        for field in Field::ALL {
            use latido_plugin_host::ValueKind as Holds;
            match field.holds() {
                Holds::Text => says.text(field, &text(field, sequence)),
                Holds::Time => says.whole(field, now),
                Holds::Whole | Holds::Real | Holds::Flag | Holds::Duration => says.real(field, 1.0),
            };
        }
    }
    entries
}

/// What a field of text holds. Words that plugins know stand where they know them.
fn text(field: Field, sequence: u64) -> String {
    let words =
        [(Field::State, "firing"), (Field::Severity, "warning"), (Field::Current, "stale"), (Field::Previous, "alive")];
    let known = words.iter().find(|(known, _)| *known == field);
    known.map_or_else(|| mark(sequence), |(_, word)| (*word).to_owned())
}

/// Entries whose every text is the same long one: as many bytes as a batch may have.
pub(super) fn heavy(bytes: usize, now: u64) -> Entries {
    let mut entries = Entries::new("conformance");
    let long = "é".repeat(bytes / 8);
    for sequence in 1..=4 {
        let mut says = entries.add(sequence, now, "agent");
        says.text(Field::What, "heavy").text(Field::Detail, &long);
    }
    entries
}

/// Entries that are as hostile as entries can be.
pub(super) fn hostile_entries(now: u64) -> Entries {
    let mut entries = Entries::new(HOSTILE.join(""));
    let numbers = [0.0, -1.0, f64::MAX, f64::MIN_POSITIVE, f64::NAN, f64::INFINITY, 9_007_199_254_740_991.0];
    let texts = HOSTILE.iter().cycle();
    for (sequence, (words, number)) in (1..).zip(texts.zip(numbers.iter().cycle())).take(28) {
        let at = if u64::is_multiple_of(sequence, 2) { LARGE } else { now };
        let mut says = entries.add(sequence, at, if u64::is_multiple_of(sequence, 3) { words } else { "alert" });
        for field in Field::ALL {
            use latido_plugin_host::ValueKind as Holds;
            match field.holds() {
                Holds::Text => says.text(field, words),
                Holds::Time | Holds::Whole | Holds::Real | Holds::Flag | Holds::Duration => says.real(field, *number),
            };
        }
    }
    entries
}

fn attributes(words: &str) -> Vec<Attribute> {
    let known = ["phase", "class", "outcome", "state", "pickups", ""];
    known.map(|key| Attribute { key: key.to_owned(), value: words.to_owned() }).to_vec()
}

/// One subject of each verdict and kind, up to so many; `words` are all that it says.
pub(crate) fn subjects(count: usize, words: &str, now: u64) -> Vec<Subject> {
    let kinds = [SubjectKind::Job, SubjectKind::Worker, SubjectKind::Check, SubjectKind::Process, SubjectKind::Other];
    let verdicts = VERDICTS.iter().map(|(_, verdict)| *verdict).cycle();
    let pairs = verdicts.zip(kinds.into_iter().cycle());
    pairs.enumerate().take(count).map(|(index, (verdict, kind))| subject(index, verdict, kind, words, now)).collect()
}

fn subject(index: usize, verdict: Verdict, kind: SubjectKind, words: &str, now: u64) -> Subject {
    let number = [0, 1, 1_000, now, LARGE].get(index % 5).copied().unwrap_or(0);
    let there = index.is_multiple_of(2);
    let fraction = [0.5, -1.0, f64::NAN, f64::INFINITY, 2.0].get(index % 5).copied();
    Subject {
        name: format!("{words}{index}"),
        kind,
        host: words.to_owned(),
        policy: words.to_owned(),
        verdict,
        since: number,
        reason: words.to_owned(),
        last_beat: there.then_some(number),
        silence: there.then_some(number),
        progress: there.then(|| Progress {
            fraction,
            done: Some(number),
            total: Some(0),
            step: Some(words.to_owned()),
            checkpoint: Some(words.to_owned()),
        }),
        progress_changed: there.then_some(number),
        usage: there.then_some(Usage { turns: Some(number), tokens: Some(LARGE), cost_usd: fraction }),
        attempt: u32::try_from(index % 3).unwrap_or(0),
        epoch: number,
        errors: number,
        attributes: attributes(words),
    }
}

/// A question about a job with so many attempts, which ended in every way there is.
pub(crate) fn situation(attempts: u32, words: &str, now: u64) -> Situation {
    let outcome = |number: u32| match number % 8 {
        0 => Outcome::Exited(1),
        1 => Outcome::Signaled(9),
        2 => Outcome::Lost(words.to_owned()),
        3 => Outcome::Stopped(words.to_owned()),
        4 => Outcome::LaunchFailed(words.to_owned()),
        5 => Outcome::OutOfMemory,
        6 => Outcome::LimitReached(words.to_owned()),
        _ => Outcome::Other(words.to_owned()),
    };
    let attempt = |number: u32| PastAttempt {
        number,
        started: now.saturating_sub(u64::from(number)),
        ended: Some(now),
        outcome: Some(outcome(number)),
        class: Some(words.to_owned()),
        progress: None,
        usage: None,
        notes: attributes(words),
        attributes: attributes(words),
    };
    Situation {
        now,
        subject: subject(0, Verdict::Dead, SubjectKind::Job, words, now),
        command: Command {
            program: if words.is_empty() { "work".to_owned() } else { words.to_owned() },
            arguments: vec![words.to_owned(); 3],
            directory: Some(words.to_owned()),
            environment: Vec::new(),
        },
        attempts: (1..=attempts).map(attempt).collect(),
        budget: Budget {
            attempts_left: Some(0),
            turns_left: Some(LARGE),
            cost_left_usd: Some(-1.0),
            time_left: Some(LARGE),
            attributes: attributes(words),
        },
        attributes: attributes(words),
    }
}

/// Output of a running attempt.
pub(crate) fn output(lines: Vec<String>) -> Output {
    Output { subject: "job".to_owned(), attempt: 1, epoch: 1, offset: LARGE, lines, attributes: Vec::new() }
}
