//! `latido config`, `latido doctor`, and what a config that does not check out does to other commands.

use super::transcript::{LATIDO, Transcript, command};

#[test]
fn a_typo_is_told_with_its_line_and_the_nearest_key() {
    let mut transcript = Transcript::new();
    transcript.file("latido.toml", "[policy.default]\nttl = \"3m\"\nintervall = \"5s\"\n");
    transcript.latido("config check latido.toml").expect("config/typo");
}

#[test]
fn all_faults_are_told_at_once() {
    let mut transcript = Transcript::new();
    transcript.file(
        "latido.toml",
        "[agent]\nhistory_every = 300\n\n[policy.slow]\nttl = \"-1\"\nrun_for = 0\nbeats = \"ouwn\"\n\n[[sinks]]\nname = \"x\"\n",
    );
    transcript.latido("config check latido.toml").expect("config/faults");
}

#[test]
fn numbers_that_contradict_each_other_are_both_named() {
    let mut transcript = Transcript::new();
    transcript.file(
        "latido.toml",
        "[policy.a]\ninterval = \"30s\"\nttl = \"30s\"\n\n[job.b]\ncommand = [\"true\"]\npolicy = \"b\"\n",
    );
    transcript.latido("config check latido.toml");
    transcript.file("close.toml", "[policy.a]\ninterval = \"30s\"\nttl = \"45s\"\n");
    transcript.latido("config check close.toml").expect("config/contradiction");
}

#[test]
fn a_config_is_found_where_it_is_named() {
    let mut transcript = Transcript::new();
    transcript.latido("config check");
    transcript.file(".config/latido/latido.toml", "[policy.home]\n").latido("config check");
    transcript.file("other.toml", "[policy.other]\n").latido_with("config check", &[("LATIDO_CONFIG", "other.toml")]);
    transcript.latido_with("config check --config absent.toml", &[("LATIDO_CONFIG", "other.toml")]);
    transcript.latido("config check absent.toml").expect("config/found");
}

#[test]
fn what_is_in_force_is_shown_with_where_it_came_from() {
    let mut transcript = Transcript::new();
    transcript.latido("config show --state-dir /var/lib/latido");
    transcript.file("latido.toml", "[policy.slow]\nttl = \"12m\"\n");
    transcript.latido("config show --config latido.toml").expect("config/show");
}

#[test]
fn what_is_shown_checks_out() {
    let mut transcript = Transcript::new();
    let shown = command(LATIDO, transcript.home()).args(["config", "show"]).output().unwrap();
    transcript.file("shown.toml", &String::from_utf8(shown.stdout).unwrap());
    let checked = command(LATIDO, transcript.home()).args(["config", "check", "shown.toml"]).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    assert!(checked.stderr.is_empty(), "{checked:?}");
}

#[test]
fn the_schema_is_the_shipped_one() {
    let home = tempfile::tempdir().unwrap();
    let printed = command(LATIDO, home.path()).args(["config", "schema"]).output().unwrap();
    assert!(printed.status.success());
    let shipped = include_str!("../../config/latido.schema.json");
    assert!(String::from_utf8(printed.stdout).unwrap() == shipped);
}

#[test]
fn a_config_that_does_not_check_out_stops_a_command_and_never_a_job_at_work() {
    let mut transcript = Transcript::new();
    transcript.file("latido.toml", "polcy = 1\n");
    transcript.latido("status --config latido.toml");
    transcript.latido("run --config latido.toml --detach -- true").expect("config/stops");
    // An attempt whose supervisor is gone: the config is a warning, and what follows is the command's own answer.
    let inside = [("LATIDO_JOB", "a"), ("LATIDO_ATTEMPT", "1"), ("LATIDO_EPOCH", "1"), ("LATIDO_SOCKET", "gone")];
    for (name, code) in [("beat", 0), ("fence", 3)] {
        let arguments = [name, "--config", "latido.toml"];
        let output = command(LATIDO, transcript.home()).args(arguments).envs(inside).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.starts_with("warning: cannot use the config latido.toml, so the defaults are taken"), "{told}");
        assert_eq!(output.status.code(), Some(code), "{told}");
    }
}

#[test]
fn a_doctor_tells_every_check_and_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let output = command(LATIDO, home.path()).args(["doctor", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let outcome = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap()["outcome"].clone();
    for name in ["config", "state directory", "sockets", "identity", "pidfd", "subreaper", "clocks", "inotify", "trust"]
    {
        assert_eq!(outcome(name), "ok", "{report:#}");
    }
    assert_eq!(outcome("agent"), "warn", "no agent runs here");
    for check in checks {
        assert_eq!(check["outcome"] == "ok", check["next"].is_null(), "{check:#}");
    }
    let failed = checks.iter().any(|check| check["outcome"] == "fail");
    assert_eq!(output.status.code(), Some(i32::from(failed)));
    assert!(std::fs::read_dir(home.path()).unwrap().all(|entry| entry.unwrap().file_name() == "latido"));
}

#[test]
fn a_doctor_sees_a_state_directory_that_is_none() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("state"), "").unwrap();
    let output = command(LATIDO, home.path()).args(["doctor", "--state-dir", "state"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stdout).unwrap();
    let line = told.lines().find(|line| line.contains("state directory")).unwrap();
    assert!(line.starts_with("fail") && line.ends_with("is not a directory"), "{told}");
    assert!(told.contains("next: name another with --state-dir"), "{told}");
}
