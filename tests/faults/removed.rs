//! Files that are removed under a job that runs: the processes tell what the files no longer do.

use std::fs;

use crate::support::{Agent, World, wait_until};

/// Counts its starts, and stays.
const COUNTED: &str = "echo $$ >> runs; exec sleep 1000";

/// Starts `a` and returns the pids of its supervisor and its first process.
fn started(world: &World) -> [u32; 2] {
    world.detach("a", &[], COUNTED);
    wait_until("the job", || runs(world) == 1);
    let start = world.start("a", 1);
    [start.supervisor.unwrap().pid, start.process.unwrap().pid]
}

fn runs(world: &World) -> usize {
    world.read("runs").lines().count()
}

/// What its files cannot tell the world any more is killed by hand.
fn kill(world: &World, pids: &[u32]) {
    for pid in pids {
        let _gone = world.command("kill").args(["-9", &pid.to_string()]).status();
    }
}

/// Nobody starts a second copy, by resume or under the same name.
#[track_caller]
fn stays_the_only_one(world: &World, what: &str, pids: &[u32]) {
    let resumed = world.latido(&["resume", "a"]);
    assert!(matches!(resumed.code, Some(0 | 2 | 4)), "{what}: {resumed:?}");
    let again = world.latido(&["run", "--detach", "--name", "a", "--", "sh", "-c", COUNTED]).ends_with(4);
    let other = world.latido(&["run", "--detach", "--", "sh", "-c", "exit 0"]).ends_with(0);
    assert_eq!(other.stdout, "sh\n", "{what}: another job is not kept from running");
    assert_eq!(runs(world), 1, "{what}: {resumed:?}, {again:?}");
    if !world.state().job(&"a".parse().unwrap()).attempts().exists() {
        let named = pids.iter().any(|pid| again.stderr.contains(&format!("pid {pid}")));
        let named = named || pids.iter().any(|pid| resumed.stderr.contains(&format!("pid {pid}")));
        assert!(named && again.stderr.contains("next:"), "{what}: {resumed:?}, {again:?}");
    }
}

#[test]
fn whatever_is_removed_under_a_running_job_never_allows_a_second_copy() {
    for removed in [&["busy.json"][..], &["lock"], &["lock", "busy.json"], &["attempts"], &["attempts", "lock"], &["."]]
    {
        let world = World::new();
        let pids = started(&world);
        let folder = world.state().job(&"a".parse().unwrap());
        for name in removed {
            let path = folder.path().join(name);
            match *name {
                "." => fs::remove_dir_all(folder.path()),
                _ if path.is_dir() => fs::remove_dir_all(path),
                _ => fs::remove_file(path),
            }
            .unwrap();
        }
        stays_the_only_one(&world, &removed.join(" "), &pids);
        kill(&world, &pids);
    }
}

#[test]
fn an_orphan_whose_folder_was_removed_is_found_by_its_mark() {
    let world = World::new();
    let pids = started(&world);
    world.kill(pids[0], "KILL");
    fs::remove_dir_all(world.state().job(&"a".parse().unwrap()).path()).unwrap();
    stays_the_only_one(&world, "an orphan", &pids[1..]);
    kill(&world, &pids);
    let name = "a".parse().unwrap();
    wait_until("its end", || latido::jobs::inspect::marked(&world.state().job(&name)).unwrap().is_empty());
    world.detach("a", &[], "exit 0");
}

#[test]
fn the_mark_is_known_under_another_path_to_the_same_state_directory() {
    let home = World::new();
    let (real, link) = (home.home().join("real"), home.home().join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let world = World::with_state(&link);
    let pids = started(&world);
    fs::remove_dir_all(world.state().job(&"a".parse().unwrap()).path()).unwrap();
    let again = World::with_state(&real).latido(&["run", "--detach", "--name", "a", "--", "true"]).ends_with(4);
    assert!(again.stderr.contains(&format!("pid {}", pids[0])), "{again:?}");
    // A job of the same name in another state directory is another job.
    World::new().detach("a", &[], "exit 0");
    kill(&world, &pids);
}

#[test]
fn an_agent_starts_no_second_copy_of_a_job_whose_folder_was_removed() {
    let world = World::new();
    let config = format!("sink = []\nrule = []\n[job.a]\ncommand = [\"sh\", \"-c\", \"{COUNTED}\"]\n");
    let agent = Agent::start(&world, &config);
    wait_until("the job", || runs(&world) == 1 && world.start("a", 1).process.is_some());
    let start = world.start("a", 1);
    let pids = [start.supervisor.unwrap().pid, start.process.unwrap().pid];
    agent.end();
    fs::remove_dir_all(world.state().job(&"a".parse().unwrap()).path()).unwrap();
    let agent = Agent::start(&world, &config);
    wait_until("its word", || agent.said().contains("its files were removed under it"));
    assert_eq!(runs(&world), 1);
    kill(&world, &pids);
}
