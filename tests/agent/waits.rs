//! What waits: in line for a slot, for the pace of resumes, for the end of its backoff, and for an agent that hears again.

use std::fs;

use latido_protocol::Span;
use latido_protocol::status::{Phase, Verdict};

use super::BARE;
use crate::support::{Agent, World, wait_until};

/// Goes on until it is told to end.
const STAYS: &str = "exec sleep 1000";

fn with_agent_table(table: &str) -> String {
    format!("{BARE}\n{table}\n")
}

/// The config's path, for commands that have to know the same slots as the agent.
fn config(world: &World, text: &str) -> String {
    let path = world.home().join("latido.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn jobs_of_a_full_slot_wait_in_line_show_their_place_and_start_in_order() {
    let world = World::new();
    let text = with_agent_table("[slots]\ngpu = 1");
    let path = config(&world, &text);
    let _agent = Agent::start(&world, &text);
    let options = ["--config", &path, "--slots", "gpu"];
    world.detach("a", &options, STAYS);
    wait_until("a runs", || world.status("a").phase == Phase::Running);
    world.detach("b", &options, STAYS);
    world.detach("c", &options, STAYS);
    let shown = |job: &str| (world.status(job).phase, world.status(job).place);
    assert_eq!([shown("b"), shown("c")], [(Phase::Queued, Some(1)), (Phase::Queued, Some(2))]);
    let why = world.latido(&["why", "c"]).stdout;
    assert!(why.contains("place 2 in line for gpu"), "{why}");
    let listed = world.latido(&["status"]).stdout;
    assert!(listed.contains("place 1 in line for gpu") && listed.contains("place 2 in line for gpu"), "{listed}");
    assert_eq!((world.attempts("b"), world.attempts("c")), (vec![], vec![]));
    world.latido(&["stop", "a"]).ends_with(0);
    wait_until("b runs", || world.status("b").phase == Phase::Running);
    assert_eq!(shown("c"), (Phase::Queued, Some(1)));
    let resumed = world.latido(&["resume", "a"]).ends_with(0).stderr;
    assert!(resumed.contains("job a waits: ") && resumed.contains("place 2 in line for gpu"), "{resumed}");
    world.latido(&["stop", "b"]).ends_with(0);
    wait_until("c runs", || world.status("c").phase == Phase::Running);
    world.latido(&["stop", "c"]).ends_with(0);
    wait_until("a runs again", || world.status("a").phase == Phase::Running);
}

/// The line is kept by the jobs' folders alone: whoever waited still waits, and whoever ran holds its slot.
#[test]
fn a_killed_agent_finds_who_holds_the_slot_and_who_waits_for_it() {
    let world = World::new();
    let text = with_agent_table("[slots]\ngpu = 1");
    let path = config(&world, &text);
    let agent = Agent::start(&world, &text);
    let options = ["--config", &path, "--slots", "gpu"];
    world.detach("a", &options, STAYS);
    wait_until("a runs", || world.status("a").phase == Phase::Running);
    world.detach("b", &options, STAYS);
    agent.kill();
    let _agent = Agent::start(&world, &text);
    wait_until("b waits", || world.status("b").phase == Phase::Queued);
    assert_eq!(world.attempts("b"), Vec::<u32>::new());
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    world.end("a", 1);
    wait_until("b runs", || world.status("b").phase == Phase::Running);
}

/// Names say nothing about the line: whoever runs has the last name here, and those that wait came against the alphabet.
#[test]
fn a_killed_agent_keeps_the_order_in_which_they_asked() {
    let world = World::new();
    let text = with_agent_table("[slots]\ngpu = 1");
    let path = config(&world, &text);
    let agent = Agent::start(&world, &text);
    let options = ["--config", &path, "--slots", "gpu"];
    world.detach("d-runs", &options, STAYS);
    wait_until("d runs", || world.status("d-runs").phase == Phase::Running);
    for name in ["c-first", "b-second", "a-third"] {
        world.detach(name, &options, STAYS);
    }
    agent.kill();
    let _agent = Agent::start(&world, &text);
    let place = |job: &str| (world.status(job).phase, world.status(job).place);
    let line = |place| (Phase::Queued, Some(place));
    wait_until("the line", || place("a-third") == line(3));
    assert_eq!([place("c-first"), place("b-second")], [line(1), line(2)]);
    assert_eq!(world.attempts("a-third"), Vec::<u32>::new(), "the slot is full");
    world.latido(&["stop", "d-runs"]).ends_with(0);
    wait_until("the first runs", || world.status("c-first").phase == Phase::Running);
    assert_eq!([place("b-second"), place("a-third")], [line(1), line(2)]);
}

/// A slot that came free while no agent ran goes to whoever asked first.
#[test]
fn a_slot_that_came_free_without_an_agent_goes_to_the_first_in_line() {
    let world = World::new();
    let text = with_agent_table("[slots]\ngpu = 1");
    let path = config(&world, &text);
    let agent = Agent::start(&world, &text);
    let options = ["--config", &path, "--slots", "gpu"];
    world.detach("c-runs", &options, STAYS);
    wait_until("c runs", || world.status("c-runs").phase == Phase::Running);
    world.detach("b-first", &options, STAYS);
    world.detach("a-second", &options, STAYS);
    agent.kill();
    world.latido(&["stop", "c-runs"]).ends_with(0);
    let _agent = Agent::start(&world, &text);
    wait_until("the first runs", || world.status("b-first").phase == Phase::Running);
    assert_eq!((world.status("a-second").phase, world.status("a-second").place), (Phase::Queued, Some(1)));
}

#[test]
fn a_slot_without_an_agent_and_a_slot_that_nobody_named_are_refused() {
    let world = World::new();
    let path = config(&world, "[slots]\ngpu = 1\n");
    let run = |slot: &str| {
        world.latido(&["run", "--config", &path, "--slots", slot, "--detach", "--name", "a", "--", "true"])
    };
    assert!(run("gpu").ends_with(3).stderr.contains("latido agent"));
    assert!(run("cpu").ends_with(2).stderr.contains("gpu"));
    assert!(!world.state().job(&"a".parse().unwrap()).path().exists(), "nothing is left behind");
}

/// Field case C211: what ended together does not come back together.
#[test]
fn c211_jobs_that_were_killed_together_come_back_one_after_another() {
    let world = World::new();
    let text = with_agent_table("[agent]\nresumes_at_once = 2\nresume_every = \"1s\"");
    let _agent = Agent::start(&world, &text);
    let names: Vec<String> = (1..=6).map(|number| format!("job-{number}")).collect();
    for name in &names {
        world.detach(name, &["--backoff", "0s..0s"], STAYS);
    }
    for name in &names {
        world.kill(world.start(name, 1).process.unwrap().pid, "KILL");
    }
    let runs_again = |name: &String| world.status(name).attempt == 2 && world.status(name).phase == Phase::Running;
    wait_until("all run again", || names.iter().all(runs_again));
    let mut launched: Vec<u64> = names.iter().map(|name| world.start(name, 2).launched_at.as_millis()).collect();
    launched.sort_unstable();
    assert!(launched[5] - launched[0] >= 3_000, "six need at least three waits of a second: {launched:?}");
    let tells = |entry: &latido_protocol::journal::Entry| {
        serde_json::to_string(&entry.body).unwrap().contains("started one after another")
    };
    assert!(world.events().iter().any(tells), "whoever waited is told of");
}

#[test]
fn a_restart_neither_forgets_nor_doubles_a_backoff() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    world.detach("a", &["--backoff", "1000s..1000s"], STAYS);
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    let left = || world.status("a").next.and_then(|next| next.in_s).unwrap_or_default();
    wait_until("its backoff", || left() > Span::default());
    let before = left();
    agent.kill();
    let _agent = Agent::start(&world, BARE);
    wait_until("its backoff again", || world.status("a").phase == Phase::BackingOff);
    let after = left();
    assert!(after <= before && before.0 - after.0 < std::time::Duration::from_secs(60), "{before} and then {after}");
}

