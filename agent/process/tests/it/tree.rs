use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_process::identity::{Look, look, of};
use latido_process::tree::{Tree, end, find};
use latido_protocol::files::Identity;

use crate::support::{Kept, command, marked, wait_until};

fn attempt(folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("jobs/a/attempts/0001");
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn tree(attempt: &Path, process: Option<Identity>) -> Tree {
    Tree { attempt_dir: attempt.to_owned(), process, supervisor: None, cgroup: None }
}

/// The pids that the script wrote into its files, once they are there.
fn pids(folder: &Path, names: &[&str]) -> Vec<u32> {
    let read = |name: &&str| std::fs::read_to_string(folder.join(name)).ok()?.strip_suffix('\n')?.parse().ok();
    let mut found = Vec::new();
    wait_until("the script has written its pids", || {
        found = names.iter().filter_map(read).collect();
        found.len() == names.len()
    });
    found
}

fn is_gone(identity: &Identity) -> bool {
    matches!(look(identity), Look::Gone { .. })
}

// Supervisor/supervisor#1158
#[test]
fn c127_what_left_the_session_is_found_by_its_mark() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let script = format!("cd {}; setsid sh -c 'echo $$ > out; exec sleep 1000' & wait", folder.path().display());
    let leader = marked(&attempt, &script);
    let escaped = of(pids(folder.path(), &["out"])[0]).unwrap().unwrap();
    let tree = tree(&attempt, of(leader.pid()).unwrap());
    assert!(find(&tree).unwrap().processes.contains(&escaped));
    let ended = end(&tree, Duration::from_secs(10)).unwrap();
    assert_eq!(ended.survivors, []);
    assert!(is_gone(&escaped));
}

#[test]
fn a_child_without_the_mark_is_found_by_descent_and_a_stranger_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let script = format!("cd {}; env -i setsid sh -c 'echo $$ > out; exec sleep 1000' & wait", folder.path().display());
    let leader = marked(&attempt, &script);
    let stranger =
        Kept(command("sleep").arg("1000").env("LATIDO_DIR", folder.path().join("other/0001")).spawn().unwrap());
    let bare = of(pids(folder.path(), &["out"])[0]).unwrap().unwrap();
    let tree = tree(&attempt, of(leader.pid()).unwrap());
    let found = find(&tree).unwrap().processes;
    assert!(found.contains(&bare));
    assert!(found.iter().all(|process| process.pid != stranger.pid()));
    end(&tree, Duration::from_secs(10)).unwrap();
    assert!(is_gone(&bare) && of(stranger.pid()).unwrap().is_some());
}

// vybestack/llxprt-code#2791, vellum-ai/vellum-assistant PR #41688
#[test]
fn c128_c130_what_ignores_sigterm_is_killed_after_the_grace_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let script = format!(
        "cd {}; trap '' TERM; for i in 1 2 3; do sh -c \"echo \\$\\$ > $i; exec sleep 1000\" & done; echo $$ > 0; wait",
        folder.path().display()
    );
    let leader = marked(&attempt, &script);
    let all: Vec<_> =
        pids(folder.path(), &["0", "1", "2", "3"]).into_iter().map(|pid| of(pid).unwrap().unwrap()).collect();
    let ended = end(&tree(&attempt, of(leader.pid()).unwrap()), Duration::from_millis(200)).unwrap();
    assert!(ended.terminated >= 4 && ended.killed >= 4, "{ended:?}");
    assert_eq!(ended.survivors, []);
    assert!(all.iter().all(is_gone));
}

// F1bonacc1/process-compose#49
#[test]
fn c131_what_keeps_forking_while_it_is_ended_is_ended_too() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let script = format!(
        "cd {}; trap 'while :; do sleep 1000 & sleep 0.02; done' TERM; echo $$ > ready; while :; do sleep 0.02; done",
        folder.path().display()
    );
    let leader = marked(&attempt, &script);
    pids(folder.path(), &["ready"]);
    let tree = tree(&attempt, of(leader.pid()).unwrap());
    let ended = end(&tree, Duration::from_millis(300)).unwrap();
    assert_eq!(ended.survivors, []);
    assert_eq!(find(&tree).unwrap().processes, []);
}

/// What a process starts in order to clean up after itself has the grace that it has: it is not terminated under its hands.
#[test]
fn what_a_job_starts_to_clean_up_with_is_not_terminated() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let script = format!(
        "cd {}; trap 'sleep 0.2 && sh -c \"sleep 0.2 && setsid -w sleep 0.1 && echo 1 > cleaned\"; exit 0' TERM; \
         echo $$ > ready; while :; do sleep 0.02; done",
        folder.path().display()
    );
    let leader = marked(&attempt, &script);
    pids(folder.path(), &["ready"]);
    let ended = end(&tree(&attempt, of(leader.pid()).unwrap()), Duration::from_secs(30)).unwrap();
    assert_eq!((ended.killed, ended.survivors), (0, vec![]));
    assert_eq!(pids(folder.path(), &["cleaned"]), [1]);
}

