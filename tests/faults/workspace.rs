//! The directory that a job works in is its user's: nothing of it is removed, and none is taken in its place.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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

/// Field case C287 (werf/werf PR #7733): a git that was killed in the middle leaves a lock, and every later run fails.
#[test]
fn c287_a_lock_that_a_killed_git_left_is_told_of_and_removed_where_that_is_asked_for() {
    let world = World::new();
    let folder = work_tree(&world);
    let lock = folder.join(".git/index.lock");
    // As git holds it: made by the attempt, and open until the kill.
    let script = "mkdir -p deep; cd deep; exec 8>$(git rev-parse --absolute-git-dir)/index.lock
        : > ../locked-$LATIDO_JOB; exec sleep 100";
    for (name, policy) in [("a", "default"), ("b", "remove"), ("c", "ignore")] {
        let _old = fs::remove_file(&lock);
        let config = world.home().join("latido.toml");
        let settings = |name: &str| format!("[policy.{name}.launch]\ngit_locks = \"{name}\"\n");
        fs::write(&config, settings("remove") + &settings("ignore")).unwrap();
        let config = config.to_str().unwrap();
        let options = ["--config", config, "--policy", policy, "--cwd", folder.to_str().unwrap()];
        world.detach(name, &options, script);
        let locked = folder.join(format!("locked-{name}"));
        wait_until("the lock", || locked.exists());
        // What is written in the last moment before an end may as well have been written after it.
        let written = fs::metadata(&lock).unwrap().modified().unwrap();
        wait_until("a later moment", || written.elapsed().is_ok_and(|age| age > Duration::from_millis(50)));
        world.kill(world.start(name, 1).process.unwrap().pid, "KILL");
        assert_eq!(world.end(name, 1).outcome.class, Class::Lost);
        assert!(lock.exists());
        world.latido(&["resume", name]).ends_with(0);
        let notes = world.start(name, 2).notes.join("; ");
        match policy {
            "default" => assert!(notes.contains("left behind") && notes.contains("git_locks"), "{notes}"),
            "remove" => assert!(notes.contains("left behind") && notes.contains("was removed"), "{notes}"),
            _ => assert_eq!(notes, ""),
        }
        if policy != "ignore" {
            assert!(world.latido(&["why", name]).stdout.contains("index.lock"));
        }
        world.latido(&["stop", name, "--force"]).ends_with(0);
    }
}

/// Field case C287: a lock that somebody may hold is never removed, whether its file is open or a git works in the tree.
#[test]
fn c287_a_lock_that_may_be_held_is_never_removed() {
    let world = World::new();
    let folder = work_tree(&world);
    let lock = folder.join(".git/index.lock");
    let config = world.home().join("latido.toml");
    fs::write(&config, "[policy.default.launch]\ngit_locks = \"remove\"\n").unwrap();
    world.detach("a", &["--config", config.to_str().unwrap(), "--cwd", folder.to_str().unwrap()], "exit 1");
    world.end("a", 1);
    let lock_of_before = || {
        let file = fs::File::options().append(true).create(true).open(&lock).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        file
    };
    let notes = || {
        world.latido(&["resume", "a"]).ends_with(0);
        let last = world.attempts("a").last().copied().unwrap();
        world.end("a", last);
        world.start("a", last).notes.join("; ")
    };
    // Open, by this very process.
    let open = lock_of_before();
    let held = notes();
    assert!(held.contains(&format!("pid {}", std::process::id())) && lock.exists(), "{held}");
    drop(open);
    fs::remove_file(&lock).unwrap();
    // Closed, while a git of the tree waits for its editor.
    let editor = "sh -c ': > ../editing; sleep 100' --";
    let mut git = world.command("git");
    git.args(["-c", "user.name=w", "-c", "user.email=w@localhost", "-c", &format!("core.editor={editor}")]);
    let git = git.args(["commit", "-a", "--allow-empty"]).current_dir(&folder).process_group(0);
    let mut git = git.spawn().unwrap();
    wait_until("the editor", || world.home().join("editing").exists() || folder.join("editing").exists());
    drop(lock_of_before());
    let held = notes();
    assert!(held.contains(&format!("pid {}", git.id())) && lock.exists(), "{held}");
    // With its editor.
    world.kill_group(git.id());
    git.wait().unwrap();
    // Young: written right after the end, whose moment the clock of files may not have reached yet. Somebody else's, as far
    // as can be told.
    let _left = fs::remove_file(&lock);
    let last = world.attempts("a").last().copied().unwrap();
    let lagging = SystemTime::UNIX_EPOCH + Duration::from_millis(world.end("a", last).ended_at.as_millis() - 4);
    fs::File::create(&lock).unwrap().set_modified(lagging).unwrap();
    let young = notes();
    assert!(young.contains("no attempt of this job is proven to have left it") && lock.exists(), "{young}");
    drop(lock_of_before());
    let gone = notes();
    assert!(gone.contains("was removed") && !lock.exists(), "{gone}");
}
