//! Where a figure is measured: a state directory of its own, and an end to all that was started there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use latido::jobs::clock::Deadline;
use latido_process::{Pidfd, Signal};
use latido_protocol::disk;
use latido_protocol::files::Start;
use latido_protocol::layout::StateDir;

/// Longer than anything measured takes: what is not there by then does not come.
const WITHIN: Duration = Duration::from_secs(20);

/// The machine's clock that never jumps, which all processes share.
pub(crate) fn monotonic() -> Duration {
    span(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

/// The machine's calendar clock, which the journal's times are of.
pub(crate) fn wall() -> Duration {
    span(rustix::time::clock_gettime(rustix::time::ClockId::Realtime))
}

/// What this process has used of the CPUs, all threads together.
pub(crate) fn own_cpu() -> Duration {
    span(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime))
}

fn span(time: rustix::time::Timespec) -> Duration {
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Lets time pass in which nothing is asked.
pub(crate) fn rest(span: Duration) {
    let deadline = Deadline::after(span);
    while !deadline.has_passed() {
        deadline.rest(span);
    }
}

/// Asks every `turn` until there is an answer.
pub(crate) fn until<T>(what: &str, turn: Duration, mut ask: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    let deadline = Deadline::after(WITHIN);
    loop {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        ensure!(!deadline.has_passed(), "{what} did not come true within {WITHIN:?}");
        deadline.rest(turn);
    }
}

/// A child that does not outlive the measurement.
pub(crate) struct Guarded {
    child: Child,
    signal: Signal,
}

impl Guarded {
    /// Starts it; `signal` is what ends it together with its own children.
    pub(crate) fn start(command: &mut Command, signal: Signal) -> anyhow::Result<Self> {
        let child = command.spawn().with_context(|| format!("start {command:?}"))?;
        Ok(Self { child, signal })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the signal, without waiting for the end.
    pub(crate) fn signal(&self) {
        let _gone = rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), self.signal);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.signal();
        let _collected = self.child.wait();
    }
}

/// One line of a mark file: when the marked process ran its first instruction, and which process it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) at: Duration,
    pub(crate) pid: i32,
}

/// A folder with a state directory, beside the programs that are measured.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    programs: PathBuf,
    bench: PathBuf,
}

impl Place {
    pub(crate) fn new(programs: &Path) -> anyhow::Result<Self> {
        for program in ["latido", "latido-supervisor"] {
            ensure!(programs.join(program).is_file(), "{program} is not in {}: build it first", programs.display());
        }
        let bench = std::env::current_exe().context("find this program")?;
        Ok(Self { folder: tempfile::tempdir().context("make a folder")?, programs: programs.to_owned(), bench })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn state(&self) -> StateDir {
        StateDir::new(self.path("state"))
    }

    /// The config of the agent that was started last.
    pub(crate) fn config(&self) -> PathBuf {
        self.path("latido.toml")
    }

    /// A command that sees nothing of whoever measures, in particular no `RUST_BACKTRACE`.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        #[expect(clippy::disallowed_methods, reason = "a benchmark runs the programs, their floors and their peers")]
        let mut command = Command::new(program.as_ref());
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", self.folder.path());
        command.env("XDG_RUNTIME_DIR", self.folder.path()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// `latido` over this state directory.
    pub(crate) fn latido(&self, words: &[&str]) -> Command {
        let mut command = self.command(self.programs.join("latido"));
        let (head, tail) = words.split_first().map_or(("", words), |(head, tail)| (*head, tail));
        command.arg(head).arg("--state-dir").arg(self.state().path()).args(tail);
        command
    }

    /// This program as a job that marks its first instruction.
    pub(crate) fn marker(&self, file: &Path) -> Command {
        let mut command = self.command(&self.bench);
        command.arg("--mark").arg(file);
        command
    }

    /// The words that run the same.
    pub(crate) fn marker_words(&self, file: &Path) -> anyhow::Result<[String; 3]> {
        let text = |path: &Path| path.to_str().map(str::to_owned).context("use a path that is not UTF-8");
        Ok([text(&self.bench)?, "--mark".to_owned(), text(file)?])
    }

    /// This program as the floor of an agent's start.
    pub(crate) fn floor(&self) -> Command {
        let mut command = self.command(&self.bench);
        command.arg("--floor").arg(self.folder.path());
        command
    }

    /// Starts an agent with this config and waits until it answers.
    pub(crate) fn agent(&self, config: &str) -> anyhow::Result<Guarded> {
        let path = self.config();
        fs::write(&path, config)?;
        let mut command = self.latido(&["agent", "--config"]);
        let log = fs::File::options().create(true).append(true).open(self.path("agent.log"))?;
        let agent = Guarded::start(command.arg(path).stderr(log), Signal::TERM)?;
        let socket = self.state().agent_socket();
        until("the agent's answer", Duration::from_millis(5), || crate::start::answers(&socket).then_some(()))
            .with_context(|| fs::read_to_string(self.path("agent.log")).unwrap_or_default())?;
        Ok(agent)
    }

    /// Where a job's supervisor and process are, by the newest attempt.
    pub(crate) fn started(&self, job: &str) -> anyhow::Result<Start> {
        let attempts = self.state().job(&job.parse()?);
        let newest = latido::jobs::records::attempt_numbers(&attempts)?.into_iter().max().unwrap_or(1);
        disk::read(&attempts.attempt(newest).start())?.context("find no start.json")
    }

    /// Kills a job, its supervisor first, so that nothing ends or resumes it in an orderly way.
    pub(crate) fn end(&self, job: &str) {
        let Ok(start) = self.started(job) else { return };
        for identity in [start.supervisor, start.process].into_iter().flatten() {
            if let Ok(Some(process)) = Pidfd::open(&identity) {
                let _gone = process.signal(Signal::KILL);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for job in latido::jobs::records::job_names(&self.state()).unwrap_or_default() {
            self.end(job.as_str());
        }
    }
}

/// The marks of a file, oldest first.
pub(crate) fn marks(file: &Path) -> Vec<Mark> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mark = |line: &str| {
        let (at, pid) = line.split_once(' ')?;
        Some(Mark { at: Duration::from_nanos(at.parse().ok()?), pid: pid.parse().ok()? })
    };
    text.lines().filter_map(mark).collect()
}

/// Waits for the mark after the first `known` ones.
pub(crate) fn next_mark(file: &Path, known: usize) -> anyhow::Result<Mark> {
    until("the job's mark", Duration::from_millis(2), || marks(file).get(known).copied())
}

/// What a process occupies of the memory, shared pages by their share, in KiB.
pub(crate) fn pss_kib(pid: u32) -> anyhow::Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).context("find no Pss")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

/// What each thread of a process has used of the CPUs, by its id. Threads that have ended are not in it.
pub(crate) fn cpu_of(pid: u32) -> anyhow::Result<BTreeMap<OsString, Duration>> {
    let mut threads = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?;
        // A thread may end between the listing and the reading.
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let nanos = text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0);
        threads.insert(task.file_name(), Duration::from_nanos(nanos));
    }
    Ok(threads)
}