/// What a terminated process left behind has nobody any more who would end it.
#[test]
fn what_outlives_the_process_that_started_it_in_the_grace_is_terminated() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let script = format!(
        "cd {}; trap 'sleep 1000 & exit 0' TERM; echo $$ > ready; while :; do sleep 0.02; done",
        folder.path().display()
    );
    let leader = marked(&attempt, &script);
    pids(folder.path(), &["ready"]);
    let ended = end(&tree(&attempt, of(leader.pid()).unwrap()), Duration::from_secs(600)).unwrap();
    assert_eq!((ended.killed, ended.survivors), (0, vec![]));
}

// inverse-inc/packetfence#3291
#[test]
fn c140_a_group_number_that_another_process_has_taken_over_is_not_ours() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let stranger = Kept(command("setsid").args(["sh", "-c", "sleep 1000 & wait"]).spawn().unwrap());
    let mut identity = of(stranger.pid()).unwrap().unwrap();
    identity.start_time -= 10;
    let tree = tree(&attempt, Some(identity));
    let living = find(&tree).unwrap();
    assert_eq!((living.processes, living.doubtful), (vec![], vec![]));
    assert_eq!(end(&tree, Duration::ZERO).unwrap().killed, 0);
    assert!(of(stranger.pid()).unwrap().is_some());
}

#[test]
fn members_of_a_group_without_its_leader_and_without_mark_are_doubtful() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let script =
        format!("cd {}; echo $$ > leader; sleep 1000 & echo $! > member; exec sleep 1000", folder.path().display());
    let mut leader = Kept(command("setsid").args(["sh", "-c", &script]).spawn().unwrap());
    let both = pids(folder.path(), &["leader", "member"]);
    let (first, member) = (of(both[0]).unwrap().unwrap(), of(both[1]).unwrap().unwrap());
    let tree = tree(&attempt, Some(first.clone()));
    assert!(find(&tree).unwrap().processes.contains(&member), "while the leader lives its group is certain");
    leader.0.kill().unwrap();
    leader.0.wait().unwrap();
    let living = find(&tree).unwrap();
    assert_eq!((living.processes, living.doubtful), (vec![], vec![member.clone()]));
    assert_eq!(end(&tree, Duration::ZERO).unwrap().survivors, std::slice::from_ref(&member));
    assert!(!is_gone(&member), "what is only doubtful gets no signal");
    latido_process::tree::signal(&[member], latido_process::Signal::KILL);
}

#[test]
fn nothing_of_an_earlier_boot_lives_and_another_machine_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let child = marked(&attempt, "exec sleep 1000");
    wait_until("the child has its mark", || find(&tree(&attempt, None)).unwrap().processes.len() == 1);
    let mut old = of(child.pid()).unwrap().unwrap();
    old.boot_id = "00000000-0000-0000-0000-000000000000".into();
    assert_eq!(find(&tree(&attempt, Some(old.clone()))).unwrap().processes, []);
    old.machine_id = "another".into();
    assert!(find(&tree(&attempt, Some(old))).is_err());
}

// contember/okena PR #166
#[test]
fn c144_a_zombie_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let child = marked(&attempt, "exit 0");
    wait_until("it has ended", || find(&tree(&attempt, None)).unwrap().processes.is_empty());
    let pid = rustix::process::Pid::from_child(&child.0);
    assert!(rustix::process::test_kill_process(pid).is_ok(), "it waits to be collected");
}

#[test]
fn an_attempt_launched_from_inside_is_passed_over_with_its_supervisor() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = attempt(&folder);
    let other = folder.path().join("jobs/b/attempts/0001");
    let script = format!(
        "cd {at}; LATIDO_SUPERVISES={other} sh -c 'echo $$ > sup; LATIDO_SUPERVISES= LATIDO_DIR={other} sleep 1000 & echo $! > job; wait' & wait",
        at = folder.path().display(),
        other = other.display()
    );
    let leader = marked(&attempt, &script);
    let inner = pids(folder.path(), &["sup", "job"]);
    let leader = of(leader.pid()).unwrap().unwrap();
    let found = find(&tree(&attempt, Some(leader.clone()))).unwrap();
    assert!(found.processes.iter().all(|process| !inner.contains(&process.pid)), "{found:?}");
    for pid in inner {
        let inner = of(pid).unwrap().unwrap();
        latido_process::tree::signal(&[inner], latido_process::Signal::KILL);
    }
}
