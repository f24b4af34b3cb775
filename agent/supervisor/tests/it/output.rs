use std::time::Duration;

use latido_protocol::Class;
use latido_protocol::attempt::{Answer, Request};
use latido_protocol::files::{CarriageReturns, LogLimits};

use crate::support::{Job, wait_until};

// OpenJobDescription/openjd-adaptor-runtime-for-python#274
#[test]
fn c172_output_is_kept_byte_for_byte() {
    let script = "import sys; sys.stdout.buffer.write(bytes(range(256)) + b'x' * 1000000 + bytes(range(255, -1, -1)))";
    let attempt = Job::of(&["python3", "-c", script]).start();
    assert_eq!(attempt.end().outcome.class, Class::Completed);
    let expected: Vec<u8> = (0..=255).chain(std::iter::repeat_n(b'x', 1_000_000)).chain((0..=255).rev()).collect();
    assert!(attempt.output() == expected, "{} bytes", attempt.output().len());
}

#[test]
fn one_line_of_50_mb_and_a_fast_printer_are_no_problem() {
    let limits = LogLimits { size_max: 1024 * 1024, files_max: 3, carriage_returns: CarriageReturns::default() };
    let attempt =
        Job::shell("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last").with(|s| s.log = limits).start();
    let end = attempt.end();
    assert_eq!(end.outcome.class, Class::Completed);
    assert_eq!(attempt.status().output_bytes, 50_000_006);
    assert!(attempt.output().ends_with(b"x\nlast\n"));
    let used: u64 = ["output.log", "output.log.1", "output.log.2"]
        .map(|name| attempt.dir.path().join(name).metadata().unwrap().len())
        .iter()
        .sum();
    assert!(used <= 3 * 1024 * 1024 && !attempt.dir.path().join("output.log.3").exists(), "{used}");
}

// stellar/stellar-core#2867, sddm/sddm#1874
#[test]
fn c179_c181_a_log_that_was_truncated_or_removed_goes_on() {
    let attempt = Job::shell("while :; do echo line; sleep 0.01; done").start();
    let has = |count: usize| move |bytes: &[u8]| bytes.len() >= count;
    let wait = |holds: &dyn Fn(&[u8]) -> bool| wait_until("output", || holds(&attempt.output()));
    wait(&has(50));
    for _ in 0..2 {
        std::fs::File::create(attempt.dir.output()).unwrap();
        wait(&has(25));
        let output = attempt.output();
        assert!(output.starts_with(b"line\n") && !output.contains(&0), "{output:?}");
    }
    std::fs::remove_file(attempt.dir.output()).unwrap();
    wait(&has(25));
}

// sddm/sddm#1874
#[test]
fn c181_a_removed_log_gives_its_space_back_although_nothing_is_printed() {
    let every = latido_protocol::Span(Duration::from_secs(1));
    let attempt = Job::shell("head -c 100000 /dev/zero; echo > printed; exec sleep 1000")
        .with(|settings| settings.presence_every = every)
        .start();
    attempt.said("printed");
    wait_until("all is in the log", || attempt.output().len() == 100_000);
    std::fs::remove_file(attempt.dir.output()).unwrap();
    let folder = std::path::Path::new("/proc").join(attempt.supervisor.to_string()).join("fd");
    wait_until("the supervisor lets go of it", || {
        let mut open =
            std::fs::read_dir(&folder).unwrap().flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
        !open.any(|target| target.to_string_lossy().contains("output.log"))
    });
}

#[test]
fn a_log_that_cannot_be_written_never_stops_the_job() {
    let attempt =
        Job::shell("while [ ! -e go ]; do sleep 0.01; done; head -c 3000000 /dev/zero; echo > printed; sleep 1000")
            .start();
    // Nothing can be appended to a folder, whoever asks; a full disk answers with another error.
    std::fs::create_dir(attempt.dir.output()).unwrap();
    std::fs::write(attempt.folder.path().join("go"), "").unwrap();
    attempt.said("printed");
    let mut client = attempt.connect();
    wait_until(
        "the pipe is empty",
        || matches!(client.ask(&Request::Status), Answer::Status { status } if status.output_bytes == 3_000_000),
    );
    std::fs::remove_dir(attempt.dir.output()).unwrap();
    attempt.stop(Duration::from_secs(10));
    let end = attempt.end();
    assert!(end.proof.contains("3000000 bytes of output were lost"), "{}", end.proof);
}

// dsh-tauri-desk/deepseek-harness-desktop PR #197
#[test]
fn c173_a_line_that_is_no_utf_8_stops_nothing() {
    let script =
        "printf '\\304\\343\\272\\303\\n'; i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); sleep 0.01; done";
    let attempt = Job::shell(script).start();
    assert_eq!(attempt.end().outcome.code, Some(0));
    let expected: Vec<u8> =
        b"\xc4\xe3\xba\xc3\n".iter().copied().chain((0..50).flat_map(|n| format!("line {n}\n").into_bytes())).collect();
    assert_eq!(attempt.output(), expected);
}

// T-Crypt/aphotic-hypr PR #82
#[test]
fn c170_after_the_supervisors_death_a_printing_and_a_silent_job_live_on_alike() {
    let printing = Job::shell("i=0; while :; do i=$((i+1)); echo line $i; echo $i > count; sleep 0.01; done").start();
    let silent = Job::shell("i=0; while :; do i=$((i+1)); echo $i > count; sleep 0.01; done").start();
    for attempt in [&printing, &silent] {
        attempt.said("count");
        attempt.kill_supervisor();
        let count = || attempt.said("count").parse::<u32>().unwrap_or(0);
        let before = count();
        wait_until("it goes on", || count() > before + 20);
        assert!(!crate::support::is_gone(&attempt.process()));
    }
}

#[test]
fn of_a_progress_bar_the_log_keeps_the_last_state() {
    let script = "i=0; while [ $i -le 20000 ]; do printf '%d of 20000\\r' $i; i=$((i+1)); done; echo; echo done";
    let attempt = Job::shell(script).start();
    attempt.end();
    assert_eq!(attempt.output(), b"20000 of 20000\r\ndone\n");
    let all = CarriageReturns::All;
    let attempt = Job::shell(script).with(|s| s.log.carriage_returns = all).start();
    attempt.end();
    assert!(attempt.output().len() > 200_000);
}

#[test]
fn a_progress_bar_is_seen_while_it_stands() {
    let every = latido_protocol::Span(Duration::from_secs(1));
    let attempt =
        Job::shell("printf '1%%\\r2%%\\r'; exec sleep 1000").with(|settings| settings.presence_every = every).start();
    wait_until("its state is in the log", || attempt.output() == b"2%");
}

#[test]
fn the_index_says_when_each_part_of_the_output_came() {
    let attempt = Job::shell("echo one; while [ ! -e go ]; do sleep 0.01; done; head -c 5000 /dev/zero").start();
    wait_until("the first line", || attempt.output() == b"one\n");
    let first = std::fs::read_to_string(attempt.dir.output_index()).unwrap();
    assert!(first.len() == 46 && first.starts_with("00000000000000000000 2"), "{first}");
    let time: latido_protocol::WallTime = serde_json::from_value(first[21..45].into()).unwrap();
    assert!(time >= attempt.start().started_at.unwrap());
}
