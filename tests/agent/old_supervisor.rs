//! A supervisor of another latido under today's agent.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use latido_protocol::Class;
use latido_protocol::status::Verdict;

use super::BARE;
use crate::support::{Agent, World, wait_until};

/// A supervisor as the first one was: it writes and says what the formats had then, and nothing that came later. Its socket
/// answers each request with the status. The job ends when `end` is there.
const FIRST: &str = r#"
import fcntl, json, os, socket, subprocess, sys, time
version = int(os.environ.get("SPEAKS", "1"))
lock, report = os.dup(0), os.fdopen(os.dup(1), "w")
attempt = sys.argv[1]
job = os.path.dirname(os.path.dirname(attempt))
def stat(pid): return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
def identity(pid):
    try: machine = open("/etc/machine-id").read().strip()
    except OSError: machine = ""
    start = json.load(open(attempt + "/start.json"))
    return dict(start["starter"], pid=pid, start_time=int(stat(pid)[19]))
def write(path, document):
    open(path + ".tmp", "w").write(json.dumps(document)); os.rename(path + ".tmp", path)
os.setsid()
start = json.load(open(attempt + "/start.json"))
output = open(attempt + "/output.log", "w")
child = subprocess.Popen(start["command"], cwd=start["directory"], stdin=subprocess.DEVNULL, stdout=output, pass_fds=[lock],
    env=dict(os.environ, LATIDO_DIR=attempt, LATIDO_JOB=start["job"]), start_new_session=True)
known = ["version", "job", "attempt", "epoch", "host", "launched_at", "starter", "because", "command", "directory",
    "checkpoint", "sockets"]
start = {key: start[key] for key in known}
now = start["launched_at"]
start.update(supervisor=identity(os.getpid()), process=identity(child.pid), started_at=now)
write(attempt + "/start.json", start)
status = dict(version=version, job=start["job"], attempt=start["attempt"], epoch=start["epoch"], at=now, sequence=1,
    last_beat=now, progress_changed=now, progress=dict(done=3, total=9, step="as before"), state=None, errors=0, ready=True,
    broken=False, silence_s=0, still_s=0, output_bytes=0, stopping=False)
write(attempt + "/status.json", status)
server = socket.socket(socket.AF_UNIX)
server.bind(start["sockets"] + "/control"); server.listen(8); server.settimeout(0.02)
report.write(json.dumps(dict(type="started", pid=child.pid)) + "\n"); report.close()
devnull = os.open("/dev/null", os.O_RDWR); os.dup2(devnull, 1); os.dup2(devnull, 0)
clients = []
while child.poll() is None:
    try:
        client, _ = server.accept(); client.recv(4096)
        client.sendall((json.dumps(dict(type="status", status=status)) + "\n").encode()); clients.append(client)
    except socket.timeout: pass
end = {key: start[key] for key in ["job", "attempt", "epoch"]}
end.update(version=1, started_at=now, ended_at=now, outcome=dict(kind="exited", code=child.returncode, signal=None,
    detail=f"exit status {child.returncode}", **{"class": "failed"}), rusage=None, progress=status["progress"],
    recorded_by="supervisor", proof="collected")
write(attempt + "/end.json", end)
open(os.path.dirname(os.path.dirname(job)) + "/ledger.jsonl", "a").write(json.dumps({**{key: end[key] for key in
    ["job", "attempt", "epoch", "started_at", "ended_at", "outcome"]}, "class": "failed", "because": start["because"],
    "checkpoint": None}) + "\n")
"#;

fn first_supervisor(world: &World) -> PathBuf {
    let path = world.home().join("latido-supervisor");
    fs::write(&path, format!("#!/usr/bin/env python3\n{FIRST}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs `a` under the first supervisor, until `end` is there.
fn detach(world: &World, speaks: &str, options: &[&str]) {
    let mut words = vec!["run", "--detach", "--name", "a"];
    words.extend(options);
    words.extend(["--", "sh", "-c", "while [ ! -e end ]; do sleep 0.02; done; exit 5"]);
    let mut command = world.latido_command(&words);
    let child = command
        .env("LATIDO_SUPERVISOR", first_supervisor(world))
        .env("SPEAKS", speaks)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    world.finish(child).ends_with(0);
}

#[test]
fn an_attempt_of_an_older_supervisor_is_heard_judged_and_resumed() {
    let world = World::new();
    detach(&world, "1", &["--resume-on", "failed", "--backoff", "0s..0s", "--max-attempts", "2"]);
    let agent = Agent::start(&world, BARE);
    wait_until("its word", || {
        let status = world.status("a");
        status.verdict == Verdict::Alive && status.progress.is_some_and(|progress| progress.done == Some(3))
    });
    assert_eq!(world.attempts("a"), [1]);
    fs::write(world.home().join("end"), "").unwrap();
    wait_until("the next attempt", || world.attempts("a") == [1, 2]);
    let end = world.end("a", 1);
    assert_eq!((end.outcome.class, end.outcome.code), (Class::Failed, Some(5)));
    // Today's supervisor has it.
    assert_eq!(world.end("a", 2).recorded_by, "supervisor");
    agent.end();
}

/// What a later version means by its words is not known, and the ttl of `a` is over when `b`, which has the same, is ended.
#[test]
fn an_attempt_of_a_later_supervisor_is_unknown_and_nothing_is_done_about_it() {
    const BRIEF: [&str; 6] = ["--ttl", "1s", "--interval", "300ms", "--resume-on", "stale"];
    let world = World::new();
    detach(&world, "2", &BRIEF);
    let agent = Agent::start(&world, BARE);
    wait_until("the doubt", || world.status("a").verdict == Verdict::Unknown);
    world.detach("b", &[&BRIEF[..], &["--backoff", "0s..0s"]].concat(), "latido beat; exec sleep 1000");
    wait_until("the next attempt of b", || world.attempts("b").len() > 1);
    let status = world.status("a");
    assert_eq!((status.verdict, world.attempts("a")), (Verdict::Unknown, vec![1]));
    assert!(status.reason.contains("version 2"), "{status:?}");
    fs::write(world.home().join("end"), "").unwrap();
    assert_eq!(world.end("a", 1).outcome.code, Some(5), "it lived until it was told to end");
    agent.end();
}
