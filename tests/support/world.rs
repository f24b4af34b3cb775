use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use latido::jobs::{inspect, records};
use latido_process::Signal;
use latido_process::identity::{self, Look};
use latido_process::tree::{self, Tree};
use latido_protocol::disk;
use latido_protocol::files::{End, Start};
use latido_protocol::layout::{AttemptDir, StateDir};
use latido_protocol::status::{Phase, StatusDocument, SubjectStatus};
use rustix::process::Pid;

use super::wait::wait_until;

/// The program under test.
const LATIDO: &str = env!("CARGO_BIN_EXE_latido");

/// Longer than any command of a test takes on a loaded machine, the longest of them a job that prints for a minute.
const ENDS_WITHIN: Duration = Duration::from_secs(180);

/// A home, a state directory and sockets of its own. Whatever was started in it is killed when it is dropped.
pub(crate) struct World {
    folder: tempfile::TempDir,
    state: StateDir,
}

/// How a command ended and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails the test unless it ended with this status.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::new(folder.path().join("state"));
        Self { folder, state }
    }

    /// The same, with its state directory somewhere else.
    pub(crate) fn with_state(state: &Path) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), state: StateDir::new(state) }
    }

    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn state(&self) -> &StateDir {
        &self.state
    }

    /// A command that sees nothing of the person who runs the tests.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        #[expect(clippy::disallowed_methods, reason = "tests run the program, and what plays its part in a fault")]
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", bin_folder().display()))
            .env("HOME", self.home())
            .env("XDG_RUNTIME_DIR", self.home())
            .env("LC_ALL", "C.UTF-8")
            .env("RUST_BACKTRACE", "0")
            .current_dir(self.home())
            .stdin(Stdio::null());
        command
    }

    /// `latido` over this world's state directory, not started yet.
    pub(crate) fn latido_command(&self, args: &[&str]) -> Command {
        assert!(
            bin_folder().join("latido-supervisor").is_file(),
            "latido-supervisor is not beside latido; build it with `cargo build -p latido-supervisor`"
        );
        let mut command = self.command(LATIDO);
        let (words, rest) = args.split_at(args.iter().position(|word| *word == "--").unwrap_or(args.len()));
        command.args(words).arg("--state-dir").arg(self.state.path()).args(rest);
        command
    }

    /// Runs `latido` to its end.
    #[track_caller]
    pub(crate) fn latido(&self, args: &[&str]) -> Ran {
        self.finish(self.spawn(args))
    }

    /// Runs `latido run --detach --name NAME [OPTION…] -- sh -c SCRIPT`.
    #[track_caller]
    pub(crate) fn detach(&self, name: &str, options: &[&str], script: &str) {
        let mut words = vec!["run", "--detach", "--name", name];
        words.extend(options);
        words.extend(["--", "sh", "-c", script]);
        let ran = self.latido(&words).ends_with(0);
        assert_eq!(ran.stdout, format!("{name}\n"));
    }

    /// Starts `latido` and leaves it running, its output piped.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.latido_command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits for the end of what was spawned. One that does not end is killed, and the test fails.
    #[track_caller]
    pub(crate) fn finish(&self, child: Child) -> Ran {
        let pid = Pid::from_child(&child);
        let (output_out, output) = mpsc::channel();
        // Ends with the child, so there is nothing to join.
        std::thread::spawn(move || output_out.send(child.wait_with_output()));
        match output.recv_timeout(ENDS_WITHIN) {
            Ok(output) => Ran::of(&output.unwrap()),
            Err(error) => {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
                panic!("pid {pid} did not end within {ENDS_WITHIN:?}: {error}");
            }
        }
    }

    /// The folder of an attempt.
    pub(crate) fn attempt(&self, job: &str, number: u32) -> AttemptDir {
        self.state.job(&job.parse().unwrap()).attempt(number)
    }

    /// `start.json` of an attempt.
    #[track_caller]
    pub(crate) fn start(&self, job: &str, number: u32) -> Start {
        disk::read(&self.attempt(job, number).start()).unwrap().unwrap()
    }

    /// `end.json` of an attempt, once it is there and its supervisor has ended too.
    #[track_caller]
    pub(crate) fn end(&self, job: &str, number: u32) -> End {
        let path = self.attempt(job, number).end();
        wait_until("the ending", || path.exists());
        let folder = self.state.job(&job.parse().unwrap());
        let attempt = records::read_attempt(&folder, number, &mut Vec::new());
        let supervisor = inspect::supervisor(&folder, &attempt);
        wait_until("the supervisor's end", || {
            supervisor.as_ref().is_none_or(|known| !matches!(identity::look(known), Look::Alive { .. }))
        });
        disk::read(&path).unwrap().unwrap()
    }

    /// What `latido status --json` says of a job, whatever its exit status.
    #[track_caller]
    pub(crate) fn status(&self, job: &str) -> SubjectStatus {
        let ran = self.latido(&["status", job, "--json"]);
        let document: StatusDocument =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        document.subjects.into_iter().next().unwrap()
    }

    /// Whether a job runs; one that nobody knows yet does not.
    pub(crate) fn is_running(&self, job: &str) -> bool {
        let document: Option<StatusDocument> =
            serde_json::from_str(&self.latido(&["status", job, "--json"]).stdout).ok();
        document.is_some_and(|document| document.subjects.iter().any(|subject| subject.phase == Phase::Running))
    }

    /// The numbers of a job's attempts.
    pub(crate) fn attempts(&self, job: &str) -> Vec<u32> {
        records::attempt_numbers(&self.state.job(&job.parse().unwrap())).unwrap()
    }

    /// What a file below the home holds; empty while it is not there.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.home().join(path)).unwrap_or_default()
    }

    /// Sends a signal by pid, as somebody outside would.
    pub(crate) fn kill(&self, pid: u32, signal: &str) {
        let done = self.command("sh").args(["-c", &format!("kill -{signal} {pid}")]).status().unwrap();
        assert!(done.success());
    }

    /// Kills a whole process group, as somebody outside would.
    pub(crate) fn kill_group(&self, leader: u32) {
        let done = self.command("sh").args(["-c", &format!("kill -s KILL -- -{leader}")]).status().unwrap();
        assert!(done.success());
    }

    /// Live processes of an attempt, the supervisor not counted.
    pub(crate) fn living(&self, job: &str, number: u32) -> Vec<inspect::Living> {
        let folder = self.state.job(&job.parse().unwrap());
        let attempt = records::read_attempt(&folder, number, &mut Vec::new());
        inspect::living(&inspect::tree_of(&folder, &attempt)).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for job in records::job_names(&self.state).unwrap_or_default() {
            let folder = self.state.job(&job);
            for number in records::attempt_numbers(&folder).unwrap_or_default() {
                let attempt = records::read_attempt(&folder, number, &mut Vec::new());
                end_all(&inspect::tree_of(&folder, &attempt));
            }
        }
    }
}

/// Kills the supervisor first, so that it records nothing and ends nothing by itself, and then the rest.
fn end_all(tree: &Tree) {
    for _ in 0..100 {
        // An attempt whose records a test has spoilt is found by its mark alone.
        let by_mark = Tree { process: None, supervisor: None, ..tree.clone() };
        let Ok(living) = tree::find(tree).or_else(|_| tree::find(&by_mark)) else { return };
        if living.supervisors.is_empty() && living.processes.is_empty() {
            return;
        }
        tree::signal(&living.supervisors, Signal::KILL);
        tree::signal(&living.processes, Signal::KILL);
    }
}

/// The folder of the programs under test.
fn bin_folder() -> PathBuf {
    Path::new(LATIDO).parent().unwrap().to_owned()
}
