//! How a job's process is made, as the command line and the config say it.

use std::fs;

use latido_protocol::disk;
use latido_protocol::files::JobFile;

use crate::support::{World, wait_until};

/// What the script of a job wrote.
#[track_caller]
fn written(world: &World, file: &str) -> String {
    wait_until("what the job writes", || world.read(file).ends_with("end\n"));
    world.read(file)
}

#[test]
fn a_job_has_the_mask_the_niceness_and_the_limits_that_were_asked_for() {
    let world = World::new();
    let options = ["--umask", "027", "--nice", "7", "--rlimit", "nofile=64..128", "--rlimit", "core=0"];
    world.detach("a", &options, "(umask; nice; ulimit -Sn; ulimit -Hn; ulimit -c; echo end) > said");
    let said = written(&world, "said");
    assert_eq!(said.lines().collect::<Vec<_>>(), ["0027", "7", "64", "128", "0", "end"]);
}

#[test]
fn a_clean_environment_holds_what_is_the_jobs_own() {
    let world = World::new();
    let config = "[job.a]\ncommand = [\"x\"]\nlaunch.environment = \"clean\"\n";
    fs::write(world.home().join("latido.toml"), config).unwrap();
    world.latido(&["config", "check", "--config", "latido.toml"]).ends_with(0);
    world.detach("a", &["--environment", "clean", "--env", "OWN=1"], "(env; echo end) > said");
    let said = written(&world, "said");
    assert!(said.contains("OWN=1\n") && said.contains("LATIDO_JOB=a\n"), "{said}");
    assert!(!said.contains("RUST_BACKTRACE"), "{said}");
    world.detach("b", &["--environment", "RUST_BACKTRACE"], "(env; echo end) > more");
    assert!(written(&world, "more").contains("RUST_BACKTRACE=0\n"));
}

/// What a policy, a job of the config and the command line say, the later before the earlier.
#[test]
fn the_command_line_goes_before_the_policy() {
    let world = World::new();
    let config = "[policy.default]\non_end = { command = [\"./commit\"], run_for = \"5s\" }\n\
                  [policy.default.launch]\nmemory_max = \"1GiB\"\nnice = 3\nlimits = \"best-effort\"\n";
    fs::write(world.home().join("latido.toml"), config).unwrap();
    let words = ["run", "--detach", "--config", "latido.toml", "--name", "a", "--memory-max", "none", "--", "true"];
    world.latido(&words).ends_with(0);
    let job: JobFile = disk::read(&world.state().job(&"a".parse().unwrap()).job()).unwrap().unwrap();
    assert_eq!((job.settings.launch.memory_max, job.settings.launch.nice), (None, Some(3)));
    assert_eq!(job.settings.on_end.unwrap().command, ["./commit"]);
}

#[test]
fn the_command_after_an_ending_knows_how_it_ended_and_comes_before_the_next_attempt() {
    let world = World::new();
    let hook = world.home().join("hook");
    fs::write(&hook, "#!/bin/sh\nenv | grep ^LATIDO_ >> hooked; echo end >> hooked\n").unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.detach("a", &["--on-end", "./hook"], "exit 3");
    let hooked = written(&world, "hooked");
    assert!(hooked.contains("LATIDO_JOB=a\n") && hooked.contains("LATIDO_ATTEMPT=1\n"), "{hooked}");
    assert!(hooked.contains("LATIDO_CLASS=failed\n") && hooked.contains("LATIDO_CODE=3\n"), "{hooked}");
}

/// What a message names of an option: the option, its value, or the name in its value.
fn named<'a>(options: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    options.iter().flat_map(|word| [*word, word.split('=').next().unwrap_or(word)])
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let world = World::new();
    for options in [
        &["--umask", "8"][..],
        &["--nice", "99"],
        &["--rlimit", "nofiles=1"],
        &["--rlimit", "nofile=5..1"],
        &["--memory-max", "12"],
        &["--memory-max", "0B"],
        &["--pids-max", "0"],
        &["--environment", "A=B"],
        &["--group", "staff"],
    ] {
        let mut words = vec!["run", "--name", "a"];
        words.extend(options);
        words.extend(["--", "true"]);
        let ran = world.latido(&words).ends_with(2);
        assert!(named(options).any(|word| ran.stderr.contains(word)), "{options:?}: {ran:?}");
    }
    assert!(!world.state().jobs().exists(), "something was made");
}

#[test]
fn a_user_that_is_not_there_is_told_at_the_launch() {
    let world = World::new();
    let ran = world.latido(&["run", "--name", "a", "--user", "nobody-of-this-name", "--", "true"]).ends_with(125);
    assert!(ran.stderr.contains("run as nobody-of-this-name"), "{ran:?}");
}

#[test]
fn a_dry_run_says_everything_of_the_launch() {
    let world = World::new();
    let options = ["--umask", "027", "--nice", "7", "--rlimit", "nofile=64..128", "--environment", "clean"];
    let config =
        "[policy.default.launch]\nsigpipe = \"ignore\"\ncgroup = \"none\"\npids_max = 20\nlimits = \"best-effort\"\n";
    fs::write(world.home().join("latido.toml"), config).unwrap();
    let mut words = vec!["run", "--dry-run", "--config", "latido.toml", "--memory-max", "2GiB"];
    words.extend(options);
    words.extend(["--", "true"]);
    let said = world.latido(&words).ends_with(0).stdout;
    let line = said.lines().find(|line| line.starts_with("launch")).unwrap();
    for part in [
        "umask 027",
        "nice 7",
        "nofile 64..128",
        "environment clean",
        "memory 2GiB",
        "20 processes",
        "limits best-effort",
        "SIGPIPE ignored",
        "no cgroup",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}
