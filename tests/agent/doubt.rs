//! A supervisor that cannot tell or cannot write is no silent job, and what it knows is shown.

use std::fs;

use latido_protocol::status::{Phase, Verdict};
use rustix::process::{Pid, Resource, Rlimit};

use super::BARE;
use crate::support::{Agent, World, wait_until};

const STRICT: &[&str] = &["--interval", "500ms", "--ttl", "2s", "--resume-on", "stale,lost", "--backoff", "0s..0s"];

#[test]
fn a_stopped_supervisor_makes_its_job_unknown_and_never_stale() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let stopped = |job: &str| world.start(job, 1).supervisor.unwrap().pid;
    world.detach("a", STRICT, "while :; do latido beat; sleep 0.2; done");
    wait_until("its beats", || world.status("a").last_beat.is_some());
    world.kill(stopped("a"), "STOP");
    wait_until("the doubt", || world.status("a").verdict == Verdict::Unknown);
    let status = world.status("a");
    assert!(status.reason.contains(&format!("pid {}) is stopped", stopped("a"))), "{status:?}");
    // Whoever is silent for as long is stale by now.
    world.detach("silent", &["--interval", "500ms", "--ttl", "2s"], "latido beat; exec sleep 1000");
    wait_until("a real silence", || world.status("silent").verdict == Verdict::Stale);
    assert_eq!((world.status("a").verdict, world.status("a").phase), (Verdict::Unknown, Phase::Running));
    world.kill(stopped("a"), "CONT");
    wait_until("that it goes on", || world.status("a").verdict == Verdict::Alive);
    assert!(!world.verdicts("a").contains(&"stale".to_owned()), "{:?}", world.verdicts("a"));
    assert_eq!(world.attempts("a"), [1]);
    agent.end();
    // Without an agent, and for an agent that starts, it is the same.
    world.kill(stopped("a"), "STOP");
    wait_until("the doubt of the files", || world.status("a").verdict == Verdict::Unknown);
    assert!(world.latido(&["doctor"]).stdout.contains("is stopped"));
    let _agent = Agent::start(&world, BARE);
    wait_until("the doubt of the agent", || world.status("a").verdict == Verdict::Unknown);
    world.kill(stopped("a"), "CONT");
    wait_until("that it goes on again", || world.status("a").verdict == Verdict::Alive);
    assert!(!world.verdicts("a").contains(&"stale".to_owned()), "{:?}", world.verdicts("a"));
    assert_eq!(world.attempts("a"), [1]);
}

/// What a full disk does, for the supervisor alone.
fn limit_file_size(pid: u32, bytes: Option<u64>) {
    let pid = Pid::from_raw(pid.cast_signed());
    let maximum = rustix::process::getrlimit(Resource::Fsize).maximum;
    rustix::process::prlimit(pid, Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

#[test]
fn an_end_that_cannot_be_recorded_yet_is_never_shown_as_alive() {
    let world = World::new();
    for with_agent in [false, true] {
        let agent = with_agent.then(|| Agent::start(&world, BARE));
        let job = if with_agent { "with" } else { "without" };
        world.detach(job, &["--max-attempts", "1"], &format!("while ! test -e go-{job}; do sleep 0.05; done; exit 3"));
        wait_until("alive", || world.status(job).verdict == Verdict::Alive);
        let supervisor = world.start(job, 1).supervisor.unwrap().pid;
        limit_file_size(supervisor, Some(0));
        fs::write(world.home().join(format!("go-{job}")), "").unwrap();
        wait_until("word of the end", || world.status(job).verdict != Verdict::Alive);
        let status = world.status(job);
        assert_eq!(status.verdict, Verdict::Unknown, "{status:?}");
        assert!(status.reason.contains("it has ended (exit status 3), and that is not recorded yet"), "{status:?}");
        let shown = world.latido(&["status", job]).ends_with(1);
        assert!(shown.stdout.contains("not recorded yet"), "{shown:?}");
        limit_file_size(supervisor, None);
        assert_eq!(world.end(job, 1).outcome.code, Some(3));
        wait_until("the ending", || world.status(job).verdict == Verdict::Ended);
        drop(agent);
    }
}

// reddb-io/red-skills#1959
#[test]
fn c120_a_supervisor_that_cannot_write_its_status_is_shown_where_people_look() {
    let world = World::new();
    world.detach("a", &["--ttl", "30s"], "while :; do latido beat; sleep 0.2; done");
    wait_until("its beats", || world.status("a").last_beat.is_some());
    let path = world.attempt("a", 1).status();
    fs::remove_file(&path).unwrap();
    fs::create_dir_all(path.join("in the way")).unwrap();
    let agent = Agent::start(&world, BARE);
    for with_agent in [true, false] {
        wait_until("the trouble", || world.status("a").trouble.is_some());
        let status = world.status("a");
        assert_eq!(status.verdict, Verdict::Alive, "its beats are heard all the same: {status:?}");
        let shown = world.latido(&["status", "a"]).ends_with(1);
        assert!(shown.stdout.contains("cannot write status.json"), "{with_agent}: {shown:?}");
        let why = world.latido(&["why", "a"]).ends_with(1).stdout;
        assert!(why.lines().any(|line| line.starts_with("trouble ")), "{why}");
        let doctor = world.latido(&["doctor"]).ends_with(1).stdout;
        assert!(doctor.lines().any(|line| line.starts_with("fail  supervisors") && line.contains("job a")), "{doctor}");
        if with_agent {
            agent.signal("TERM");
            wait_until("the agent's end", || agent.status().is_none());
        }
    }
    fs::remove_dir_all(&path).unwrap();
    wait_until("that it is well", || world.status("a").trouble.is_none());
    world.latido(&["status", "a"]).ends_with(0);
}

/// The order to end is tried again when the socket cannot be reached, and the supervisor makes its socket again.
#[test]
fn an_order_to_end_outlives_a_socket_that_is_gone() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    world.detach("a", STRICT, "latido beat; exec sleep 1000");
    wait_until("its beat", || world.status("a").last_beat.is_some());
    fs::remove_dir_all(world.start("a", 1).sockets).unwrap();
    wait_until("the resume", || world.attempts("a") == [1, 2]);
    assert!(world.verdicts("a").contains(&"stale".to_owned()));
}

/// Unreadable is not gone.
#[test]
fn a_folder_of_jobs_that_cannot_be_read_removes_no_job() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    world.detach("a", &[], "exec sleep 1000");
    wait_until("alive", || world.status("a").verdict == Verdict::Alive);
    let (jobs, away) = (world.state().jobs(), world.state().path().join("away"));
    fs::rename(&jobs, &away).unwrap();
    // A link that leads to itself: nothing below it can be looked at, by root neither.
    std::os::unix::fs::symlink(&jobs, &jobs).unwrap();
    let job = "a".parse().unwrap();
    for _ in 0..3 {
        latido::jobs::client::poke_agent(world.state(), &job, std::time::Duration::from_secs(10));
    }
    let shown = world.latido(&["status", "a", "--json"]);
    assert!(shown.stdout.contains("\"alive\""), "{shown:?}");
    fs::remove_file(&jobs).unwrap();
    fs::rename(&away, &jobs).unwrap();
    latido::jobs::client::poke_agent(world.state(), &job, std::time::Duration::from_secs(10));
    assert_eq!((world.status("a").verdict, world.attempts("a")), (Verdict::Alive, vec![1]));
    assert_eq!(world.verdicts("a"), ["alive"]);
}
