//! An agent that is recorded, and its recording under other settings.

use std::fs;
use std::path::PathBuf;

use latido_protocol::status::Verdict;
use serde_json::Value;

use crate::support::{Agent, Ran, World, wait_until};

/// Recorded, and no plugins but the strategy.
const RECORDED: &str = "sink = []\nrule = []\n[agent.recording]\nenabled = true\n";

/// Beats twice, is silent until it is told to go on, beats again and ends well.
const PAUSES: &str = "latido beat; while ! test -e go; do sleep 0.05; done; latido beat --step again; latido beat";

/// Judged by its own beats, and ended for silence by nobody.
const LONG: &[&str] = &["--beats", "own", "--ttl", "60s", "--interval", "1s"];

/// A policy that ends for silence what `PAUSES` is.
const SHORT: &str =
    "[policy.default]\nbeats = \"own\"\nttl = \"1s\"\ninterval = \"300ms\"\nresume.on = [\"lost\", \"stale\"]\n";

fn recording(world: &World) -> String {
    world.state().recording().to_str().unwrap().to_owned()
}

fn config(world: &World, text: &str) -> String {
    let path = world.home().join("other.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn document(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Replays with the recorded settings, which have to decide what was recorded; answers what was decided.
#[track_caller]
fn decided(world: &World) -> Vec<Value> {
    let document = document(&world.latido(&["replay", &recording(world), "--json"]).ends_with(0));
    assert_eq!(document["as_recorded"], true, "{document:#}");
    assert_eq!(document["differences"], Value::Array(vec![]));
    document["decisions"].as_array().unwrap().clone()
}

/// A job that was silent for longer than a second, and went on.
fn recorded_pause() -> World {
    let world = World::new();
    let agent = Agent::start(&world, RECORDED);
    world.detach("a", LONG, PAUSES);
    wait_until("two seconds of silence", || {
        world.status("a").silence_s.is_some_and(|silence| silence.0.as_secs() >= 2)
    });
    fs::write(world.home().join("go"), "").unwrap();
    wait_until("its end", || world.status("a").verdict == Verdict::Ended);
    agent.end();
    world
}

#[test]
fn a_replay_of_a_real_agent_decides_exactly_what_it_decided() {
    let world = World::new();
    let agent = Agent::start(&world, RECORDED);
    world.detach("a", &["--backoff", "0s..0s"], "echo $LATIDO_ATTEMPT >> marks; exec sleep 1000");
    wait_until("attempt 1", || world.read("marks") == "1\n");
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
    world.latido(&["stop", "a"]).ends_with(0);
    wait_until("its end", || world.status("a").verdict == Verdict::Ended);
    agent.end();
    let decided = decided(&world);
    let verdicts: Vec<&str> = decided.iter().filter_map(|decision| decision["what"]["verdict"].as_str()).collect();
    assert_eq!(verdicts, world.verdicts("a"), "and the journal says the same");
    assert!(decided.iter().any(|decision| decision["what"] == "launch" && decision["attempt"] == 2), "{decided:#?}");
}

#[test]
fn a_shorter_ttl_is_shown_to_have_ended_a_run_that_went_on() {
    let world = recorded_pause();
    assert!(decided(&world).iter().all(|decision| decision["what"].get("end").is_none()), "nothing was ended then");
    let other = config(&world, SHORT);
    let ran = world.latido(&["replay", &recording(&world), "--config", &other, "--json"]).ends_with(1);
    let document = document(&ran);
    assert_eq!(document["ended_alive"], 1, "{document:#}");
    let differences = document["differences"].as_array().unwrap();
    let end = differences.iter().find(|difference| difference["what"]["end"] == "stale").unwrap();
    assert_eq!((&end["subject"], &end["attempt"], &end["then"]), (&Value::from("a"), &Value::from(1), &Value::Null));
    assert_eq!((&end["went_on"], &end["afterwards"]["sign"]), (&Value::from(true), &Value::from("moved-on")));
    let ran = world.latido(&["replay", &recording(&world), "--config", &other]).ends_with(1);
    assert!(ran.stdout.contains("would have ended 1 attempt that was alive"), "{}", ran.stdout);
    assert_eq!(world.latido(&["replay", &recording(&world), "--config", &other]).stdout, ran.stdout, "twice the same");
}

#[test]
fn settings_that_decide_the_same_end_with_0() {
    let world = recorded_pause();
    let other = config(&world, "[policy.default]\nbeats = \"own\"\nttl = \"50s\"\ninterval = \"1s\"\n");
    let ran = world.latido(&["replay", &recording(&world), "--config", &other]).ends_with(0);
    assert!(ran.stdout.contains("decides the same"), "{}", ran.stdout);
}

#[test]
fn a_job_that_the_other_config_says_nothing_about_keeps_its_settings_and_is_named() {
    let world = World::new();
    let agent = Agent::start(&world, &format!("{RECORDED}[policy.slow]\nttl = \"10m\"\n"));
    world
        .latido(&[
            "run",
            "--detach",
            "--name",
            "a",
            "--config",
            &config(&world, "[policy.slow]\n"),
            "--policy",
            "slow",
            "--",
            "true",
        ])
        .ends_with(0);
    wait_until("its end", || world.status("a").verdict == Verdict::Ended);
    agent.end();
    let other = config(&world, "[policy.default]\nttl = \"90s\"\n");
    let ran = world.latido(&["replay", &recording(&world), "--config", &other]).ends_with(0);
    assert!(ran.stderr.contains("job a: there is neither [job.a] nor [policy.slow]"), "{}", ran.stderr);
}

#[test]
fn a_recording_holds_no_command_and_no_environment_of_a_job() {
    let world = World::new();
    let agent = Agent::start(&world, RECORDED);
    world.detach("a", &["--env", "TOKEN=hunter2"], "echo swordfish; sleep 1000");
    wait_until("its start", || world.read("state/recording.jsonl").contains("attempt-started"));
    agent.end();
    let text = world.read("state/recording.jsonl");
    assert!(text.contains("\"a\"") && !text.contains("hunter2") && !text.contains("swordfish"), "{text}");
}

#[test]
fn a_recording_of_two_agents_of_which_one_was_killed_is_replayed_whole() {
    let world = World::new();
    let agent = Agent::start(&world, RECORDED);
    world.detach("a", LONG, PAUSES);
    wait_until("a beat", || world.status("a").last_beat.is_some());
    agent.kill();
    let path = world.state().recording();
    // What a killed writer leaves of a line.
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str("{\"step\":{\"listened_s\":1,");
    fs::write(&path, &text).unwrap();
    let torn = text.lines().count();
    let agent = Agent::start(&world, RECORDED);
    fs::write(world.home().join("go"), "").unwrap();
    wait_until("its end", || world.status("a").verdict == Verdict::Ended);
    agent.end();
    let ran = world.latido(&["replay", &recording(&world), "--json"]).ends_with(0);
    assert!(ran.stderr.contains(&format!("line {torn} of")), "{}", ran.stderr);
    assert_eq!((&document(&ran)["as_recorded"], &document(&ran)["beginnings"]), (&Value::from(true), &Value::from(2)));
}

#[test]
fn an_agent_is_not_recorded_unless_its_config_says_so() {
    let world = World::new();
    let agent = Agent::start(&world, super::BARE);
    world.detach("a", &[], "true");
    wait_until("its end", || world.status("a").verdict == Verdict::Ended);
    agent.end();
    assert!(!world.state().recording().exists());
}

#[test]
fn a_disk_that_refuses_the_recording_changes_nothing_for_the_jobs() {
    let world = World::new();
    fs::create_dir_all(world.state().recording()).unwrap();
    let agent = Agent::start(&world, RECORDED);
    world.detach("a", &[], "true");
    wait_until("its end", || world.status("a").verdict == Verdict::Ended);
    assert!(agent.said().contains("cannot write the recording"), "{}", agent.said());
    agent.end();
}

#[test]
fn what_cannot_be_replayed_is_refused_in_three_parts() {
    let world = World::new();
    let file = |name: &str, text: &str| {
        let path: PathBuf = world.home().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let newer = "{\"began\":{\"version\":2,\"anything\":{}}}\n";
    let step = "{\"step\":{\"listened_s\":1,\"wall\":\"2026-11-29T17:39:19.607Z\",\"wake_in_s\":5}}\n";
    for (path, code, why) in [
        (file("empty.jsonl", ""), 2, "it is empty"),
        (file("text.jsonl", "beat beat beat\n"), 2, "no beginning"),
        (file("headless.jsonl", step), 2, "no beginning"),
        (file("newer.jsonl", newer), 4, "version 2"),
        ("absent.jsonl".to_owned(), 2, "No such file"),
    ] {
        let ran = world.latido(&["replay", &path]).ends_with(code);
        assert!(ran.stderr.contains(why), "{path}: {}", ran.stderr);
        assert!(ran.stderr.contains("\n  next:  "), "{path}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
    let typo = config(&world, "[policy.default]\nttk = \"3m\"\n");
    let ran = world.latido(&["replay", "absent.jsonl", "--config", &typo]).ends_with(2);
    assert!(ran.stderr.contains("did you mean `ttl`?"), "{}", ran.stderr);
}
