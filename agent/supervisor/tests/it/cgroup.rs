//! Jobs in cgroups of their own. Who may not make one cannot run these tests, and is told so.

use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_process::Signal;
use latido_process::cgroup::{self, Hierarchies, Limits, Name, ROOT};
use latido_process::tree::{self, Tree};
use latido_protocol::attempt::Report;
use latido_protocol::files::{CgroupPlace, Enforcement, JobSettings, Orphans};
use latido_protocol::{Class, OutcomeKind};

use crate::support::{Attempt, Job, command, is_gone, untested, wait_until};

const MIB: u64 = 1024 * 1024;

/// Whether this host lets a limit be enforced. A test that cannot run says so aloud.
fn can(limits: Limits) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let made = Hierarchies::under(Path::new(ROOT)).make(&Name::new("probe", folder.path(), 1), limits).unwrap();
    let can = !made.cgroup.folders.is_empty() && made.unenforced.is_empty();
    cgroup::remove(&made.cgroup);
    if !can {
        untested(&format!("this host lets no cgroup be made that enforces {limits:?}: {:?}", made.unenforced));
    }
    can
}

fn memory(bytes: u64) -> Limits {
    Limits { memory_max: Some(bytes), ..Limits::default() }
}

/// A program that takes memory until it is killed.
const HOG: &str = "python3 -c 'b = []\nwhile True: b.append(bytearray(b\"x\") * 4194304)'";

fn folders(attempt: &Attempt) -> Vec<PathBuf> {
    attempt.start().cgroup.unwrap().folders.into_iter().map(|folder| folder.path).collect()
}

// OpenRC/openrc#1043
#[test]
fn c161_the_supervisor_is_outside_the_cgroup_of_its_job_and_removes_it() {
    if !can(Limits::default()) {
        return;
    }
    let attempt = Job::shell("echo $$ > pid; exec sleep 1000").start();
    let job: u32 = attempt.said("pid").parse().unwrap();
    let cgroup = attempt.start().cgroup.unwrap();
    let members = cgroup::members(&cgroup);
    assert!(members.contains(&job) && !members.contains(&attempt.supervisor), "{members:?}");
    attempt.stop(Duration::from_secs(10));
    attempt.end();
    for folder in &cgroup.folders {
        assert!(!folder.path.exists(), "{folder:?}");
    }
}

// eltmon/overdeck#3539, neochaotic/leoflow#1216, OpenRC/openrc#1043
#[test]
fn c157_c158_c161_out_of_memory_is_named_with_the_limit_and_ends_that_job_only() {
    if !can(memory(48 * MIB)) {
        return;
    }
    let attempt = Job::shell(&format!("{HOG}; exit $?")).with(|s| s.launch.memory_max = Some(48 * MIB)).start();
    let end = attempt.end();
    assert_eq!((end.outcome.kind, end.outcome.class), (OutcomeKind::OutOfMemory, Class::Limit), "{:?}", end.outcome);
    assert!(end.outcome.detail.contains("out of memory: its limit of 50331648 bytes"), "{}", end.outcome.detail);
    assert_eq!(end.outcome.code, Some(137), "what the shell said stays on record");
    let attempt = Job::shell(&format!("exec {HOG}")).with(|s| s.launch.memory_max = Some(48 * MIB)).start();
    let end = attempt.end();
    assert_eq!((end.outcome.kind, end.outcome.signal), (OutcomeKind::OutOfMemory, Some(9)), "{:?}", end.outcome);
    assert!(!end.outcome.detail.contains("from outside"), "{}", end.outcome.detail);
}

// WingedGuardian/GENesis-AGI#1775
#[test]
fn c160_memory_kills_of_one_job_are_counted_for_it_alone() {
    if !can(memory(48 * MIB)) {
        return;
    }
    let other = Job::shell("while [ ! -e go ]; do sleep 0.01; done; exit 1")
        .with(|s| s.launch.memory_max = Some(48 * MIB))
        .start();
    let hungry = Job::shell(&format!("exec {HOG}")).with(|s| s.launch.memory_max = Some(48 * MIB)).start();
    assert_eq!(hungry.end().outcome.kind, OutcomeKind::OutOfMemory);
    std::fs::write(other.folder.path().join("go"), "").unwrap();
    let end = other.end();
    assert_eq!((end.outcome.kind, end.outcome.detail.as_str()), (OutcomeKind::Exited, "exit status 1"));
}

#[test]
fn a_job_that_goes_on_to_a_good_end_without_a_killed_child_has_completed() {
    if !can(memory(48 * MIB)) {
        return;
    }
    let attempt = Job::shell(&format!("{HOG}; exit 0")).with(|s| s.launch.memory_max = Some(48 * MIB)).start();
    let end = attempt.end();
    assert_eq!(end.outcome.class, Class::Completed);
    assert!(end.outcome.detail.contains("1 of its processes were killed for want of memory"), "{}", end.outcome.detail);
}

