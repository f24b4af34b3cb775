//! Mutated files and messages: each is refused with its cause, or read, written and read again as the same.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic, also in the functions it calls")]

use std::error::Error;
use std::fmt::{Debug, Display};
use std::path::Path;
use std::str::FromStr;

use latido_fuzz::{fuzz, kind_of};
use latido_protocol::disk::{self, ReadError, WriteError};
use latido_protocol::files::{
    Bound, Busy, End, Heartbeat, JobFile, LedgerLine, Money, OnEndRecord, Start, Status, Wanted,
};
use latido_protocol::notify::{Notification, STATUS_MAX};
use latido_protocol::registry::TargetName;
use latido_protocol::{
    CountLimit, KeptSignal, Limit, Line, Progress, Span, SubjectName, WallTime, attempt, control, journal,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Pieces of the JSON formats.
const WORDS: &[&str] = &[
    "null",
    "true",
    "\"none\"",
    "\"version\":",
    "\"type\":",
    "\"\"",
    "{}",
    "[]",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"9999-12-31T23:59:59.999Z\"",
    "\"1969-12-31T23:59:59Z\"",
    "\"2016-12-31T23:59:60Z\"",
    "\"unlimited\"",
    "\"progress\":{\"fraction\":0.7}",
    "\u{2028}",
    "0.1234567890123456789",
];

/// In memory where there is such a place: a disk would be waited for at every replacement.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// What a refusal says: the file's name, and a cause.
fn refused(error: &ReadError, path: &Path) -> String {
    let (text, name) = (error.to_string(), path.to_string_lossy());
    assert!(text.contains(&*name), "it does not name the file: {text}");
    let has_cause = error.source().map_or_else(|| text.contains("it "), |cause| !cause.to_string().is_empty());
    assert!(has_cause, "it has no cause: {text}");
    kind_of(error).replace(&*name, "")
}

/// Reads a file as one type; what is read is written, and read again.
fn whole<T: Serialize + DeserializeOwned + PartialEq + Debug>(path: &Path) -> String {
    let read: T = match disk::read(path) {
        Ok(read) => read.expect("the file is there"),
        Err(error) => return refused(&error, path),
    };
    let again = path.with_extension("again");
    disk::replace_quick(&again, &read).expect("what was read is written");
    let once_more: Option<T> = disk::read(&again).expect("what was written is read");
    assert_eq!(once_more, Some(read), "it is read as another");
    "read".to_owned()
}

/// Reads a message as one type; what is read is written, and read again.
fn message<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> String {
    let read: T = match serde_json::from_slice(bytes) {
        Ok(read) => read,
        Err(error) => return kind_of(&error),
    };
    let written = serde_json::to_vec(&read).expect("what was read is written");
    assert!(!written.contains(&b'\n'), "a message is one line");
    assert_eq!(serde_json::from_slice::<T>(&written).expect("what was written is read"), read, "it is read as another");
    "read".to_owned()
}

#[test]
fn fuzz_attempt_files() {
    let folder = folder();
    fuzz("attempt-files", WORDS, move |bytes| {
        let path = folder.path().join("file.json");
        std::fs::write(&path, bytes).unwrap();
        let types = [
            whole::<JobFile>,
            whole::<Wanted>,
            whole::<Busy>,
            whole::<Start>,
            whole::<Status>,
            whole::<End>,
            whole::<OnEndRecord>,
        ];
        types.map(|read| read(&path)).join("|")
    });
}

/// All records of a file, and which of its lines are damaged.
fn records<T: DeserializeOwned>(path: &Path) -> disk::Lines<T> {
    disk::read_lines(path).expect("damage is no error")
}

/// The records of one type, written and read again.
fn records_again<T: Serialize + DeserializeOwned + PartialEq + Debug>(path: &Path) -> usize {
    let lines = records::<T>(path);
    let again = path.with_extension("again");
    let _ = std::fs::remove_file(&again);
    lines.records.iter().for_each(|record| disk::append_line(&again, record, false).expect("a line is appended"));
    assert_eq!(records::<T>(&again).records, lines.records, "a line is read as another");
    assert_eq!(lines.records.len() + lines.damaged.len(), line_count(path), "a line is a record or damage");
    lines.records.len().min(3)
}

fn line_count(path: &Path) -> usize {
    let lines = std::fs::read(path).unwrap();
    lines.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count()
}

#[test]
fn fuzz_record_lines() {
    let folder = folder();
    fuzz("record-lines", WORDS, move |bytes| {
        let path = folder.path().join("lines.jsonl");
        std::fs::write(&path, bytes).unwrap();
        let counts =
            [records_again::<LedgerLine>(&path), records_again::<Heartbeat>(&path), records_again::<KeptSignal>(&path)];

        let mut expected = records::<Value>(&path);
        expected.records.push(json!({"added": 1}));
        disk::append_line(&path, &json!({"added": 1}), false).expect("a line is appended");
        let after = records::<Value>(&path);
        assert_eq!(after, expected, "what was there stays, and what is appended stands alone");

        let length = std::fs::metadata(&path).unwrap().len();
        disk::keep_newest(&path, length / 2).expect("the newest are kept");
        assert!(std::fs::metadata(&path).unwrap().len() <= length / 2, "it keeps to the bound");
        assert!(after.records.ends_with(&records::<Value>(&path).records), "the newest are kept as they were");
        format!("{counts:?} {}", after.damaged.len().min(3))
    });
}

#[test]
fn fuzz_replaced_file() {
    let folder = folder();
    let content = |text: &str| json!({"version": 1, "text": text});
    fuzz("replaced-file", WORDS, move |bytes| {
        let path = folder.path().join("status.json");
        let read = || disk::read::<Value>(&path).expect("it is whole").expect("it is there");
        let (old, new) = (content(&String::from_utf8_lossy(bytes)), content("new"));
        disk::replace_quick(&path, &old).unwrap();
        // What a crash leaves beside it, whole or torn, is nobody's content.
        std::fs::write(folder.path().join(".status.json.1.0.tmp"), bytes).unwrap();
        assert!(matches!(disk::create(&path, &new), Err(WriteError::Exists { .. })), "it is made once");
        assert_eq!(read(), old, "the old content is whole");
        let whole = std::fs::read(&path).unwrap();
        disk::replace_quick(&path, &new).unwrap();
        assert_eq!(read(), new, "the new content is whole");

        // A torn file is never taken for one that was written.
        let torn = bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>() % whole.len();
        std::fs::write(&path, &whole[..torn]).unwrap();
        match disk::read::<Value>(&path) {
            // The line's end is missing, and nothing else.
            Ok(read) => assert_eq!((read, torn), (Some(old), whole.len() - 1)),
            Err(error) => return refused(&error, &path),
        }
        "read".to_owned()
    });
}

#[test]
fn fuzz_attempt_protocol() {
    fuzz("attempt-protocol", WORDS, |bytes| {
        let types = [message::<attempt::Request>, message::<attempt::Answer>, message::<attempt::Report>];
        types.map(|read| read(bytes)).join("|")
    });
}

#[test]
fn fuzz_agent_protocol() {
    fuzz("agent-protocol", WORDS, |bytes| {
        let types = [message::<control::Envelope>, message::<control::Answer>, message::<journal::Entry>];
        types.map(|read| read(bytes)).join("|")
    });
}

#[test]
fn fuzz_notify() {
    let keys = "READY=1 STOPPING=1 RELOADING=1 BARRIER=1 WATCHDOG=1 WATCHDOG=trigger STATUS= EXTEND_TIMEOUT_USEC= ERRNO= \
        EXIT_STATUS= X_LATIDO_EPOCH= X_LATIDO_PROGRESS= X_LATIDO_STEP= X_LATIDO_CHECKPOINT= X_LATIDO_TURNS= \
        X_LATIDO_TOKENS= X_LATIDO_MONEY= 41% 3/8 inf NaN";
    let keys: Vec<&str> = keys.split(' ').chain(["\n"]).collect();
    fuzz("notify", &keys, |bytes| {
        let read = Notification::parse(bytes);
        read.progress.check().expect("texts are bounded");
        assert!(read.status.as_ref().is_none_or(|status| status.len() <= STATUS_MAX), "the status is bounded");
        let fractions = [read.progress.fraction, read.hint.as_ref().and_then(|hint| hint.fraction)];
        assert!(fractions.iter().flatten().all(|fraction| (0.0..=1.0).contains(fraction)), "{fractions:?}");
        let more = [bytes, b"\nX_OTHER=1\nno pair"].concat();
        assert_eq!(Notification::parse(&more), read, "what is not known changes nothing");
        let twice = Notification::parse(&[bytes, b"\n", bytes].concat());
        assert_eq!(twice, Notification { unusable: 2 * read.unusable, ..read.clone() }, "twice is once");
        let pairs = format!("{read:?}").matches("Some(").count();
        format!("{pairs} {} {} {}", read.unusable.min(3), read.ready, read.is_beat())
    });
}

/// Reads a text that people write; what is shown of it is read as the same.
fn shown<T: FromStr<Err: Error + 'static> + Display + PartialEq + Debug>(text: &str) -> Result<T, String> {
    let read: T = text.parse().map_err(|error: T::Err| kind_of(&error))?;
    let shown = read.to_string();
    assert_eq!(shown.parse::<T>().ok().as_ref(), Some(&read), "{text:?} is shown as {shown:?}");
    Ok(read)
}

