//! From the starter's hands to a running job: what is written, in which order, before anything runs.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use latido_process::cgroup::{Hierarchies, Name};
use latido_process::identity::{self, IdentityError};
use latido_process::lock::{Lock, LockError};
use latido_process::run::{self, RunError};
use latido_process::setup::{Setup, SetupError, User};
use latido_process::signals::{self, Signals, SignalsError};
use latido_process::start::{self, Inherited};
use latido_process::{Pidfd, Signal};
use latido_protocol::attempt::Report;
use latido_protocol::disk::{self, ReadError, WriteError};
use latido_protocol::files::{Busy, End, JobFile, Spent, Start};
use latido_protocol::layout::{AttemptDir, JobDir};
use latido_protocol::{FORMAT_VERSION, Outcome, chain};
use rustix::fs::Mode;
use rustix::pipe::PipeFlags;

use crate::beat::Book;
use crate::clock::{self, Clock};
use crate::control::Control;
use crate::ending::{self, Facts, RecordError};
use crate::environment::Environment;
use crate::events::{Parts, Supervisor};
use crate::hook::{Hook, Plan};
use crate::notify::NotifySocket;
use crate::output::Output;
use crate::sockets;
use crate::stop::Cleared;
use crate::surroundings::{self, SurroundingsError};

/// Bytes that the output pipe holds: what a job may print after its supervisor died before its writes wait, and the most
/// that the kernel gives an ordinary user.
const PIPE_SIZE: usize = 1024 * 1024;

/// Random bytes of the attempt's token.
const TOKEN_BYTES: usize = 16;

/// Why the supervisor could not do its own work. Nothing was started.
#[derive(Debug, thiserror::Error)]
enum RefuseError {
    #[error("find out which attempt: give its directory as the one argument")]
    Argument,
    #[error("find the job of {attempt}")]
    Layout { attempt: PathBuf },
    #[error("start: {path} is missing")]
    Missing { path: PathBuf },
    #[error("read what the starter wrote")]
    Read { source: ReadError },
    #[error("write down the start")]
    Write { source: WriteError },
    #[error("check the job's lock")]
    Lock { source: LockError },
    #[error("start: the descriptor that was handed over does not hold {path}")]
    NotLocked { path: PathBuf },
    #[error("start: {path} says that the attempt has a supervisor")]
    Repeated { path: PathBuf },
    #[error("identify itself")]
    Identity { source: IdentityError },
    #[error("set up signals")]
    Signals { source: SignalsError },
    #[error("make {what}")]
    System { what: &'static str, source: io::Error },
    #[error("make the sockets in {folder}")]
    Sockets { folder: PathBuf, source: io::Error },
    #[error("record that the job could not be launched")]
    Record { source: RecordError },
    #[error(transparent)]
    Surroundings(#[from] SurroundingsError),
}

/// Launches the job and reports it. `None`: it was reported that nothing runs.
pub(crate) fn launch() -> Option<Supervisor> {
    let mut inherited = start::inherit().ok()?;
    let umask = rustix::process::umask(Mode::from_raw_mode(0o077)).bits();
    if has_ended() {
        // Somebody else recorded the ending. He hears nothing but the end of this process.
        if let Ok(ended) = Ended::take_over(inherited.lock, umask) {
            ended.follow();
        }
        return None;
    }
    // A starter that waits for the disk says when the attempt is recorded.
    let ready = Ready::new(umask);
    if !inherited.may_go() {
        return None;
    }
    let Inherited { lock, mut report, .. } = inherited;
    let launched = ready.and_then(|ready| Launch::prepare(ready, lock)).and_then(Launch::go);
    let (said, supervisor, failed) = match launched {
        Ok(Launched::Runs { pid, supervisor }) => (Report::Started { pid }, Some(*supervisor), None),
        Ok(Launched::Failed { detail, ended }) => (Report::LaunchFailed { detail }, None, Some(ended)),
        Err(error) => (Report::Refused { detail: format!("cannot {}", chain(&error)) }, None, None),
    };
    tell(&mut report, &said);
    if let Some(resumed) = supervisor.as_ref().and_then(Supervisor::resumed) {
        ending::sync_earlier(resumed);
    }
    if let Some(ended) = failed {
        ended.follow();
    }
    supervisor
}

/// A starter that is gone does not hear it, and what it would have heard is on the disk.
fn tell(pipe: &mut File, report: &Report) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let _ = pipe.write_all(&line);
    }
}

enum Launched {
    Runs { pid: u32, supervisor: Box<Supervisor> },
    Failed { detail: String, ended: Box<Ended> },
}

/// An attempt whose ending is on the disk, under the lock of its job.
struct Ended {
    plan: Plan,
    attempt: AttemptDir,
    start: Start,
    end: End,
    lock: Lock,
}

impl Ended {
    /// Takes what another recorder hands over.
    fn take_over(lock: OwnedFd, umask: u32) -> Result<Self, RefuseError> {
        let attempt = AttemptDir::new(std::env::args_os().nth(1).ok_or(RefuseError::Argument)?);
        let job_dir = attempt.job().ok_or_else(|| RefuseError::Layout { attempt: attempt.path().to_owned() })?;
        let (job, start, end) = (read(&job_dir.job())?, read(&attempt.start())?, read(&attempt.end())?);
        let lock = inherited(lock, &job_dir)?;
        leave_the_starter()?;
        Ok(Self { plan: Plan { job, umask }, attempt, start, end, lock })
    }