#[test]
fn no_more_processes_are_made_than_pids_max_says() {
    if !can(Limits { pids_max: Some(6), ..Limits::default() }) {
        return;
    }
    let script = "import os\nn = 0\ntry:\n  while n < 50:\n    if os.fork() == 0: os.execvp('sleep', ['sleep', '100'])\n    n += 1\nexcept OSError: pass\nprint(n)";
    let attempt = Job::of(&["python3", "-c", script]).with(|s| s.launch.pids_max = Some(6)).start();
    assert_eq!(attempt.end().outcome.class, Class::Completed);
    assert_eq!(attempt.output(), b"5\n");
}

#[test]
fn a_program_that_forks_without_end_is_ended_whole() {
    if !can(Limits { pids_max: Some(40), ..Limits::default() }) {
        return;
    }
    let script = "import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nopen('ready', 'w').write('\\n')\nwhile True:\n  try:\n    if os.fork() == 0: os.setsid()\n  except OSError: pass";
    let attempt = Job::of(&["python3", "-c", script]).with(|s| s.launch.pids_max = Some(40)).start();
    attempt.said("ready");
    let cgroup = attempt.start().cgroup.unwrap();
    wait_until("it has forked", || cgroup::members(&cgroup).len() > 20);
    attempt.stop(Duration::ZERO);
    let end = attempt.end();
    // Mostly nothing comes to the supervisor any more, and then there is nothing to look for.
    let is_proven =
        ["no process of the attempt is left", "has no other child"].iter().any(|text| end.proof.contains(text));
    assert!(is_proven, "{}", end.proof);
    assert_eq!(cgroup::members(&cgroup).len(), 0);
}

#[test]
fn a_limit_that_cannot_be_enforced_refuses_the_launch_unless_best_effort_will_do() {
    let limited = |limits| {
        move |s: &mut JobSettings| {
            s.launch.memory_max = Some(MIB);
            s.launch.cgroup = CgroupPlace::None;
            s.launch.limits = limits;
        }
    };
    let attempt = Job::shell("echo > ran").with(limited(Enforcement::Required)).start();
    let Report::LaunchFailed { detail } = &attempt.report else { panic!("{:?}", attempt.report) };
    assert!(detail.contains("memory_max of 1048576") && detail.contains("best-effort"), "{detail}");
    assert_eq!(attempt.end().outcome.kind, OutcomeKind::LaunchFailed);
    assert!(!attempt.folder.path().join("ran").exists());
    let attempt = Job::shell("echo > ran; exec sleep 1000").with(limited(Enforcement::BestEffort)).start();
    attempt.said("ran");
    assert!(attempt.start().notes[0].contains("not enforced: memory_max of 1048576"), "{:?}", attempt.start().notes);
}

#[test]
fn where_no_cgroup_can_be_made_the_job_runs_without() {
    let empty = tempfile::tempdir().unwrap();
    let attempt =
        Job::shell("exec sleep 1000").with(|s| s.launch.cgroup = CgroupPlace::Under(empty.path().to_owned())).start();
    assert_eq!(attempt.start().cgroup, None);
    attempt.stop(Duration::from_secs(10));
    assert_eq!(attempt.end().outcome.class, Class::Stopped);
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
}

/// A process that left session, group, parent and environment, and let go of the lock.
const ESCAPES: &str = "env -i setsid -f sh -c 'for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval \"exec $fd>&-\"; done; exec < /dev/null > /dev/null 2>&1; echo $$ > escaped; exec /bin/sleep 1000'; echo > ready; exec sleep 1000";

#[test]
fn what_left_everything_else_behind_is_found_by_its_cgroup_after_the_supervisors_death() {
    if !can(Limits::default()) {
        return;
    }
    let attempt = Job::shell(ESCAPES).start();
    attempt.said("ready");
    let escaped = attempt.identity_in("escaped");
    attempt.kill_supervisor();
    let blind = Tree { cgroup: None, ..attempt.tree() };
    assert!(!tree::find(&blind).unwrap().processes.contains(&escaped), "the test hides nothing");
    assert!(tree::find(&attempt.tree()).unwrap().processes.contains(&escaped));
    let cgroup = folders(&attempt);
    let ended = tree::end(&attempt.tree(), Duration::from_secs(10)).unwrap();
    assert_eq!(ended.survivors, []);
    assert!(is_gone(&escaped));
    assert!(cgroup.iter().all(|folder| !folder.exists()), "an emptied cgroup is removed");
}