/// What is kept of a result: that there was none, or why.
fn kind<T>(read: &Result<T, String>) -> String {
    read.as_ref().map_or_else(Clone::clone, |_| "read".to_owned())
}

#[test]
fn fuzz_names() {
    fuzz("names", &["..", "/", "-", "é", "\0", "\u{202e}"], |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let (name, line, target) = (shown::<SubjectName>(&text), shown::<Line>(&text), shown::<TargetName>(&text));
        if let Ok(name) = &name {
            let inside = Path::new("x").join(name.as_str());
            assert_eq!((inside.parent(), inside.components().count()), (Some(Path::new("x")), 2), "{name} is a path");
        }
        let suggested = SubjectName::suggest(&text);
        assert_eq!(suggested.as_str().parse::<SubjectName>().as_ref(), Ok(&suggested), "a suggestion is a name");
        assert!(line.as_ref().map_or(true, |line| line.as_str().lines().count() == 1), "{line:?}");
        let json = serde_json::to_vec(&*text).unwrap();
        assert_eq!(message::<SubjectName>(&json) == "read", name.is_ok(), "one rule for both forms");
        assert_eq!(message::<Line>(&json) == "read", line.is_ok(), "one rule for both forms");
        [kind(&name), kind(&line), kind(&target)].join("|")
    });
}

