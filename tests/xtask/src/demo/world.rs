//! The demo's own little world: a temporary folder, an agent, a job. It ends with the demo, whatever happens.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use latido_protocol::SubjectName;
use latido_protocol::files::{End, Start};
use latido_protocol::layout::{AttemptDir, StateDir};
use latido_protocol::status::{StatusDocument, SubjectStatus};
use rustix::process::{Pid, Signal, kill_process};

use super::processes::{self, Process};
use crate::clock::wait_for;
use crate::say;
use crate::shell::{command, show};

/// The job's name.
pub(crate) const JOB: &str = "catalogue";

/// Between two looks at a file or a status.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// An agent that does not answer or end within this is broken.
const AGENT_PATIENCE: Duration = Duration::from_secs(20);

/// What a clean-up waits for killed processes to be gone.
const CLEAN_UP_PATIENCE: Duration = Duration::from_secs(10);

/// The folder and everything that runs in it.
pub(crate) struct World {
    folder: PathBuf,
    programs: PathBuf,
    state: StateDir,
    agent: Option<Child>,
    /// Removed at the end; set where the demo succeeded and nobody wants to look at it.
    pub(crate) remove: bool,
}

impl World {
    /// Makes the folder with its config.
    ///
    /// # Errors
    ///
    /// Names the path that cannot be written.
    pub(crate) fn new(programs: &Path) -> Result<Self> {
        let folder = unused_folder()?;
        let world = Self {
            state: StateDir::new(folder.join("state")),
            programs: programs.to_owned(),
            folder,
            agent: None,
            remove: false,
        };
        std::fs::write(world.config(), super::CONFIG)
            .with_context(|| format!("cannot write {}", world.config().display()))?;
        Ok(world)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The config that agent and command line read.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("latido.toml")
    }

    /// The state directory.
    pub(crate) fn state(&self) -> &StateDir {
        &self.state
    }