/// Field case C001 in full: agent and job are stopped together, and the agent wakes first.
#[test]
fn c001_a_job_that_slept_with_its_agent_has_a_whole_ttl_after_the_gap() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let beats = "while :; do latido beat; echo x >> beats; sleep 0.2; done";
    world.detach("clock", &[], "while :; do echo x >> ticks; sleep 0.2; done");
    world.detach("a", &["--ttl", "10s", "--interval", "1s", "--resume-on", "stale"], beats);
    wait_until("a beat", || world.status("a").last_beat.is_some());
    let job = world.start("a", 1).process.unwrap().pid;
    let ticks = || world.read("ticks").lines().count();
    let pass = |seconds: usize| {
        let begun = ticks();
        wait_until("time", || ticks() >= begun + 5 * seconds);
    };
    agent.signal("STOP");
    world.kill(job, "STOP");
    pass(12);
    agent.signal("CONT");
    wait_until("the gap's entry", || {
        world.events().iter().any(|entry| serde_json::to_string(entry).unwrap().contains("could not hear"))
    });
    assert_eq!(world.status("a").phase, Phase::Running, "the agent woke first and waits");
    let why = world.latido(&["why", "a"]).stdout;
    assert!(why.contains("because the agent could not hear before"), "{why}");
    world.kill(job, "CONT");
    wait_until("alive", || world.status("a").verdict == Verdict::Alive);
    let verdicts = world.verdicts("a");
    assert!(!verdicts.contains(&"stale".to_owned()), "{verdicts:?}");
    assert_eq!(world.attempts("a"), [1]);
}

#[test]
fn an_attempt_without_output_in_time_is_ended_at_its_limit() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    world.detach("silent", &["--first-output-within", "1s"], STAYS);
    world.detach("speaks", &["--first-output-within", "1s"], "echo here; exec sleep 1000");
    let end = world.end("silent", 1);
    assert_eq!(end.outcome.class, latido_protocol::Class::Limit);
    assert!(end.outcome.detail.contains("no output after"), "{}", end.outcome.detail);
    assert_eq!(world.status("speaks").phase, Phase::Running);
}

/// The decision stands in the ending: the agent that took it may be gone.
#[test]
fn a_job_that_was_ended_for_silence_says_so_in_its_ending() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    let options = ["--ttl", "1s", "--interval", "300ms", "--resume-on", "stale", "--max-attempts", "1"];
    world.detach("a", &options, "latido beat; exec sleep 1000");
    assert_eq!(world.end("a", 1).stopped_for, Some(latido_protocol::attempt::StopReason::Stale));
}
