//! Launches that always fail and jobs that are to run on, beside work that is well.

use std::time::Duration;

use latido::jobs::client::ask_agent;
use latido::jobs::clock::Deadline;
use latido_protocol::control::Request;
use latido_protocol::status::Phase;
use latido_protocol::{Class, OutcomeKind};

use super::BARE;
use crate::support::{Agent, World, wait_until};

/// Nothing but the backoff stands between two attempts.
const PACE: &str = "[agent]\nresumes_at_once = 1000\n";

/// Field case C183 (circus-tent/circus#1157).
#[test]
fn c183_a_missing_program_without_any_limit_holds_up_nobody_and_waits_longer_each_time() {
    let world = World::new();
    let endless =
        "on = [\"failed\"], max_attempts = \"none\", max_identical_deaths = \"none\", backoff = \"200ms..1m\"";
    let well = ["b", "c", "d", "e"];
    let jobs: String = well.map(|name| format!("[job.{name}]\ncommand = [\"sleep\", \"1000\"]\n")).concat();
    let missing = format!("[job.a]\ncommand = [\"/nowhere/at-all\"]\nresume = {{ {endless} }}\n");
    let agent = Agent::start(&world, &format!("{BARE}{PACE}{missing}{jobs}"));
    let made = |name: &str, number| world.attempt(name, number).start().exists();
    let runs = |name: &&str| made(name, 1) && world.start(name, 1).process.is_some();
    wait_until("the normal jobs", || well.iter().all(runs));
    wait_until("some attempts", || made("a", 6));
    for _ in 0..100 {
        let deadline = Deadline::after(Duration::from_millis(200));
        let all = Request::Status { subjects: Vec::new() };
        let document = ask_agent(world.state(), all, Duration::from_secs(10));
        assert!(!deadline.has_passed() && document.is_ok(), "{document:?}");
    }
    let began: Vec<u64> = (2..=6).map(|number| world.start("a", number).launched_at.as_millis()).collect();
    let waits: Vec<u64> = began.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits[0] < waits[3], "{waits:?}");
    assert_eq!(world.end("a", 1).outcome.kind, OutcomeKind::LaunchFailed);
    assert!(well.iter().all(|name| world.attempts(name) == [1]));
    agent.end();
}

/// Field case C186 (Supervisor/supervisor#798).
#[test]
fn c186_its_policy_says_whether_a_job_runs_once_or_runs_on() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let brief = "sleep 0.05";
    world.detach("once", &[], brief);
    let on = ["--resume-on", "completed,lost", "--backoff", "0s..0s", "--max-attempts", "none"];
    world.detach("on", &on, brief);
    wait_until("the end of what ends at once each time", || world.status("on").phase == Phase::Stuck);
    assert_eq!(world.attempts("on"), [1, 2, 3]);
    assert_eq!((world.end("once", 1).outcome.class, world.attempts("once")), (Class::Completed, vec![1]));
    assert_eq!(world.status("once").phase, Phase::Ended);
    agent.end();
}
