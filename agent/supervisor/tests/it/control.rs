use std::io::{Read, Write};

use latido_protocol::attempt::{Advice, Answer, Beat, LINE_MAX, Request};

use crate::support::{Attempt, Job, is_gone};

fn memory_kib(attempt: &Attempt) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", attempt.supervisor)).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

// marmot-protocol/mdk#596
#[test]
fn c197_rubbish_gets_an_error_or_a_close_and_no_beat_is_lost() {
    let attempt = Job::shell("exec sleep 1000").start();
    let mut beating = attempt.connect();
    let long = vec![b'x'; 4 * LINE_MAX];
    let cases: [&[u8]; 8] = [
        b"",
        b"{\"type\":",
        b"{\"type\":\"beat\"",
        b"\xff\xfe\x00\x01garbage\n",
        b"{\"type\":\"nonsense\"}\n",
        b"[1,2,3]\n",
        b"{\"type\":\"beat\",\"progress\":7}\n",
        &long,
    ];
    let mut beats = 0;
    for round in 0..50 {
        for case in cases {
            let mut client = attempt.connect();
            // The supervisor may have closed a connection that says too much.
            let _ = client.stream.write_all(case);
            if case.ends_with(b"\n") {
                let answer = client.hear();
                assert!(matches!(answer, Some(Answer::Error { .. }) | None), "{case:?}: {answer:?}");
            }
            beats += 1;
            assert_eq!(beating.beat(Beat::default()), Answer::Advice { advice: Advice::GoOn }, "round {round}");
        }
    }
    let Answer::Status { status } = beating.ask(&Request::Status) else { panic!() };
    assert_eq!(status.sequence, beats);
    assert!(!is_gone(&attempt.process()));
}

// kunobi-ninja/kache#216, SawyerHood/dev-browser#112, vfarcic/dot-agent-deck#903
#[test]
fn c198_a_line_without_an_end_is_cut_off_while_it_is_read() {
    let attempt = Job::shell("exec sleep 1000").start();
    let before = memory_kib(&attempt);
    let mut client = attempt.connect();
    let chunk = vec![b'x'; 64 * 1024];
    let sent = (0..1600).take_while(|_| client.stream.write_all(&chunk).is_ok()).count();
    assert!(sent < 100, "the connection took {sent} chunks");
    assert!(matches!(client.hear(), Some(Answer::Error { .. }) | None));
    assert!(memory_kib(&attempt) < before + 1024);
}

#[test]
fn a_client_that_never_reads_is_dropped_and_stops_nobody() {
    let attempt = Job::shell("exec sleep 1000").start();
    let mut deaf = attempt.connect();
    deaf.stream.set_nonblocking(true).unwrap();
    let mut line = serde_json::to_vec(&Request::Status).unwrap();
    line.push(b'\n');
    let mut client = attempt.connect();
    for _ in 0..20_000 {
        if let Err(error) = deaf.stream.write_all(&line)
            && error.kind() != std::io::ErrorKind::WouldBlock
        {
            break;
        }
    }
    assert_eq!(client.beat(Beat::default()), Answer::Advice { advice: Advice::GoOn });
    assert!(memory_kib(&attempt) < 16 * 1024);
}

#[test]
fn many_silent_clients_keep_nobody_out() {
    let attempt = Job::shell("exec sleep 1000").start();
    let mut watcher = attempt.connect();
    assert!(matches!(watcher.ask(&Request::Watch), Answer::Status { .. }));
    let silent: Vec<_> = (0..200).map(|_| attempt.connect()).collect();
    assert_eq!(attempt.connect().beat(Beat::default()), Answer::Advice { advice: Advice::GoOn });
    assert!(matches!(watcher.hear(), Some(Answer::Status { .. })), "a watcher is not the one to go");
    drop(silent);
}

#[test]
fn a_client_that_closes_its_side_still_gets_its_answer() {
    let attempt = Job::shell("exec sleep 1000").start();
    let mut client = attempt.connect();
    client.send(&Request::Status);
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("{\"type\":\"status\""), "{answer}");
}
