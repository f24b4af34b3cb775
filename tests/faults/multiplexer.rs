//! The multiplexer of terminals that a job was started in goes away, or only what tells of it.

use std::fs;

use latido_protocol::status::Verdict;

use crate::agent::BARE;
use crate::support::{Agent, World, wait_until};

/// Field case C147 (phnx-labs/agi-cli PR #2650): whoever owns the terminal cannot be found, which says nothing of the work.
#[test]
fn c147_a_multiplexer_that_cannot_be_found_is_no_death_of_what_runs_in_it() {
    let world = World::new();
    let socket = world.home().join("mux.sock");
    let mux = |words: &[&str]| {
        let ran = world.command("tmux").arg("-S").arg(&socket).args(words).status();
        ran.is_ok_and(|status| status.success())
    };
    let run = "latido run --name a --state-dir state -- sh -c 'echo $$ > pid; exec sleep 1000'";
    if !mux(&["-f", "/dev/null", "new-session", "-d", run]) {
        eprintln!("SKIPPED: there is no tmux here, so nothing is tested");
        return;
    }
    wait_until("the job", || !world.read("pid").is_empty());
    let agent = Agent::start(&world, BARE);
    fs::rename(&socket, world.home().join("elsewhere")).unwrap();
    agent.kill();
    let agent = Agent::start(&world, BARE);
    assert_eq!(world.status("a").verdict, Verdict::Alive);
    fs::rename(world.home().join("elsewhere"), &socket).unwrap();
    assert!(mux(&["kill-server"]));
    // The terminal is gone, and with it the command that waited: that one may stop its job, and nobody else does.
    let pid: u32 = world.read("pid").trim().parse().unwrap();
    wait_until("a verdict", || matches!(world.status("a").verdict, Verdict::Alive | Verdict::Ended));
    if world.status("a").verdict == Verdict::Alive {
        world.kill(pid, "0");
    }
    agent.end();
}

/// Field case C147, for what latido itself is to its jobs: who would tell of an attempt does not answer, and so it cannot be told.
#[test]
fn c147_an_attempt_whose_supervisor_cannot_be_reached_is_unknown_and_runs_on() {
    let world = World::new();
    world.detach("a", &["--resume-on", "lost", "--backoff", "0s..0s"], "exec sleep 1000");
    let start = world.start("a", 1);
    let pids = [start.supervisor.unwrap().pid, start.process.unwrap().pid];
    fs::rename(&start.sockets, world.home().join("sockets")).unwrap();
    world.kill(pids[0], "STOP");
    let agent = Agent::start(&world, BARE);
    wait_until("its verdict", || world.status("a").verdict == Verdict::Unknown);
    assert!(!world.status("a").reason.is_empty());
    pids.iter().for_each(|pid| world.kill(*pid, "0"));
    assert_eq!(world.attempts("a"), [1]);
    world.kill(pids[0], "CONT");
    wait_until("its verdict", || world.status("a").verdict == Verdict::Alive);
    agent.end();
}