#[test]
fn fuzz_durations() {
    let units =
        ["ns", "us", "ms", "s", "m", "min", "h", "d", "w", "month", "years", "none", "1y", "1month", "30days", " "];
    fuzz("durations", &units, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let span = text.parse::<Span>();
        if let Ok(span) = span {
            let again: Span = span.to_string().parse().unwrap_or_else(|error| panic!("{span}: {error}"));
            let lost = span.0.checked_sub(again.0).unwrap_or_else(|| panic!("{span:?} is shown as {again:?}"));
            assert!(lost.as_millis() == 0, "{span:?} is shown as {again:?}");
        }
        let span = span.map_err(|error| kind_of(&error));
        let limit = text.parse::<Limit>().map_err(|error| kind_of(&error));
        assert_eq!(limit.is_ok(), span.is_ok() || text.trim() == "none", "a limit is a duration or none");
        let messages = [message::<Span>, message::<Limit>, message::<WallTime>].map(|read| read(bytes));
        [kind(&span), kind(&limit), messages.join("|")].join("|")
    });
}

#[test]
fn fuzz_counts() {
    fuzz("counts", &["none", "unlimited", "%", "-", "+", ".", "inf", "NaN"], |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let fraction = Progress::parse_fraction(&text).map_err(|error| kind_of(&error));
        assert!(fraction.as_ref().map_or(true, |fraction| (0.0..=1.0).contains(fraction)), "{fraction:?}");
        let (count, bound) = (shown::<CountLimit>(&text), shown::<Bound>(&text));
        let messages = [message::<CountLimit>, message::<Bound>].map(|read| read(bytes));
        [kind(&count), kind(&bound), kind(&shown::<Money>(&text)), kind(&fraction), messages.join("|")].join("|")
    });
}

#[test]
fn a_reader_beside_a_writer_sees_the_old_content_or_the_new_one() {
    const LAST: u64 = 300;
    let folder = folder();
    let path = folder.path().join("status.json");
    let content = |number: u64| json!({"version": 1, "n": number, "again": vec![number; 2_000]});
    disk::replace_quick(&path, &content(0)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (1..=LAST).for_each(|number| disk::replace_quick(&path, &content(number)).unwrap()));
        let mut last = 0;
        while last < LAST {
            let read: Value = disk::read(&path).expect("it is whole").expect("it is there");
            let number = read["n"].as_u64().expect("a number");
            assert!(number >= last, "an older content came back");
            assert_eq!(read, content(number));
            last = number;
        }
    });
}
