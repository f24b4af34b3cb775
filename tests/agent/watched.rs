//! Checks and watched processes under the real agent.

use std::fs;
use std::process::{Child, Stdio};

use latido_protocol::status::{Phase, SubjectKind, SubjectStatus, Verdict};

use crate::support::{Agent, World, wait_until};

/// Due again two seconds after each signal, with no more than that of grace.
const CHECK: &str = "sink = []\nrule = []\n[check.backup]\nevery = \"2s\"\ngrace = \"1s\"\nrun_for = \"3s\"\n";

/// Not due while a test lasts.
const DAILY: &str = "sink = []\nrule = []\n[check.backup]\nevery = \"24h\"\n";

#[track_caller]
fn reaches(world: &World, name: &str, verdict: Verdict) -> SubjectStatus {
    wait_until(&format!("{name} to be {verdict}"), || world.status(name).verdict == verdict);
    world.status(name)
}

fn verdict(world: &World) -> Verdict {
    world.status("backup").verdict
}

/// A process that ends with the test.
struct Sleeper(Child);

impl Sleeper {
    fn new(world: &World) -> Self {
        let mut command = world.command("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_check_falls_silent_turns_stale_and_comes_back() {
    let world = World::new();
    let _agent = Agent::start(&world, CHECK);
    world.latido(&["beat", "backup"]).ends_with(0);
    assert_eq!(verdict(&world), Verdict::Alive);
    let stale = reaches(&world, "backup", Verdict::Stale);
    assert_eq!((stale.kind, stale.policy.as_str()), (SubjectKind::Check, "every 2s"));
    assert!(stale.reason.contains("no signal"), "{}", stale.reason);
    world.latido(&["status"]).ends_with(1);
    world.latido(&["beat", "backup"]).ends_with(0);
    assert_eq!(verdict(&world), Verdict::Alive);
    let verdicts = world.verdicts("backup");
    assert_eq!(&verdicts[..3], ["alive", "late", "stale"], "{verdicts:?}");
}

#[test]
fn a_check_that_never_signals_is_missing() {
    let world = World::new();
    let _agent = Agent::start(&world, CHECK);
    assert_eq!(verdict(&world), Verdict::Waiting);
    reaches(&world, "backup", Verdict::Missing);
}

#[test]
fn a_failure_is_told_at_once_and_ended_by_a_success() {
    let world = World::new();
    let _agent = Agent::start(&world, DAILY);
    world.latido(&["beat", "backup", "--fail"]).ends_with(0);
    assert_eq!(verdict(&world), Verdict::Failing);
    world.latido(&["beat", "backup", "--exit-status", "3", "--state", "disk full"]).ends_with(0);
    let status = world.status("backup");
    assert!(status.reason.contains("exit status 3"), "{}", status.reason);
    assert_eq!(status.state.as_deref(), Some("disk full"));
    world.latido(&["why", "backup"]).ends_with(1);
    world.latido(&["beat", "backup", "--exit-status", "0"]).ends_with(0);
    assert_eq!(verdict(&world), Verdict::Alive);
    let why = world.latido(&["why", "backup"]).ends_with(0);
    assert!(why.stdout.contains("it succeeded"), "{}", why.stdout);
}

#[test]
fn overlapping_runs_are_told_apart_and_one_that_takes_too_long_is_hung() {
    let world = World::new();
    let _agent = Agent::start(&world, &CHECK.replace("every = \"2s\"", "every = \"1h\""));
    world.latido(&["beat", "backup", "--start", "--run-id", "one"]).ends_with(0);
    world.latido(&["beat", "backup", "--start", "--run-id", "two"]).ends_with(0);
    world.latido(&["beat", "backup", "--run-id", "two"]).ends_with(0);
    assert_eq!(verdict(&world), Verdict::Alive);
    reaches(&world, "backup", Verdict::Hung);
    world.latido(&["beat", "backup", "--run-id", "one"]).ends_with(0);
    assert_eq!(verdict(&world), Verdict::Alive);
}

#[test]
fn a_paused_check_is_not_judged_until_the_end_of_its_pause() {
    let world = World::new();
    let _agent = Agent::start(&world, DAILY);
    world.latido(&["beat", "backup"]).ends_with(0);
    world.latido(&["pause", "backup", "--for", "2s"]).ends_with(0);
    world.latido(&["beat", "backup", "--fail"]).ends_with(0);
    let status = world.status("backup");
    assert_eq!((status.verdict, status.phase), (Verdict::Alive, Phase::Paused));
    reaches(&world, "backup", Verdict::Failing);
    assert_eq!(world.status("backup").phase, Phase::Running);
    world.latido(&["pause", "backup"]).ends_with(0);
    world.latido(&["unpause", "backup"]).ends_with(0);
    assert_eq!(world.status("backup").phase, Phase::Running);
}

#[test]
fn a_check_is_what_it_was_after_the_agent_was_killed() {
    let world = World::new();
    let agent = Agent::start(&world, DAILY);
    world.latido(&["beat", "backup", "--start", "--run-id", "one"]).ends_with(0);
    world.latido(&["beat", "backup", "--exit-status", "9", "--run-id", "one"]).ends_with(0);
    let before = world.status("backup");
    agent.kill();
    let agent = Agent::start(&world, DAILY);
    let after = world.status("backup");
    assert_eq!((after.verdict, after.last_beat), (Verdict::Failing, before.last_beat));
    world.latido(&["beat", "backup", "--run-id", "one"]).ends_with(0);
    assert_eq!(verdict(&world), Verdict::Failing, "told twice, and the first end counts");
    world.latido(&["beat", "backup", "--run-id", "two"]).ends_with(0);
    agent.kill();
    let _agent = Agent::start(&world, DAILY);
    assert_eq!(verdict(&world), Verdict::Alive);
}

#[test]
fn a_check_that_the_config_defines_otherwise_begins_anew() {
    let world = World::new();
    let agent = Agent::start(&world, DAILY);
    world.latido(&["beat", "backup", "--fail"]).ends_with(0);
    agent.end();
    let _agent =
        Agent::start(&world, "sink = []\nrule = []\n[check.backup]\ncron = \"@daily\"\nzone = \"Europe/Berlin\"\n");
    let status = world.status("backup");
    assert_eq!((status.verdict, status.policy.as_str()), (Verdict::Waiting, "0 0 * * * Europe/Berlin"));
}

#[test]
fn a_signal_that_nobody_can_take_is_kept_and_one_for_nobody_is_wrong_use() {
    let world = World::new();
    let config = world.home().join("latido.toml");
    fs::write(&config, DAILY).unwrap();
    let config = config.to_str().unwrap();
    let ran = world.latido(&["beat", "backup", "--config", config]).ends_with(0);
    assert!(ran.stderr.contains("kept until one does"), "{ran:?}");
    world.latido(&["beat", "backup", "--answer", "--config", config]).ends_with(3);
    world.latido(&["pause", "backup", "--config", config]).ends_with(3);
    world.latido(&["beat", "backup"]).ends_with(2);
    let _agent = Agent::start(&world, DAILY);
    world.latido(&["beat", "backups"]).ends_with(2);
    world.latido(&["pause", "backups"]).ends_with(2);
    world.latido(&["beat", "backup", "--run-id", ""]).ends_with(2);
}

#[test]
fn a_rule_is_asked_about_a_check_and_its_alert_ends_with_the_trouble() {
    let world = World::new();
    let _agent = Agent::start(&world, "sink = []\n[alerts]\nresolve_after = \"0s\"\n[check.backup]\nevery = \"24h\"\n");
    world.latido(&["beat", "backup", "--fail"]).ends_with(0);
    wait_until("the alert", || world.count("alert", "backup") == 1);
    world.latido(&["beat", "backup"]).ends_with(0);
    wait_until("its end", || world.count("alert", "backup") == 2);
}

#[test]
fn a_watched_process_ends_and_is_replaced() {
    let world = World::new();
    let file = world.home().join("legacy.pid");
    let first = Sleeper::new(&world);
    fs::write(&file, first.pid().to_string()).unwrap();
    let config = "sink = []\nrule = []\n[process.legacy]\npid_file = \"legacy.pid\"\n";
    let agent = Agent::start(&world, config);
    let alive = reaches(&world, "legacy", Verdict::Alive);
    assert_eq!((alive.kind, alive.pid), (SubjectKind::Process, Some(first.pid())));
    drop(first);
    reaches(&world, "legacy", Verdict::Dead);
    let second = Sleeper::new(&world);
    fs::write(&file, second.pid().to_string()).unwrap();
    wait_until("the other process", || world.status("legacy").pid == Some(second.pid()));
    agent.kill();
    let _agent = Agent::start(&world, config);
    wait_until("the process after the restart", || world.status("legacy").pid == Some(second.pid()));
    let verdicts = world.verdicts("legacy");
    assert_eq!(verdicts, ["alive", "dead", "alive"], "a restart tells nothing twice");
}

/// Field case C140 (inverse-inc/packetfence#3291): the file outlived its process, and the number is another's.
#[test]
fn c140_a_pid_file_older_than_the_process_it_names_names_nobody() {
    let world = World::new();
    let stranger = Sleeper::new(&world);
    let file = world.home().join("legacy.pid");
    fs::write(&file, stranger.pid().to_string()).unwrap();
    let hour_ago = fs::metadata(&file).unwrap().modified().unwrap() - std::time::Duration::from_secs(3600);
    fs::File::options().append(true).open(&file).unwrap().set_modified(hour_ago).unwrap();
    let config = "sink = []\nrule = []\n[process.legacy]\npid_file = \"legacy.pid\"\nstart_within = \"1s\"\n";
    let _agent = Agent::start(&world, config);
    reaches(&world, "legacy", Verdict::Missing);
}

#[test]
fn a_job_is_failing_by_a_flag_and_paused_by_a_word() {
    let world = World::new();
    let _agent = Agent::start(&world, "sink = []\nrule = []\n");
    world.detach("a", &[], "sleep 100");
    world.latido(&["beat", "a", "--fail"]).ends_with(0);
    reaches(&world, "a", Verdict::Failing);
    world.latido(&["beat", "a", "--start"]).ends_with(0);
    reaches(&world, "a", Verdict::Alive);
    world.latido(&["pause", "a", "--for", "1h"]).ends_with(0);
    wait_until("its pause", || world.status("a").phase == Phase::Paused);
    world.latido(&["unpause", "a"]).ends_with(0);
    wait_until("its end", || world.status("a").phase == Phase::Running);
    world.latido(&["stop", "a"]).ends_with(0);
    world.latido(&["pause", "a"]).ends_with(4);
    world.latido(&["beat", "a", "--fail", "--state", "x"]).ends_with(2);
}

/// `latido beat backup …` over the config of the agent, while none runs.
fn beat_without_agent(world: &World, options: &[&str]) {
    let path = world.home().join("latido.toml");
    fs::write(&path, DAILY).unwrap();
    let words = [&["beat", "backup", "--config", path.to_str().unwrap()], options].concat();
    let ran = world.latido(&words).ends_with(0);
    assert!(ran.stderr.contains("kept until one does"), "{ran:?}");
}

#[test]
fn what_a_check_signals_while_no_agent_runs_is_taken_in_by_the_next_one_at_its_own_time() {
    let world = World::new();
    beat_without_agent(&world, &["--fail", "--state", "disk full"]);
    let agent = Agent::start(&world, DAILY);
    let status = reaches(&world, "backup", Verdict::Failing);
    assert_eq!(status.state.as_deref(), Some("disk full"));
    assert!(status.last_beat.unwrap() < agent.status().unwrap().started_at, "{status:?}");
    assert!(!world.state().kept_signals().exists(), "what is taken in is removed");
    agent.end();
}

/// Whatever moment an agent is killed at: in their order, and each once.
#[test]
fn kept_signals_outlive_agents_that_are_killed_and_are_taken_in_once_each() {
    let world = World::new();
    beat_without_agent(&world, &["--start", "--run-id", "1"]);
    beat_without_agent(&world, &["--exit-status", "3", "--run-id", "1"]);
    beat_without_agent(&world, &["--start", "--run-id", "2"]);
    beat_without_agent(&world, &["--exit-status", "0", "--run-id", "2"]);
    for _ in 0..3 {
        let agent = Agent::spawn(&world, DAILY);
        wait_until("its socket", || world.state().agent_socket().exists());
        agent.kill();
    }
    let _agent = Agent::start(&world, DAILY);
    wait_until("all are taken in", || !world.state().kept_signals().exists());
    let taken = world.events().iter().filter(|entry| format!("{entry:?}").contains("while no agent ran")).count();
    assert_eq!(taken, 4, "each once");
    let verdicts = world.verdicts("backup");
    assert_eq!(verdicts.iter().filter(|verdict| *verdict == "failing").count(), 1, "in their order: {verdicts:?}");
    reaches(&world, "backup", Verdict::Alive);
}

#[test]
fn a_signal_for_a_check_that_no_config_knows_is_kept_for_nobody() {
    let world = World::new();
    world.latido(&["beat", "nobody", "--fail"]).ends_with(2);
    assert!(!world.state().kept_signals().exists());
}

/// A dead man's switch whose agent is not there must not look well.
#[test]
fn without_an_agent_what_the_config_watches_is_shown_and_not_well() {
    let world = World::new();
    let config = world.home().join("latido.toml");
    fs::write(&config, format!("{CHECK}[process.server]\npid = 1\n")).unwrap();
    let words = |name: &'static str| ["status", name, "--config", config.to_str().unwrap(), "--json"];
    for (name, kind) in [("backup", SubjectKind::Check), ("server", SubjectKind::Process)] {
        let ran = world.latido(&words(name)).ends_with(1);
        let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let status: SubjectStatus = serde_json::from_value(document["subjects"][0].clone()).unwrap();
        assert_eq!((status.kind, status.verdict), (kind, Verdict::Unknown));
    }
    let all = world.latido(&["status", "--config", config.to_str().unwrap()]).ends_with(1);
    assert!(all.stdout.contains("backup") && all.stdout.contains("no agent runs"), "{all:?}");
    world.latido(&["why", "backup", "--config", config.to_str().unwrap()]).ends_with(1);
    world.latido(&["status", "nobody", "--config", config.to_str().unwrap()]).ends_with(2);
}
