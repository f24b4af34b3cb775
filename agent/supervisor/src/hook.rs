//! The command that is run once after an ending was recorded, while the job's lock is still held.
//!
//! It runs at most once. Its record is durable before it runs, and whoever finds the record runs nothing: a supervisor that
//! is killed in between leaves `started` without an end, and a step that commits is not made a second time by guess. The
//! command inherits the job's lock and carries the attempt's mark, so that after such a kill no next attempt begins beside it.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use latido_process::lock::Lock;
use latido_process::run::{self, Ending};
use latido_process::setup::Setup;
use latido_process::{Pidfd, Signal};
use latido_protocol::disk;
use latido_protocol::files::{CarriageReturns, End, JobFile, LogLimits, OnEnd, OnEndRecord, Start};
use latido_protocol::layout::AttemptDir;
use latido_protocol::{FORMAT_VERSION, Span};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;

use crate::clock;
use crate::environment::Environment;
use crate::output::{Drained, Output};
use crate::stop;

/// What a hook prints goes to a log of its own, of this size and one older one.
const LOG: LogLimits = LogLimits { size_max: 1024 * 1024, files_max: 2, carriage_returns: CarriageReturns::Last };

/// What is kept of a launch for the command after the ending.
pub(crate) struct Plan {
    pub(crate) job: JobFile,
    pub(crate) umask: u32,
}

/// The command while it runs.
pub(crate) struct Hook {
    child: Pidfd,
    output: Output,
    record: OnEndRecord,
    run_for: Duration,
    kill_at: Duration,
    is_killed: bool,
}

impl Hook {
    /// Runs the command of a plan. `None`: there is none, it was run before, or it could not be run, which is recorded.
    pub(crate) fn begin(
        plan: &Plan,
        attempt: &AttemptDir,
        start: &Start,
        end: &End,
        lock: &Lock,
        now: Duration,
    ) -> Option<Self> {
        let on_end = plan.job.settings.on_end.as_ref()?;
        let record = OnEndRecord {
            version: FORMAT_VERSION,
            command: on_end.command.clone(),
            started_at: clock::wall(),
            ended_at: None,
            code: None,
            detail: None,
        };
        // It exists: it was run before. It cannot be written: run once would be no promise.
        disk::create(&attempt.on_end(), &record).ok()?;
        match run(plan, on_end, attempt, start, end, lock) {
            Ok((child, output)) => {
                let run_for = on_end.run_for.0;
                let kill_at = now.saturating_add(run_for);
                Some(Self { child, output, record, run_for, kill_at, is_killed: false })
            }
            Err(error) => {
                write(attempt, OnEndRecord { detail: Some(format!("cannot {error}")), ..record });
                None
            }
        }
    }

    /// Runs the command of a plan to its end, for whoever has nothing else to do meanwhile.
    pub(crate) fn run(plan: &Plan, attempt: &AttemptDir, start: &Start, end: &End, lock: &Lock) {
        let Some(mut hook) = Self::begin(plan, attempt, start, end, lock, clock::monotonic()) else { return };
        while !hook.finish(attempt) {
            hook.handle_timeout(clock::monotonic());
            let mut fds = vec![PollFd::new(hook.child(), PollFlags::IN)];
            fds.extend(hook.pipe().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
            let left = hook.poll_timeout().map(|at| at.saturating_sub(clock::monotonic()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            // An error (EINTR, ENOMEM) is an early pass.
            let _ = rustix::event::poll(&mut fds, timeout.as_ref());
            while hook.drain() == Drained::Some {}
        }
    }

    /// What to poll for: the command's end, and its output.
    pub(crate) fn child(&self) -> &Pidfd {
        &self.child
    }

    /// Where its output comes.
    pub(crate) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.output.pipe()
    }

    /// When it is killed.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        (!self.is_killed).then_some(self.kill_at)
    }

    /// Moves what it printed into its log.
    pub(crate) fn drain(&mut self) -> Drained {
        self.output.drain()
    }

    /// Kills it with its group when its time is over.
    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        if !self.is_killed && now >= self.kill_at {
            self.is_killed = true;
            self.kill_group();
        }
    }

    /// Records its end, if it has ended.
    pub(crate) fn finish(&mut self, attempt: &AttemptDir) -> bool {
        let Some(ending) = run::ending(&self.child) else { return false };
        // Its first process is not collected: its group is no other one.
        self.kill_group();
        while self.output.drain() == Drained::Some {}
        self.output.finish();
        let (code, how) = match ending {
            Ending::Exited(code) => (Some(code), format!("exit status {code}")),
            Ending::Signaled(signal) | Ending::Dumped(signal) => (None, stop::signal_name(signal)),
        };
        let detail = if self.is_killed { format!("killed after {}", Span(self.run_for)) } else { how };
        write(attempt, OnEndRecord { code, detail: Some(detail), ..self.record.clone() });
        true
    }

    fn kill_group(&self) {
        if let Some(group) = i32::try_from(self.child.identity().pid).ok().and_then(rustix::process::Pid::from_raw) {
            // ESRCH: nobody is left in it.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

/// A record that cannot be written stays as it is: started, and nobody knows how it ended.
fn write(attempt: &AttemptDir, record: OnEndRecord) {
    let _ = disk::replace(&attempt.on_end(), &OnEndRecord { ended_at: Some(clock::wall()), ..record });
}

fn run(
    plan: &Plan,
    on_end: &OnEnd,
    attempt: &AttemptDir,
    start: &Start,
    end: &End,
    lock: &Lock,
) -> Result<(Pidfd, Output), String> {
    let system = |error: rustix::io::Errno| format!("make a pipe for its output: {error}");
    let setup = Setup::of(&plan.job.settings.launch).map_err(|error| latido_protocol::chain(&error))?;
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(system)?;
    let environment = environment(plan, attempt, start, end, &setup);
    let command = run::Command {
        command: &on_end.command,
        directory: &start.directory,
        environment: &environment.0,
        output: write.as_fd(),
        keep: &[lock.as_fd()],
        umask: plan.umask,
        setup: &setup,
    };
    let child = run::run(&command).map_err(|error| latido_protocol::chain(&error))?;
    rustix::fs::fcntl_setfl(&read, rustix::fs::OFlags::NONBLOCK).map_err(system)?;
    Ok((child, Output::new(read, attempt.on_end_output(), None, LOG)))
}

/// The job's variables without its voice, and the ending. What there is not is empty.
fn environment(plan: &Plan, attempt: &AttemptDir, start: &Start, end: &End, setup: &Setup) -> Environment {
    let mut variables = Environment::new(&plan.job, start, attempt, setup.user.as_ref());
    for voice in ["LATIDO_SOCKET", "LATIDO_TOKEN", "NOTIFY_SOCKET", "WATCHDOG_USEC"] {
        variables.remove(voice);
    }
    let outcome = &end.outcome;
    let number = |number: Option<i32>| number.map(|number| number.to_string()).unwrap_or_default();
    let kind = serde_json::to_value(outcome.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
    let checkpoint = end.progress.as_ref().and_then(|progress| progress.checkpoint.as_ref());
    variables.set("LATIDO_OUTCOME", kind.unwrap_or_default());
    variables.set("LATIDO_CODE", number(outcome.code));
    variables.set("LATIDO_SIGNAL", number(outcome.signal));
    variables.set("LATIDO_CLASS", outcome.class.to_string());
    variables.set("LATIDO_DETAIL", &outcome.detail);
    variables.set("LATIDO_CHECKPOINT", checkpoint.unwrap_or(&start.checkpoint));
    variables
}