    /// The job's own database.
    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join("catalogue.db")
    }

    /// A program of the build.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// A call of the command line with this world's config and state directory.
    pub(crate) fn latido(&self, arguments: &[&str]) -> Command {
        let mut latido = command(self.program("latido"), &self.folder);
        latido.args(arguments).arg("--config").arg(self.config()).arg("--state-dir").arg(self.state.path());
        latido.stdin(Stdio::null());
        latido
    }

    /// Starts the agent and waits until it answers; returns its process.
    ///
    /// # Errors
    ///
    /// Fails where it ends or does not answer; what it said is in `agent.log`.
    pub(crate) fn start_agent(&mut self) -> Result<Process> {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.agent_log())
            .context("cannot open agent.log")?;
        let mut latido = self.latido(&["agent"]);
        latido.stdout(log.try_clone()?).stderr(log);
        let child = latido.spawn().with_context(|| format!("cannot start `{}`", show(&latido)))?;
        let pid = child.id();
        self.agent = Some(child);
        wait_for("the agent to answer", AGENT_PATIENCE, LOOK_EVERY, || {
            if let Some(status) = self.agent.as_mut().map(Child::try_wait).transpose()?.flatten() {
                bail!("the agent ended at once ({status}); it said:\n{}", self.agent_said());
            }
            let answered = self.status()?.agent.is_some_and(|agent| agent.identity.pid == pid);
            Ok(answered.then_some(()))
        })?;
        Process::at(pid).context("the agent answered and is gone")
    }

    /// Kills the agent with SIGKILL and collects it.
    ///
    /// # Errors
    ///
    /// Fails where no agent runs.
    pub(crate) fn kill_agent(&mut self) -> Result<()> {
        let mut agent = self.agent.take().context("no agent runs")?;
        agent.kill().context("cannot kill the agent")?;
        agent.wait().context("cannot collect the agent")?;
        Ok(())
    }

    /// Asks the agent to end with SIGTERM.
    ///
    /// # Errors
    ///
    /// Fails where it does not end by itself, or not with exit code 0.
    pub(crate) fn end_agent(&mut self) -> Result<()> {
        let mut agent = self.agent.take().context("no agent runs")?;
        let pid = i32::try_from(agent.id()).ok().and_then(Pid::from_raw).context("a pid that cannot be")?;
        kill_process(pid, Signal::TERM).context("cannot send SIGTERM to the agent")?;
        let ended = wait_for("the agent to end on SIGTERM", AGENT_PATIENCE, LOOK_EVERY, || Ok(agent.try_wait()?));
        if ended.is_err() {
            // It is still ours to end.
            self.agent = Some(agent);
        }
        let status = ended?;
        if !status.success() {
            bail!("the agent ended with {status} on SIGTERM; it said:\n{}", self.agent_said());
        }
        Ok(())
    }

    /// Asks `latido status --json`.
    ///
    /// # Errors
    ///
    /// Shows what came instead of the document.
    pub(crate) fn status(&self) -> Result<StatusDocument> {
        // Exit code 1 is an answer too: something is not well.
        let output = self.latido(&["status", "--json"]).output().context("cannot start latido status")?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("`latido status --json` did not print a document but:\n{}", text_of(&output)))
    }

    /// The job's part of the status.
    ///
    /// # Errors
    ///
    /// Fails where there is no such job.
    pub(crate) fn job(&self) -> Result<SubjectStatus> {
        let subjects = self.status()?.subjects;
        subjects.into_iter().find(|subject| subject.name.as_str() == JOB).context("the status does not know the job")
    }

    /// The directory of one attempt.
    ///
    /// # Errors
    ///
    /// None in practice: the name is a constant.
    pub(crate) fn attempt(&self, number: u32) -> Result<AttemptDir> {
        let name: SubjectName = JOB.parse()?;
        Ok(self.state.job(&name).attempt(number))
    }

    /// Who runs an attempt, as `start.json` has it. `None` before the job's process runs.
    ///
    /// # Errors
    ///
    /// Fails on a file that is no `start.json`.
    pub(crate) fn runner(&self, number: u32) -> Result<Option<Runner>> {
        let Some(start) = read::<Start>(&self.attempt(number)?.start())? else { return Ok(None) };
        let (Some(supervisor), Some(job)) = (&start.supervisor, &start.process) else { return Ok(None) };
        Ok(Some(Runner { supervisor: supervisor.into(), job: job.into(), start }))
    }

    /// How an attempt ended. `None` before that is recorded.
    ///
    /// # Errors
    ///
    /// Fails on a file that is no `end.json`.
    pub(crate) fn end(&self, number: u32) -> Result<Option<End>> {
        read(&self.attempt(number)?.end())
    }

    fn agent_log(&self) -> PathBuf {
        self.folder.join("agent.log")
    }

    fn agent_said(&self) -> String {
        std::fs::read_to_string(self.agent_log()).unwrap_or_default()
    }

    /// Kills what was started here and still lives: the agent first, so that nothing is resumed, then each supervisor,
    /// so that nothing is recorded as an ending of its own, then the job.
    fn end_all(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        let _ = wait_for("the demo's processes to be gone", CLEAN_UP_PATIENCE, LOOK_EVERY, || {
            let supervisors = (1..).map_while(|number| read::<Start>(&self.attempt(number).ok()?.start()).ok()?);
            let supervisors = supervisors.filter_map(|start| start.supervisor.as_ref().map(Process::from));
            let jobs = processes::under(self.state.path()).into_iter().map(|seen| seen.process);
            let live: Vec<Process> = supervisors.chain(jobs).filter(|process| process.is_alive()).collect();
            live.iter().for_each(|process| drop(process.kill()));
            Ok(live.is_empty().then_some(()))
        });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.end_all();
        if self.remove {
            let _ = std::fs::remove_dir_all(&self.folder);
        } else {
            say::line(format_args!("\nEverything of this demo is kept in {}", self.folder.display()));
        }
    }
}

/// Who runs an attempt.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) supervisor: Process,
    pub(crate) job: Process,
    pub(crate) start: Start,
}

/// Reads a file of the protocol; `None` where there is none.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match std::fs::read(path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map(Some).with_context(|| format!("cannot read {}", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(anyhow!(error).context(format!("cannot read {}", path.display()))),
    }
}

/// Both outputs of a command, for a message.
pub(crate) fn text_of(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Makes a folder that nobody uses: the pid is ours, the number grows until the name is free.
fn unused_folder() -> Result<PathBuf> {
    for number in 0..1000 {
        let folder = std::env::temp_dir().join(format!("latido-demo-{}-{number}", std::process::id()));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(anyhow!(error).context(format!("cannot make {}", folder.display()))),
        }
    }
    bail!("cannot find a free name for a folder in {}", std::env::temp_dir().display())
}