    /// Runs the command after the ending, where there is one that was not run.
    fn follow(&self) {
        Hook::run(&self.plan, &self.attempt, &self.start, &self.end, &self.lock);
    }
}

fn has_ended() -> bool {
    std::env::args_os().nth(1).is_some_and(|attempt| AttemptDir::new(attempt).end().exists())
}

fn inherited(lock: OwnedFd, job: &JobDir) -> Result<Lock, RefuseError> {
    Lock::inherited(lock, &job.lock())
        .map_err(|source| RefuseError::Lock { source })?
        .ok_or_else(|| RefuseError::NotLocked { path: job.lock() })
}

/// What is ready before the attempt is recorded.
struct Ready {
    attempt: AttemptDir,
    job_dir: JobDir,
    job: JobFile,
    signals: Signals,
    umask: u32,
    hierarchies: Hierarchies,
    /// what is done to the process, or why it cannot be
    setup: Result<Setup, SetupError>,
}

impl Ready {
    fn new(umask: u32) -> Result<Self, RefuseError> {
        let attempt = AttemptDir::new(std::env::args_os().nth(1).ok_or(RefuseError::Argument)?);
        let job_dir = attempt.job().ok_or_else(|| RefuseError::Layout { attempt: attempt.path().to_owned() })?;
        let job: JobFile = read(&job_dir.job())?;
        let signals = leave_the_starter()?;
        let hierarchies = surroundings::hierarchies(&job.settings);
        hierarchies.leave();
        let setup = Setup::of(&job.settings.launch);
        Ok(Self { attempt, job_dir, job, signals, umask, hierarchies, setup })
    }
}

/// All that is ready before the job runs.
struct Launch {
    attempt: AttemptDir,
    job_dir: JobDir,
    job: JobFile,
    start: Start,
    lock: Lock,
    signals: Signals,
    umask: u32,
    token: String,
    /// whom the job runs as, where it is somebody else
    user: Option<User>,
    control: Control,
    notify: NotifySocket,
    hierarchies: Hierarchies,
    /// what is done to the process, or why it cannot be
    setup: Result<Setup, SetupError>,
}

impl Launch {
    fn prepare(ready: Ready, lock: OwnedFd) -> Result<Self, RefuseError> {
        let Ready { attempt, job_dir, job, signals, umask, hierarchies, setup } = ready;
        let mut start: Start = read(&attempt.start())?;
        if start.supervisor.is_some() {
            return Err(RefuseError::Repeated { path: attempt.start() });
        }
        let lock = inherited(lock, &job_dir)?;
        let name = cgroup_name(&start, &job_dir);
        surroundings::end_leftovers(&hierarchies, &name, &job_dir, job.settings.orphans)?;
        let user = setup.as_ref().ok().and_then(|setup| setup.user.clone());
        if let Some(user) = &user {
            // The starter's folder is private to it; this one is for the job's user.
            let _ = std::fs::remove_dir(&start.sockets);
            start.sockets = surroundings::sockets_of(user, None)?;
        }
        let token = token()?;
        let (control, notify) = sockets::bind(&start.sockets, &token, user.as_ref())
            .map_err(|source| RefuseError::Sockets { folder: start.sockets.clone(), source })?;

        let own = identity::own().map_err(|source| RefuseError::Identity { source })?;
        start.supervisor = Some(own.clone());
        // After a loss of power either content will do: nothing of the attempt outlives it.
        disk::replace_whole(&attempt.start(), &start).map_err(|source| RefuseError::Write { source })?;
        let busy = Busy { version: FORMAT_VERSION, attempt: start.attempt, epoch: start.epoch, supervisor: own };
        // An index, which the lock and the start bear out: not worth a wait for the disk.
        disk::replace_quick(&job_dir.busy(), &busy).map_err(|source| RefuseError::Write { source })?;
        Ok(Self {
            attempt,
            job_dir,
            job,
            start,
            lock,
            signals,
            umask,
            token,
            user,
            control,
            notify,
            hierarchies,
            setup,
        })
    }

