//! Clients of every kind, on the control socket of an agent that has work to do.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::BARE;
use crate::support::{Agent, World, wait_until};

fn connect(world: &World) -> UnixStream {
    let stream = UnixStream::connect(world.state().agent_socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends bytes and returns what comes back until the agent closes, or one line of it.
fn exchange(world: &World, bytes: &[u8]) -> String {
    let mut stream = connect(world);
    // The agent may close before all is sent: that is one of its answers.
    let _closed = stream.write_all(bytes);
    let _closed = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

/// Field case C197: rubbish of every kind gets an error or a close, and nobody else notices.
#[test]
fn c197_rubbish_is_answered_and_disturbs_nobody() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    world.detach("a", &["--ttl", "5s", "--interval", "1s"], "while :; do latido beat; sleep 0.2; done");
    let hostile: [&[u8]; 7] = [
        b"",
        b"{\"version\":1,\"requ",
        b"\x00\xff\xfe\x80\n",
        b"[]\n",
        b"{\"version\":1,\"request\":{\"type\":\"no-such\"}}\n",
        b"{\"version\":1,\"request\":{\"type\":\"changed\",\"job\":\"../../etc\"}}\n",
        b"{\"version\":99,\"request\":{\"type\":\"hello\"}}\n",
    ];
    for _ in 0..20 {
        for bytes in hostile {
            let answer = exchange(&world, bytes);
            assert!(answer.is_empty() || answer.contains("\"type\":\"error\""), "{answer}");
        }
    }
    assert!(exchange(&world, hostile[6]).contains("knows versions up to 1"));
    assert!(exchange(&world, b"{\"version\":1,\"request\":{\"type\":\"hello\"}}\n").contains("\"type\":\"hello\""));
    assert!(agent.status().is_some());
    let verdicts = world.verdicts("a");
    assert!(verdicts.iter().all(|verdict| verdict != "stale"), "{verdicts:?}");
}

/// Field case C198: a line without an end is refused at its limit while it is read.
#[test]
fn c198_a_line_without_an_end_is_refused_while_it_is_read() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = memory();
    let mut stream = connect(&world);
    let chunk = vec![b'x'; 1 << 20];
    let sent = (0..200).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(sent < 200, "200 MB were taken");
    assert!(memory() < before + 10 * 1024, "the agent grew");
    assert!(agent.status().is_some());
}

/// Field case C200 and its kind: a client that never reads holds nobody up.
#[test]
fn c200_a_client_that_never_reads_holds_nobody_up() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let mut silent: Vec<_> = (0..50).map(|_| connect(&world)).collect();
    for stream in &mut silent {
        stream.write_all(b"{\"version\":1,\"request\":{\"type\":\"status\"}}\n").unwrap();
    }
    world.detach("a", &[], "exec sleep 1000");
    wait_until("the job", || world.status("a").attempt == 1);
    assert!(agent.status().is_some());
}
