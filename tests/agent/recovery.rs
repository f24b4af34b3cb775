//! What the agent finds that nobody told it: half a step of somebody who died in the middle.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use latido_protocol::disk;
use latido_protocol::files::{Want, Wanted};
use latido_protocol::journal::Body;
use latido_protocol::{OutcomeKind, WallTime};

use super::{BARE, QUICK};
use crate::support::{Agent, World, wait_until};

/// Its recorder was killed between the ending and the ledger, and no launch follows that would settle it.
#[test]
fn an_ending_without_its_line_in_the_ledger_is_entered_once() {
    let world = World::new();
    for name in ["a", "b"] {
        world.detach(name, &[], "exit 0");
        world.end(name, 1);
    }
    let ledger = || fs::read_to_string(world.state().ledger()).unwrap_or_default();
    wait_until("both lines", || ledger().lines().count() == 2);
    let line_of = |job: &str| {
        let mark = format!("\"job\":\"{job}\"");
        ledger().lines().filter(|line| line.contains(&mark)).map(|line| format!("{line}\n")).collect::<String>()
    };
    let of_b = line_of("b");
    fs::write(world.state().ledger(), &of_b).unwrap();
    let agent = Agent::start(&world, BARE);
    wait_until("the line of a", || ledger().lines().count() == 2);
    agent.kill();
    let _again = Agent::start(&world, BARE);
    let idle = || world.events().iter().filter(|entry| matches!(entry.body, Body::Agent { .. })).count() >= 2;
    wait_until("the next agent", idle);
    let after = ledger();
    assert!(after.starts_with(&of_b), "{after}");
    assert_eq!(line_of("a").lines().count(), 1, "{after}");
}

/// The agent hears of the ending that its own launch has left, and goes on after it.
#[test]
fn a_supervisor_that_fails_leaves_an_ending_that_the_agent_goes_on_from() {
    let world = World::new();
    world.detach("a", QUICK, "exec sleep 1000");
    let supervisor = world.home().join("supervisor");
    fs::write(&supervisor, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&supervisor, PermissionsExt::from_mode(0o755)).unwrap();
    let agent = Agent::spawn_with(&world, BARE, |command| {
        command.env("LATIDO_SUPERVISOR", &supervisor);
    });
    wait_until("the agent", || agent.status().is_some());
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    let second = |body: &Body| match body {
        Body::AttemptEnded { attempt: 2, outcome, .. } => Some(outcome.kind),
        Body::AttemptEnded { .. }
        | Body::AttemptStarted { .. }
        | Body::Transition { .. }
        | Body::Phase { .. }
        | Body::Beat { .. }
        | Body::LeaseExpired { .. }
        | Body::Alert(_)
        | Body::Agent { .. } => None,
    };
    let told = || world.events().iter().find_map(|entry| second(&entry.body));
    wait_until("the ending of the second attempt", || told() == Some(OutcomeKind::LaunchFailed));
    assert_eq!(world.end("a", 2).outcome.kind, OutcomeKind::LaunchFailed);
}

/// An agent that was killed in the middle of what a person asked for: the epoch was given, the attempt not yet made.
#[test]
fn a_resume_whose_launch_was_cut_off_is_carried_out_by_the_next_agent() {
    let world = World::new();
    world.detach("a", &["--max-attempts", "1"], "exec sleep 1000");
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    world.end("a", 1);
    let wanted = Wanted {
        version: 1,
        want: Want::Resume,
        epoch: 7,
        at: WallTime::from_millis(1),
        until: None,
        by: "latido resume".to_owned(),
        budget: None,
    };
    disk::replace(&world.state().job(&"a".parse().unwrap()).wanted(), &wanted).unwrap();
    let _agent = Agent::start(&world, BARE);
    wait_until("the second attempt", || world.attempts("a") == [1, 2]);
    let start = world.start("a", 2);
    assert!(start.by_hand && start.epoch > 7, "{start:?}");
    let wanted = || disk::read::<Wanted>(&world.state().job(&"a".parse().unwrap()).wanted()).unwrap().unwrap();
    wait_until("the resume to be taken back", || wanted().want == Want::Run);
    assert_eq!(wanted().epoch, start.epoch);
}