    /// Runs the job. Who reads `Started` finds it on the disk.
    fn go(mut self) -> Result<Launched, RefuseError> {
        let (pipe, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .map_err(|source| RefuseError::System { what: "the output pipe", source: source.into() })?;
        // Beyond an administrator's limit the pipe keeps its usual 64 KiB.
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_SIZE);
        let child = match self.run(&pipe, &write) {
            Ok(child) => child,
            Err(error) => return self.fail(&error),
        };
        drop(write);
        // Non-blocking belongs to this end alone: a pipe's two ends are two descriptions.
        let set = rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK);
        self.start.process = Some(child.identity().clone());
        self.start.started_at = Some(clock::wall());
        let written = disk::replace_whole(&self.attempt.start(), &self.start);
        if let Err(source) = written {
            kill(&child);
            let _ = std::fs::remove_file(self.job_dir.busy());
            return Err(RefuseError::Write { source });
        }
        if let Err(source) = set {
            kill(&child);
            let _ = std::fs::remove_file(self.job_dir.busy());
            return Err(RefuseError::System { what: "the output pipe non-blocking", source: source.into() });
        }
        let clock = Clock::start();
        let mut book = Book::new(self.attempt.clone(), &self.start, &self.job.settings, clock.now());
        // Tried again within a second by the loop.
        let _ = book.write_last(clock.now(), 0);
        let output = Output::new(pipe, self.attempt.output(), Some(self.attempt.output_index()), self.job.settings.log);
        let pid = child.identity().pid;
        let is_planned = self.job.settings.on_end.is_some();
        let (grace, linger, run_for) =
            (self.job.settings.grace.0, self.job.settings.linger.0, self.job.settings.run_for);
        let plan = is_planned.then(|| Box::new(Plan { job: self.job, umask: self.umask }));
        let supervisor = Supervisor::new(Parts {
            attempt: self.attempt,
            job_dir: self.job_dir,
            start: self.start,
            grace,
            linger,
            run_for,
            lock: self.lock,
            signals: self.signals,
            token: self.token,
            user: self.user,
            control: self.control,
            notify: self.notify,
            clock,
            book,
            output,
            child,
            plan,
        });
        Ok(Launched::Runs { pid, supervisor: Box::new(supervisor) })
    }

    fn run(&mut self, read: &OwnedFd, write: &OwnedFd) -> Result<Pidfd, RunError> {
        let mut setup = std::mem::replace(&mut self.setup, Ok(Setup::default()))?;
        let name = cgroup_name(&self.start, &self.job_dir);
        surroundings::enclose(&self.hierarchies, &name, &self.job.settings, &mut self.start, &mut setup)?;
        if let Some(user) = &setup.user {
            // Its output by name (`/dev/stdout`) is opened anew, with the rights of the pipe itself.
            let (uid, gid) = (rustix::fs::Uid::from_raw(user.uid), rustix::fs::Gid::from_raw(user.gid));
            rustix::fs::fchown(write, Some(uid), Some(gid))
                .map_err(|source| SetupError::Become { user: user.name.clone(), source: source.into() })?;
        }
        let mut environment = Environment::new(&self.job, &self.start, &self.attempt, setup.user.as_ref());
        environment.add_voice(&self.job, &self.start, &self.token);
        run::run(&run::Command {
            command: &self.start.command,
            directory: &self.start.directory,
            environment: &environment.0,
            output: write.as_fd(),
            keep: &[self.lock.as_fd(), read.as_fd()],
            umask: self.umask,
            setup: &setup,
        })
    }

    /// Records that the job never ran.
    fn fail(self, error: &RunError) -> Result<Launched, RefuseError> {
        let detail = format!("cannot {}", chain(error));
        let outcome = Outcome::launch_failed(detail.clone());
        let facts = Facts {
            outcome,
            progress: None,
            spent: Spent::default(),
            stopped_for: None,
            // Not asked for: nothing was started.
            cleared: Cleared::Childless,
            lost: 0,
            ran_for: None,
        };
        let end = ending::compose(&self.attempt, &self.start, facts);
        ending::record(&self.attempt, &self.start, &end).map_err(|source| RefuseError::Record { source })?;
        ending::clear_away(&self.attempt, &self.start);
        let plan = Plan { job: self.job, umask: self.umask };
        let ended = Ended { plan, attempt: self.attempt, start: self.start, end, lock: self.lock };
        Ok(Launched::Failed { detail, ended: Box::new(ended) })
    }
}

/// Our own child, not yet collected: its group cannot be another one.
fn kill(child: &Pidfd) {
    if let Some(group) = i32::try_from(child.identity().pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

/// Makes this process independent of who started it: session, directory, signals.
fn leave_the_starter() -> Result<Signals, RefuseError> {
    let system = |what| move |source: rustix::io::Errno| RefuseError::System { what, source: source.into() };
    let signals = |source| RefuseError::Signals { source };
    // EPERM: it leads a group of its own already, which is as good.
    let _ = rustix::process::setsid();
    rustix::process::chdir("/").map_err(system("the root directory its own"))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(system("itself the parent of orphans"))?;
    signals::ignore(Signal::HUP).map_err(signals)?;
    signals::ignore(Signal::INT).map_err(signals)?;
    // A write beyond a limit of file size is an error like a full disk, and no reason to die.
    signals::ignore(Signal::XFSZ).map_err(signals)?;
    Signals::listen(&[Signal::TERM, Signal::CHILD]).map_err(signals)
}

fn cgroup_name(start: &Start, job: &JobDir) -> Name {
    Name::new(start.job.as_str(), job.path(), start.attempt)
}

fn token() -> Result<String, RefuseError> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    // Up to 256 bytes come whole.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|source| RefuseError::System { what: "a token", source: source.into() })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, RefuseError> {
    disk::read(path)
        .map_err(|source| RefuseError::Read { source })?
        .ok_or_else(|| RefuseError::Missing { path: path.to_owned() })
}
