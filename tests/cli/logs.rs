//! `latido logs`: bytes as they are, across rotations.

use std::fs;

use latido_protocol::status::Verdict;

use crate::support::{World, wait_until};

/// `latido logs`, as bytes.
fn bytes(world: &World, words: &[&str]) -> Vec<u8> {
    let output = world.latido_command(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// Field case C172 (OpenJobDescription/openjd-adaptor-runtime-for-python#274): bytes that are not UTF-8 pass untouched.
#[test]
fn c172_bytes_that_are_not_text_pass_through() {
    let world = World::new();
    let all: Vec<u8> = (0..=255).collect();
    fs::write(world.home().join("all"), &all).unwrap();
    let script = "cat all; head -c 1000000 /dev/zero | tr '\\0' x; exit 0";
    let output = world.latido_command(&["run", "--name", "a", "--", "sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let expected = [&all[..], &vec![b'x'; 1_000_000]].concat();
    assert!(output.stdout == expected, "the foreground differs");
    assert!(bytes(&world, &["logs", "a"]) == expected, "the log differs");
    let json = String::from_utf8(bytes(&world, &["logs", "a", "--json"])).unwrap();
    for line in json.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    assert!(json.contains('\u{fffd}'));
}

/// Field case C175 (buildkite/agent#102): one line of 50 MB, then more.
#[test]
fn c175_a_line_of_50_mb_stops_nothing() {
    let world = World::new();
    let script = "head -c 52428800 /dev/zero | tr '\\0' y; echo; echo done";
    let output = world.latido_command(&["run", "--name", "a", "--", "sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.ends_with(b"y\ndone\n"));
    assert!(bytes(&world, &["logs", "a"]).ends_with(b"y\ndone\n"));
}

/// A log of the default size holds 16 MB in each of 4 files; what a fast job writes beyond that is rotated away, and the
/// disk stays bounded.
#[test]
fn fast_output_is_followed_whole_and_kept_bounded() {
    const LINES: usize = 2_000_000;
    let world = World::new();
    let script = format!("i=0; seq -f 'line %.0f of a log that is written fast' 1 {LINES}");
    let output = world.latido_command(&["run", "--name", "a", "--", "sh", "-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let warned = String::from_utf8_lossy(&output.stderr).contains("rotated away");
    // A reader that is slower than the rotation is told so; one that was not told has seen every line.
    assert!(text.ends_with(&format!("line {LINES} of a log that is written fast\n")));
    assert!(warned || text.lines().count() == LINES, "{} lines came", text.lines().count());
    let size: u64 = fs::read_dir(world.attempt("a", 1).path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("output.log"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert!(size <= 4 * 17 * 1024 * 1024, "{size} bytes are kept");
}

/// Field case C178 (Supervisor/supervisor PR #751): what has no newline yet is seen at once.
#[test]
fn c178_progress_by_carriage_return_is_seen_as_it_is_written() {
    let world = World::new();
    world.detach("a", &[], "printf '\\r10%%'; while ! test -e go; do sleep 0.05; done; printf '\\r100%%\\n'");
    wait_until("the first", || world.latido(&["logs", "a"]).stdout == "10%");
    let follow = world.spawn(&["logs", "a", "-f"]);
    fs::write(world.home().join("go"), "").unwrap();
    assert_eq!(world.finish(follow).ends_with(0).stdout, "10%\r100%\n");
}

#[test]
fn each_attempt_has_its_own_output() {
    let world = World::new();
    world.detach("a", &[], "echo attempt $LATIDO_ATTEMPT");
    world.end("a", 1);
    world.latido(&["resume", "a"]).ends_with(0);
    world.end("a", 2);
    assert_eq!(world.latido(&["logs", "a"]).stdout, "attempt 2\n");
    assert_eq!(world.latido(&["logs", "a", "--attempt", "1"]).stdout, "attempt 1\n");
    let ran = world.latido(&["logs", "a", "--attempt", "3"]).ends_with(2);
    assert!(ran.stderr.contains("attempts 1 to 2"), "{ran:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let world = World::new();
    world.detach("a", &[], "seq 1 200000");
    world.end("a", 1);
    let script =
        format!("{} logs a --state-dir {} | head -n 1", env!("CARGO_BIN_EXE_latido"), world.state().path().display());
    let ran = world.command("sh").args(["-c", &script]).output().unwrap();
    assert_eq!((ran.stdout.as_slice(), ran.stderr.as_slice()), (&b"1\n"[..], &b""[..]));
}

/// A minute of output at about 10 MB/s: bounded on the disk, bounded in memory, and its end is not lost.
#[test]
fn ten_megabytes_a_second_for_a_minute_are_drained_and_bounded() {
    let world = World::new();
    let script =
        "i=0; while [ $i -lt 600 ]; do head -c 1048576 /dev/zero | tr '\\0' x; i=$((i+1)); sleep 0.08; done; echo done";
    world.detach("a", &[], script);
    let supervisor = world.start("a", 1).supervisor.unwrap().pid;
    let mut largest = 0;
    loop {
        let ended = world.latido(&["wait", "a", "--for", "5s"]).code == Some(0);
        let status = fs::read_to_string(format!("/proc/{supervisor}/status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        largest = largest.max(resident.unwrap_or(0));
        if ended {
            break;
        }
        // It may end between the wait and this look.
        let verdict = world.status("a").verdict;
        assert!(matches!(verdict, Verdict::Alive | Verdict::Ended), "{verdict}");
    }
    assert!((1..16 * 1024).contains(&largest), "the supervisor had {largest} KiB");
    let kept: u64 = fs::read_dir(world.attempt("a", 1).path())
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("output.log"))
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert!(kept <= 4 * 17 * 1024 * 1024, "{kept} bytes are kept");
    assert!(fs::read(world.attempt("a", 1).output()).unwrap().ends_with(b"done\n"));
}

/// Field case C176 (Supervisor/supervisor#1485): a tail that begins inside a character.
#[test]
fn c176_a_tail_of_any_length_is_valid_json() {
    let world = World::new();
    world.latido(&[
        "run",
        "--name",
        "a",
        "--",
        "sh",
        "-c",
        "i=0; while [ $i -lt 30 ]; do printf '€𝄞ä'; i=$((i+1)); done; echo",
    ]);
    for count in 0..50 {
        let json = bytes(&world, &["logs", "a", "--json", "--bytes", &count.to_string()]);
        for line in String::from_utf8(json).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = line["text"].as_str().unwrap();
            assert!(!text.contains('\u{fffd}') && text.len() <= count, "{count}: {text}");
        }
    }
    assert_eq!(bytes(&world, &["logs", "a", "-c", "3"]).len(), 3, "bytes are shown as they are");
}

#[test]
fn a_tail_of_lines_is_followed_from_there() {
    let world = World::new();
    world.detach("a", &[], "seq 1 100; touch up; while [ ! -e go ]; do sleep 0.05; done; echo more");
    wait_until("the job", || world.home().join("up").exists());
    assert_eq!(bytes(&world, &["logs", "a", "-n", "2"]), b"99\n100\n");
    let following = world.spawn(&["logs", "a", "-f", "-n", "1"]);
    fs::write(world.home().join("go"), "").unwrap();
    assert_eq!(world.finish(following).ends_with(0).stdout, "100\nmore\n");
}
