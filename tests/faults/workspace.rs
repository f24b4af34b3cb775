//! The directory that a job works in is its user's: nothing of it is removed, and none is taken in its place.

use std::fs;
use std::path::{Path, PathBuf};

use latido_protocol::Class;

use crate::agent::BARE;
use crate::support::{Agent, World, wait_until};

/// Runs git in a folder.
#[track_caller]
fn git(world: &World, folder: &Path, words: &[&str]) -> String {
    let own = ["-c", "user.name=work", "-c", "user.email=work@localhost", "-c", "init.defaultBranch=main"];
    let ran = world.command("git").args(own).args(words).current_dir(folder).output().unwrap();
    assert!(ran.status.success(), "{words:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

/// A work tree with work that exists nowhere else: committed, staged and neither.
fn work_tree(world: &World) -> PathBuf {
    let folder = world.home().join("tree");
    fs::create_dir(&folder).unwrap();
    git(world, &folder, &["init", "-q"]);
    for (file, step) in [("committed", "commit"), ("staged", "add"), ("untracked", "none")] {
        fs::write(folder.join(file), file).unwrap();
        if step != "none" {
            git(world, &folder, &["add", file]);
        }
        if step == "commit" {
            git(world, &folder, &["commit", "-q", "-m", "work"]);
        }
    }
    folder
}

/// The state of a work tree, as git tells it.
fn state(world: &World, folder: &Path) -> String {
    git(world, folder, &["status", "--porcelain"]) + &git(world, folder, &["log", "--oneline"])
}

/// Field case C288 (Untrivial-ai/agent-orchestrator#1739): a kill takes nothing of the work away, and a resume finds it.
#[test]
fn c288_a_killed_job_finds_its_work_tree_again_with_all_changes() {
    let world = World::new();
    let folder = work_tree(&world);
    let before = state(&world, &folder);
    world.detach("a", &["--cwd", folder.to_str().unwrap()], "ls > ../seen-$LATIDO_ATTEMPT; exec sleep 100");
    wait_until("the job", || world.read("seen-1").contains("untracked"));
    let start = world.start("a", 1);
    world.kill(start.process.unwrap().pid, "KILL");
    assert_eq!(world.end("a", 1).outcome.class, Class::Lost);
    world.latido(&["resume", "a"]).ends_with(0);
    wait_until("the second attempt", || world.read("seen-2").contains("untracked"));
    world.latido(&["stop", "a"]).ends_with(0);
    assert_eq!(state(&world, &folder), before);
}

/// Field case C290 (rjmurillo/ai-agents PR #4718): a removal takes records away and never a working directory; and no job
/// works where its removal would take it away.
#[test]
fn c290_a_removed_job_leaves_its_directory_and_none_works_among_its_own_records() {
    let world = World::new();
    let folder = work_tree(&world);
    let before = state(&world, &folder);
    world.detach("a", &["--cwd", folder.to_str().unwrap()], "exit 1");
    world.end("a", 1);
    let own = world.attempt("a", 1).path().to_owned();
    let refused = world.latido(&["run", "--name", "b", "--cwd", own.to_str().unwrap(), "--", "true"]).ends_with(2);
    assert!(refused.stderr.contains("latido's own state directory"), "{refused:?}");
    world.latido(&["remove", "a"]).ends_with(0);
    assert!(!own.exists());
    assert_eq!(state(&world, &folder), before);
}

/// Field case C291 (bobmatnyc/trusty-tools#5661, comment): the directory was cleaned up after a clean end.
#[test]
fn c291_a_resume_without_its_directory_is_refused_before_an_attempt_is_spent() {
    let world = World::new();
    let folder = world.home().join("tree");
    for with_agent in [false, true] {
        let agent = with_agent.then(|| Agent::start(&world, BARE));
        let name = if with_agent { "b" } else { "a" };
        fs::create_dir(&folder).unwrap();
        world.detach(name, &["--cwd", folder.to_str().unwrap()], "exit 0");
        world.end(name, 1);
        fs::remove_dir(&folder).unwrap();
        let refused = world.latido(&["resume", name]).ends_with(4);
        assert!(refused.stderr.contains(folder.to_str().unwrap()), "{refused:?}");
        assert_eq!(world.attempts(name), [1]);
        drop(agent);
    }
}
