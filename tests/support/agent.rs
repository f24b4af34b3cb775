use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use latido_protocol::disk;
use latido_protocol::journal::{Body, Entry};
use latido_protocol::status::{AgentStatus, StatusDocument};

use super::wait::wait_until;
use super::world::{Ran, World};

/// An agent of a world; killed when it is dropped.
pub(crate) struct Agent<'a> {
    world: &'a World,
    child: Option<Child>,
    log: PathBuf,
}

impl<'a> Agent<'a> {
    /// Starts an agent with this config and waits until it answers.
    #[track_caller]
    pub(crate) fn start(world: &'a World, config: &str) -> Self {
        let agent = Self::spawn(world, config);
        wait_until("the agent's answer", || agent.status().is_some());
        agent
    }

    /// Starts an agent and does not wait.
    pub(crate) fn spawn(world: &'a World, config: &str) -> Self {
        Self::spawn_with(world, config, |_| ())
    }

    /// The same, with its command changed before.
    pub(crate) fn spawn_with(world: &'a World, config: &str, change: impl FnOnce(&mut Command)) -> Self {
        Self::spawn_as(world, config, |path| {
            let mut command = world.latido_command(&["agent", "--config", path]);
            change(&mut command);
            command
        })
    }

    /// Starts an agent under limits, in the words of the shell's `ulimit`, and waits until it answers.
    #[track_caller]
    pub(crate) fn start_limited(world: &'a World, config: &str, limits: &str) -> Self {
        let agent = Self::spawn_as(world, config, |path| {
            let latido = world.latido_command(&["agent", "--config", path]);
            let mut command = world.command("sh");
            command
                .args(["-c", &format!("{limits}; exec \"$@\""), "sh"])
                .arg(latido.get_program())
                .args(latido.get_args());
            command
        });
        wait_until("the agent's answer", || agent.status().is_some());
        agent
    }

    /// Starts what `command` makes of the config's path.
    pub(crate) fn spawn_as(world: &'a World, config: &str, command: impl FnOnce(&str) -> Command) -> Self {
        let path = world.home().join("latido.toml");
        fs::write(&path, config).unwrap();
        let log = world.home().join("agent.log");
        let stderr = fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let mut command = command(path.to_str().unwrap());
        let child = command.env("LATIDO_LOG", "debug").stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        Self { world, child: Some(child), log }
    }

    pub(crate) fn world(&self) -> &'a World {
        self.world
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// What it says of itself; `None` while it does not answer.
    pub(crate) fn status(&self) -> Option<AgentStatus> {
        let ran = self.world.latido(&["status", "--json"]);
        let document: StatusDocument = serde_json::from_str(&ran.stdout).ok()?;
        document.agent.filter(|agent| agent.identity.pid == self.pid())
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.world.kill(self.pid(), signal);
    }

    /// Kills it with SIGKILL and collects it.
    pub(crate) fn kill(mut self) {
        self.signal("KILL");
        self.child.take().unwrap().wait().unwrap();
    }

    /// Ends it with SIGTERM; fails the test unless it ends well.
    #[track_caller]
    pub(crate) fn end(mut self) {
        self.signal("TERM");
        let status = self.child.take().unwrap().wait().unwrap();
        assert!(status.success(), "{status}: {}", self.said());
    }

    /// Waits for its end by itself.
    pub(crate) fn ended(mut self) -> std::process::ExitStatus {
        self.child.take().unwrap().wait().unwrap()
    }

    /// Its log.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Agent<'_> {
    #[expect(clippy::print_stdout, reason = "shown by the runner with the failed test")]
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = child.kill();
            let _gone = child.wait();
        }
        if std::thread::panicking() {
            println!("the agent said:\n{}", self.said());
        }
    }
}

impl World {
    /// The journal, as `latido events --json` prints it.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Entry> {
        let Ran { stdout, .. } = self.latido(&["events", "--json"]).ends_with(0);
        stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// The JSONL sink's lines.
    #[track_caller]
    pub(crate) fn jsonl(&self, file: &str) -> Vec<serde_json::Value> {
        let lines = disk::read_lines(&self.state().path().join(file)).unwrap();
        assert_eq!(lines.damaged, Vec::<u64>::new(), "damaged lines in {file}");
        lines.records
    }

    /// How often a kind of entry is in the journal for a subject.
    #[track_caller]
    pub(crate) fn count(&self, kind: &str, subject: &str) -> usize {
        self.events().iter().filter(|entry| entry.body.kind() == kind && entry.body.subject() == Some(subject)).count()
    }

    /// The verdicts that a subject has gone through, as the journal has them.
    #[track_caller]
    pub(crate) fn verdicts(&self, subject: &str) -> Vec<String> {
        let of = |entry: Entry| match entry.body {
            Body::Transition { subject: whose, current, .. } if whose.as_str() == subject => Some(current.to_string()),
            Body::Transition { .. }
            | Body::Beat { .. }
            | Body::Phase { .. }
            | Body::AttemptStarted { .. }
            | Body::AttemptEnded { .. }
            | Body::LeaseExpired { .. }
            | Body::Alert { .. }
            | Body::Agent { .. } => None,
        };
        self.events().into_iter().filter_map(of).collect()
    }
}
