//! A config that is read again while an agent runs.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::BARE;
use crate::support::{Agent, World, wait_until};

/// Resumes at once whatever happens to a job.
const EAGER: &str = "[policy.default.resume]\nbackoff = \"0s..0s\"\nmax_attempts = \"none\"\nmax_pickups = 100000\n\
                     max_identical_deaths = \"none\"\n";

/// Tells of a second copy: a lock that the kernel frees with the last process of an attempt is held by each of them.
const ALONE: &str = "exec 9>>token-$LATIDO_JOB; flock -n 9 || echo $LATIDO_JOB >> doubles; exec sleep 1000";

fn write(world: &World, config: &str) {
    fs::write(world.home().join("latido.toml"), config).unwrap();
}

/// Field case C137 (systemd/systemd#37482).
#[test]
fn c137_a_config_that_is_read_a_hundred_times_makes_no_second_copy_of_anything() {
    let world = World::new();
    let config = |round: usize| format!("{BARE}{EAGER}[check.round-{round}]\nevery = \"1h\"\n");
    let agent = Agent::start(&world, &config(0));
    let names = ["a", "b", "c", "d"];
    for name in names {
        world.detach(name, &[], ALONE);
    }
    for round in 1..=100 {
        write(&world, &config(round));
        agent.signal("HUP");
        let name = names[round % names.len()];
        match round % 3 {
            0 => drop(world.latido(&["stop", name, "--force"])),
            1 => drop(world.latido(&["resume", name])),
            _ => {
                let last = world.attempts(name).last().copied().unwrap();
                if let Some(process) = world.start(name, last).process {
                    let _gone = world.command("kill").args(["-9", &process.pid.to_string()]).status();
                }
            }
        }
    }
    wait_until("the last config", || world.latido(&["status", "round-100"]).code == Some(0));
    assert!(agent.said().matches("the config was read again").count() > 20);
    for name in names {
        let _runs = world.latido(&["resume", name]);
        wait_until("its attempt", || world.status(name).phase == latido_protocol::status::Phase::Running);
        let attempts = world.attempts(name);
        let live: Vec<u32> = attempts.into_iter().filter(|number| !world.living(name, *number).is_empty()).collect();
        assert!(live.len() == 1, "{name}: {live:?}");
    }
    assert_eq!(world.read("doubles"), "");
    agent.end();
}

#[test]
fn what_the_config_says_after_a_sighup_is_in_force_in_the_same_process_and_a_faulty_one_is_not() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    world.detach("a", &[], "exec sleep 1000");
    let inode = || fs::metadata(world.state().agent_socket()).unwrap().ino();
    let before = inode();
    write(&world, "[agent]\nno_such_setting = 1\n");
    agent.signal("HUP");
    wait_until("its word", || agent.said().contains("what is stays so"));
    assert!(agent.said().contains("no_such_setting"));
    write(&world, &format!("[agent]\nstate_dir = \"{}/other\"\n{BARE}", world.home().display()));
    write(&world, &format!("{BARE}[job.b]\ncommand = [\"sleep\", \"1000\"]\n[check.c]\nevery = \"1h\"\n"));
    agent.signal("HUP");
    wait_until("the job of the config", || world.is_running("b"));
    assert!(agent.status().is_some(), "the same process");
    assert_eq!((inode(), world.attempts("a")), (before, vec![1]));
    world.latido(&["beat", "c"]).ends_with(0);
    write(&world, &format!("{BARE}[job.b]\ncommand = [\"sleep\", \"1000\"]\n"));
    agent.signal("HUP");
    wait_until("the check to be forgotten", || world.latido(&["status", "c"]).code == Some(2));
    agent.end();
}
