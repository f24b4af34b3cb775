//! A supervisor as the first process of a pid namespace, as in a container. Where namespaces are refused these tests cannot
//! run, and say so.

use std::io::BufRead;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use latido_process::lock::Lock;
use latido_protocol::attempt::Report;
use latido_protocol::disk;
use latido_protocol::files::End;
use latido_protocol::layout::AttemptDir;

use crate::support::{Job, command, untested, wait_for, wait_until};

/// A namespace whose first process is a supervisor; it ends with its owner.
struct Namespace {
    folder: tempfile::TempDir,
    dir: AttemptDir,
    unshare: Child,
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // With `--kill-child` the first process, and with it the namespace, ends too.
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}

impl Namespace {
    fn start(job: &Job) -> Option<Self> {
        let probe = command("unshare").args(["-pf", "--mount-proc", "true"]).stderr(Stdio::null()).status();
        if !probe.is_ok_and(|status| status.success()) {
            untested("this host lets no pid namespace be made");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let dir = job.lay_out(folder.path());
        let lock = Lock::take(&dir.job().unwrap().lock()).unwrap().unwrap();
        let fd: OwnedFd = std::os::fd::AsFd::as_fd(&lock).try_clone_to_owned().unwrap();
        let mut unshare = command("unshare")
            .args(["-pf", "--mount-proc", "--kill-child", env!("CARGO_BIN_EXE_latido-supervisor")])
            .arg(dir.path())
            .env("LATIDO_SUPERVISES", dir.path())
            .stdin(Stdio::from(fd))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        drop(lock);
        let mut line = String::new();
        std::io::BufReader::new(unshare.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let report: Report = serde_json::from_str(&line).unwrap();
        assert!(matches!(report, Report::Started { .. }), "{report:?}");
        Some(Self { folder, dir, unshare })
    }

    fn end(&mut self) -> End {
        wait_until("the namespace ends", || self.unshare.try_wait().unwrap().is_some());
        disk::read(&self.dir.end()).unwrap().expect("a record of the ending")
    }

    fn said(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        wait_for(name, || std::fs::read_to_string(&path).ok()?.strip_suffix('\n').map(str::to_owned))
    }

    /// The pid of the supervisor as this side sees it.
    fn supervisor(&self) -> u32 {
        let own = self.unshare.id();
        children(own)[0]
    }
}

fn children(pid: u32) -> Vec<u32> {
    let path = PathBuf::from(format!("/proc/{pid}/task/{pid}/children"));
    let list = std::fs::read_to_string(path).unwrap_or_default();
    list.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Makes 100 orphans, and waits until none of them, running or defunct, is left.
const ORPHANS: &str = "i=0; while [ $i -lt 100 ]; do (sleep 0.0$((i % 10)) &); i=$((i+1)); done
n=1; while [ $n -gt 0 ]; do n=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c '(sleep)'); done; echo gone > gone";

// habitat-sh/habitat#4412, openabdev/openab#438
#[test]
fn c151_as_pid_1_no_zombie_of_a_hundred_orphans_stays() {
    let job = Job::shell(&format!("echo $PPID > parent; {ORPHANS}; while [ ! -e go ]; do sleep 0.01; done"));
    let Some(mut namespace) = Namespace::start(&job) else { return };
    assert_eq!(namespace.said("parent"), "1", "the supervisor is the first process");
    assert_eq!(namespace.said("gone"), "gone");
    std::fs::write(namespace.folder.path().join("go"), "").unwrap();
    assert_eq!(namespace.end().outcome.code, Some(0));
}

// PikoCI/pikoci#681
#[test]
fn c152_as_pid_1_the_jobs_own_code_is_right_among_orphans_with_others() {
    for code in [0, 1, 42, 99] {
        let script =
            format!("i=0; while [ $i -lt 100 ]; do (sh -c \"exit $((i % 7 + 100))\" &); i=$((i+1)); done; exit {code}");
        let Some(mut namespace) = Namespace::start(&Job::shell(&script)) else { return };
        assert_eq!(namespace.end().outcome.code, Some(code));
    }
}

// Start9Labs/start-technologies#3713
#[test]
fn c155_as_pid_1_an_injected_orphan_is_waited_for() {
    let Some(namespace) = Namespace::start(&Job::shell("exec sleep 1000")) else { return };
    let supervisor = namespace.supervisor();
    let before = children(supervisor);
    let script = format!("(sh -c 'echo > {}/injected; exec sleep 0.05' &)", namespace.folder.path().display());
    let entered = command("nsenter").args(["-t", &supervisor.to_string(), "-p", "sh", "-c", &script]).status().unwrap();
    assert!(entered.success());
    assert_eq!(namespace.said("injected"), "");
    wait_until("the orphan is collected", || children(supervisor) == before);
}

// PrefectHQ/prefect#3906
#[test]
fn c154_after_two_hundred_short_jobs_no_process_is_left() {
    for _ in 0..200 {
        let attempt = Job::shell("(true &) ; exit 0").start();
        let process = attempt.start().process.unwrap();
        attempt.end();
        for pid in [process.pid, attempt.supervisor] {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(!stat.contains(") Z "), "{stat}");
        }
        assert_eq!(latido_process::tree::find(&attempt.tree()).unwrap().processes, []);
    }
}