/// Lays out attempt 1 of a job whose attempt 9 left a process in its cgroup, and launches it.
fn launch_beside_a_leftover(orphans: Orphans) -> (Attempt, latido_protocol::files::Identity) {
    let folder = tempfile::tempdir().unwrap();
    let dir = Job::shell("echo > ran; exec sleep 1000").with(|s| s.orphans = orphans).lay_out(folder.path());
    let job = dir.job().unwrap();
    let name = Name::new("job", job.path(), 9);
    let made = Hierarchies::under(Path::new(ROOT)).make(&name, Limits::default()).unwrap();
    let entries: Vec<_> =
        made.cgroup.folders.iter().map(|folder| folder.path.join("cgroup.procs").display().to_string()).collect();
    let script = format!("for f in {}; do echo $$ > $f; done; echo $$ > left; exec sleep 1000", entries.join(" "));
    let mut child = command("sh").args(["-c", &script]).current_dir(folder.path()).spawn().unwrap();
    wait_until("it is in the cgroup", || {
        std::fs::read_to_string(folder.path().join("left")).is_ok_and(|text| text.ends_with('\n'))
    });
    let left = latido_process::identity::of(child.id()).unwrap().unwrap();
    let lock = latido_process::lock::Lock::take(&job.lock()).unwrap().unwrap();
    let starting = crate::support::start(&dir, lock);
    let supervisor = starting.pid;
    let report = crate::support::hear(starting);
    if orphans == Orphans::Hold {
        tree::signal(std::slice::from_ref(&left), Signal::KILL);
        child.wait().unwrap();
        cgroup::remove(&made.cgroup);
    } else {
        wait_until("the leftover is gone", || child.try_wait().unwrap().is_some());
        assert!(made.cgroup.folders.iter().all(|folder| !folder.path.exists()));
    }
    (Attempt { folder, dir, report, supervisor }, left)
}

// neochaotic/leoflow#1216
#[test]
fn c158_what_an_earlier_attempt_left_in_its_cgroup_is_ended_before_the_next_one_runs() {
    if !can(Limits::default()) {
        return;
    }
    let (attempt, left) = launch_beside_a_leftover(Orphans::End);
    assert!(matches!(attempt.report, Report::Started { .. }), "{:?}", attempt.report);
    assert!(is_gone(&left));
}

// neochaotic/leoflow#1216
#[test]
fn c158_where_orphans_are_held_a_leftover_refuses_the_launch_by_its_pid() {
    if !can(Limits::default()) {
        return;
    }
    let (attempt, left) = launch_beside_a_leftover(Orphans::Hold);
    let Report::Refused { detail } = &attempt.report else { panic!("{:?}", attempt.report) };
    assert!(detail.contains(&left.pid.to_string()) && detail.contains("attempt 9"), "{detail}");
    assert!(!attempt.folder.path().join("ran").exists());
}

/// A job that launches another attempt, as `latido run` inside of a job does.
const LAUNCHES: &str = "import fcntl, os, subprocess, sys, time
lock = open(sys.argv[3], 'w'); fcntl.flock(lock, fcntl.LOCK_EX)
keep = {n: v for n, v in os.environ.items() if not n.startswith('LATIDO_')}
p = subprocess.Popen([sys.argv[1], sys.argv[2]], stdin=lock, stdout=subprocess.PIPE, env={**keep, 'LATIDO_SUPERVISES': sys.argv[2]})
p.stdout.readline(); open('launched', 'w').write('\\n'); time.sleep(1000)";

#[test]
fn an_attempt_that_was_launched_from_inside_another_outlives_its_end() {
    if !can(Limits::default()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = Job::shell("exec sleep 1000").lay_out(folder.path());
    let lock = dir.job().unwrap().lock();
    let words = ["python3", "-c", LAUNCHES, env!("CARGO_BIN_EXE_latido-supervisor")];
    let mut outer = Job::of(&words);
    outer.command.extend([dir.path(), lock.as_path()].map(|path| path.display().to_string()));
    let outer = outer.start();
    outer.said("launched");
    let start: latido_protocol::files::Start = latido_protocol::disk::read(&dir.start()).unwrap().unwrap();
    let (inner, supervisor) = (start.process.unwrap(), start.supervisor.unwrap());
    let members = cgroup::members(&outer.start().cgroup.unwrap());
    assert!(!members.contains(&inner.pid) && !members.contains(&supervisor.pid), "{members:?}");
    outer.stop(Duration::ZERO);
    outer.end();
    assert!(!is_gone(&inner) && !is_gone(&supervisor));
    let report = Report::Started { pid: inner.pid };
    drop(Attempt { folder, dir, report, supervisor: supervisor.pid });
    assert!(is_gone(&inner));
}
