//! Budgets of real jobs: told by the work, kept by the agent, carried over all attempts.

use latido_protocol::Class;
use latido_protocol::files::Spent;
use latido_protocol::status::Phase;

use super::BARE;
use crate::support::{Agent, World, wait_until};

/// Tells one unit of money more each second and does not end when it is asked to.
const SPENDS: &str = "trap '' TERM; n=0; while :; do n=$((n+1)); latido beat --money $n; sleep 1; done";

/// Six turns in the first attempt, and three in the next.
const TURNS: &str = "if [ $LATIDO_ATTEMPT = 1 ]; then n=6; else n=3; fi; latido beat --turns $n; exec sleep 1000";

const UNIT: u64 = 1_000_000;

fn turns(turns: u64) -> Spent {
    Spent { turns, ..Spent::default() }
}

/// Field case C292 (chaitanyagiri/munder-difflin#288): a cap that failed open, beside a display that said idle.
#[test]
fn c292_work_that_ignores_every_request_is_ended_at_its_budget_and_shown_as_it_spends() {
    let world = World::new();
    // It is killed before it can tell two more.
    let _agent = Agent::start(&world, &format!("{BARE}[policy.default]\ngrace = \"200ms\"\n"));
    let config = world.home().join("latido.toml");
    world.detach("a", &["--config", config.to_str().unwrap(), "--budget-money", "5"], SPENDS);
    wait_until("a report", || world.status("a").spent.money >= UNIT);
    let status = world.status("a");
    assert_eq!(status.phase, Phase::Running, "what it spends and that it runs are told together");
    let why = world.latido(&["why", "a"]).stdout;
    assert!(why.contains(" of 5"), "{why}");
    let end = world.end("a", 1);
    assert!((5 * UNIT..=6 * UNIT).contains(&end.spent.money), "{end:?}");
    assert_eq!(end.outcome.class, Class::Limit);
    assert!(end.outcome.detail.contains("budget used up: 5 of 5 money"), "{}", end.outcome.detail);
    assert_eq!(world.attempts("a"), [1]);
}

/// Field case C293 (DraconDev/pi-goal-list-loop-audit#32): what a budget means after a resume.
#[test]
fn c293_a_used_up_budget_refuses_a_resume_until_there_is_more_and_the_sum_is_carried_over() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    world.detach("a", &["--budget-turns", "5"], TURNS);
    assert_eq!(world.end("a", 1).spent, turns(6));
    let refused = world.latido(&["resume", "a"]).ends_with(4);
    assert!(refused.stderr.contains("budget used up: 6 of 5 turns"), "{refused:?}");
    assert!(refused.stderr.contains("--budget-turns"), "{refused:?}");
    assert_eq!(world.attempts("a"), [1]);
    world.latido(&["resume", "a", "--budget-turns", "9"]).ends_with(0);
    let end = world.end("a", 2);
    assert!(end.outcome.detail.contains("budget used up: 9 of 9 turns"), "{}", end.outcome.detail);
    wait_until("the sum", || world.status("a").spent == turns(9));
}

/// The same without an agent: the files know what was spent.
#[test]
fn c293_without_an_agent_a_used_up_budget_refuses_a_resume_as_well() {
    let world = World::new();
    world.detach("a", &["--budget-turns", "5"], TURNS);
    wait_until("the report", || world.status("a").spent == turns(6));
    world.latido(&["stop", "a"]).ends_with(0);
    let refused = world.latido(&["resume", "a"]).ends_with(4);
    assert!(refused.stderr.contains("budget used up: 6 of 5 turns"), "{refused:?}");
    world.latido(&["resume", "a", "--budget-turns", "none"]).ends_with(0);
    wait_until("the sum", || world.status("a").spent == turns(9));
}

/// Field case C296 (seed 003 with paperclipai/paperclip#390): a resumed attempt gets only what is left.
#[test]
fn c296_the_second_attempt_gets_what_the_first_left_also_from_another_agent() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let script = "if [ $LATIDO_ATTEMPT = 1 ]; then latido beat --tokens 6; while [ ! -e go ]; do sleep 0.1; done; exit 1; fi; \
        n=0; while :; do n=$((n+1)); latido beat --tokens $n; sleep 1; done";
    world.detach("a", &["--budget-tokens", "10", "--resume-on", "failed,limit", "--backoff", "0s..0s"], script);
    wait_until("the first report", || world.status("a").spent.tokens == 6);
    agent.kill();
    std::fs::write(world.home().join("go"), "").unwrap();
    world.end("a", 1);
    let _agent = Agent::start(&world, BARE);
    let second = world.end("a", 2);
    assert!((4..=5).contains(&second.spent.tokens), "{second:?}");
    wait_until("it is given up", || world.status("a").phase == Phase::Stuck);
    assert_eq!(world.attempts("a"), [1, 2]);
}

/// Field case C295 (gsd-build/gsd-2#3615): a plain "continue" after a limit made the work redo what was finished.
#[test]
fn c295_work_that_is_resumed_after_a_limit_goes_on_from_its_checkpoint() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    let script = "n=${LATIDO_CHECKPOINT:-0}; while [ $n -lt 6 ]; do n=$((n+1)); echo $n >> steps; \
        latido beat --checkpoint $n --turns $n; if [ $n = 3 ]; then exec sleep 1000; fi; done";
    world.detach("a", &["--budget-turns", "3"], script);
    assert_eq!(world.end("a", 1).outcome.class, Class::Limit);
    world.latido(&["resume", "a", "--budget-turns", "none"]).ends_with(0);
    assert_eq!(world.end("a", 2).outcome.class, Class::Completed);
    assert_eq!(world.read("steps"), "1\n2\n3\n4\n5\n6\n", "no step was done twice");
}

#[test]
fn a_job_that_was_given_up_at_its_budget_is_an_alert_that_says_so() {
    let world = World::new();
    let _agent = Agent::start(&world, "sink = []\n[alerts]\ngroup_for = \"300ms\"\n");
    world.detach("a", &["--budget-turns", "5", "--resume-on", "limit"], TURNS);
    let alerts = || world.latido(&["alerts", "list", "--json"]).stdout;
    wait_until("the alert", || alerts().contains("liveness/stuck/a"));
    assert!(alerts().contains("budget used up: 5 of 5 turns") || alerts().contains("6 of 5 turns"), "{}", alerts());
}
