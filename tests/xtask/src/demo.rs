//! `cargo xtask demo`: a real job is killed at every level and goes on where it was; the demo checks what it shows.

mod catalogue;
mod checks;
mod copies;
mod processes;
mod records;
mod show;
mod world;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use latido_protocol::status::Phase;

use self::catalogue::Files;
use self::checks::Adoption;
use self::copies::Watch;
use self::processes::Process;
use self::records::{Journal, Lines, Sql};
use self::show::{Show, percent};
use self::world::{JOB, Runner, World, text_of};
use crate::clock::wait_for;
use crate::test;

/// How long an undisturbed run takes, so that each kill meets a job at work on any machine.
const PACE: &str = "24s";

/// What the whole job may take, three kills and a slow machine included.
const JOB_PATIENCE: Duration = Duration::from_secs(240);

/// What sinks may take to record the last entry.
const SINK_PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at the status.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Fewer files than this and a commit of 200 files is a large part of the whole.
const FILES_WISHED: usize = 2_000;

/// What agent and command line read. Everything a plugin may do is granted here.
const CONFIG: &str = r#"# Written by `cargo xtask demo`.

[agent]
history_every = "2s"

[policy.default]
interval = "5s"
ttl = "15s"

[[sink]]
name = "history"
source = "builtin:sqlite"
grant.sql.main = "history.db"

[[sink]]
name = "entries"
source = "builtin:jsonl"
grant.files.main = "entries.jsonl"

[[rule]]
name = "liveness"
source = "builtin:liveness"

[[strategy]]
name = "script"
source = "builtin:script"
"#;

/// What may be chosen.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The directory that the job catalogues
    #[arg(default_value = "/usr/share")]
    directory: PathBuf,
    /// Keep the demo's folder although all went well
    #[arg(long)]
    keep: bool,
    /// Build nothing: use the programs as they lie beside xtask
    #[arg(long)]
    built: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { directory: PathBuf::from("/usr/share"), keep: false, built: true }
    }
}

/// When a kill has to happen, as fractions of the whole job.
#[derive(Clone, Copy, Debug)]
struct Window {
    what: &'static str,
    attempt: u32,
    from: f64,
    until: f64,
}

/// Runs the demo with the programs that are built beside xtask.
///
/// # Errors
///
/// Fails at the first step that does not do what it is there to show.
pub(crate) fn run(options: &Options) -> Result<()> {
    let interrupted = on_interrupt()?;
    let directory =
        options.directory.canonicalize().with_context(|| format!("cannot find {}", options.directory.display()))?;
    let world = World::new(&crate::programs()?)?;
    let mut demo = Demo { world, show: Show::new()?, interrupted, directory };
    let mut result = demo.story();
    if demo.interrupted.load(Ordering::Relaxed) {
        // Ctrl-C reaches the agent and the command line too; what failed because of it is not the news.
        result = Err(anyhow!("interrupted"));
    }
    demo.show.finish();
    demo.world.remove = result.is_ok() && !options.keep;
    result
}

/// Ctrl-C ends the demo at its next look, so that what it started is ended with it.
fn on_interrupt() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).context("cannot listen for Ctrl-C")?;
    Ok(interrupted)
}

struct Demo {
    world: World,
    show: Show,
    interrupted: Arc<AtomicBool>,
    directory: PathBuf,
}

impl Demo {
    fn story(&mut self) -> Result<()> {
        let files = catalogue::list(&self.directory)?;
        self.show.fact(&format!("{} holds {} files", self.directory.display(), files.paths.len()));
        if files.paths.len() < FILES_WISHED {
            self.show.fact(&format!(
                "that is fewer than {FILES_WISHED}: progress comes in large steps, and it still has to work"
            ));
        }

        self.show.step(1, "An agent is started with a config and a state directory of its own.");
        let agent = self.world.start_agent()?;
        self.show.fact(&format!("agent: pid {}, everything in {}", agent.pid, self.world.folder().display()));

        self.show.step(2, "A job is started: it hashes every file and records it, committing every 200 files.");
        self.launch()?;
        let watch = Watch::start(self.world.state().path(), &self.world.program("catalogue"));

        self.show.step(3, "At about 25 % the job is killed with SIGKILL.");
        let first =
            self.kill_in(Window { what: "the job", attempt: 1, from: 0.25, until: 0.40 }, |runner| runner.job)?;
        let second = self.next_attempt(2)?;
        checks::resumed(&first.start, &self.world.end(1)?.context("attempt 1 has no ending")?, &second.start)?;

        self.show.step(4, "At about 50 % the supervisor is killed with SIGKILL: the job is an orphan.");
        let second = self
            .kill_in(Window { what: "the supervisor", attempt: 2, from: 0.50, until: 0.65 }, |runner| {
                runner.supervisor
            })?;
        let third = self.next_attempt(3)?;
        ensure!(!second.job.is_alive(), "attempt 3 runs, and the orphan of attempt 2 still lives");
        checks::resumed(&second.start, &self.world.end(2)?.context("attempt 2 has no ending")?, &third.start)?;

        self.show.step(5, "At about 75 % the agent is killed with SIGKILL and started again.");
        self.replace_agent(&third)?;

        self.show.step(6, "The job completes, and everything it left behind is checked.");
        self.wait_for_completion(3)?;
        let copies = watch.finish()?.check(3)?;
        self.show.fact(&format!("copies:    {copies}"));
        self.prove(&files)
    }

    /// Starts the job with the command that a person would type.
    fn launch(&self) -> Result<()> {
        let catalogue = self.world.program("catalogue");
        let (catalogue, database) = (catalogue.to_string_lossy(), self.world.database());
        let words =
            ["run", "--detach", "--name", JOB, "--strategy", "script", "--resume-on", "lost", "--backoff", "0s..0s"];
        let mut latido = self.world.latido(&words);
        latido.args(["--", &catalogue]).arg(&self.directory).arg("--database").arg(&database).args(["--pace", PACE]);
        self.show.fact(&format!("$ {}", crate::shell::show(&latido)));
        let output = latido.output().context("cannot start latido run")?;
        ensure!(output.status.success(), "`latido run` failed ({}):\n{}", output.status, text_of(&output));
        Ok(())
    }

    /// Waits for the window, kills whom `whom` names, and returns who ran the attempt.
    fn kill_in(&mut self, window: Window, whom: fn(&Runner) -> Process) -> Result<Runner> {
        let fraction = self.wait_for_window(window)?;
        let runner =
            self.world.runner(window.attempt)?.with_context(|| format!("attempt {} does not run", window.attempt))?;
        let victim = whom(&runner);
        victim.kill().with_context(|| format!("cannot kill {}", window.what))?;
        self.show.fact(&format!("{} (pid {}) was killed at {} %", window.what, victim.pid, percent(fraction)));
        Ok(runner)
    }

    /// Waits until the attempt is as far as the window begins.
    fn wait_for_window(&mut self, window: Window) -> Result<f64> {
        let what = format!("attempt {} to be at {} %", window.attempt, percent(window.from));
        let fraction = self.watch_job(&what, |attempt, phase, fraction| {
            Ok((attempt == window.attempt && phase == Phase::Running && fraction >= window.from).then_some(fraction))
        })?;
        if fraction > window.until {
            bail!(
                "the kill of {} missed its window: {} % is after {} %; a slower pace or an idle machine helps",
                window.what,
                percent(fraction),
                percent(window.until)
            );
        }
        Ok(fraction)
    }

    /// Waits until an attempt runs that nobody started by hand.
    fn next_attempt(&mut self, number: u32) -> Result<Runner> {
        let what = format!("attempt {number} to start by itself");
        self.watch_job(&what, |attempt, phase, _| {
            ensure!(phase != Phase::Held && phase != Phase::Stuck, "the job is {phase} before attempt {number}");
            Ok((attempt == number && phase == Phase::Running).then_some(()))
        })?;
        let runner = self.world.runner(number)?.with_context(|| format!("attempt {number} has no runner"))?;
        self.show.fact(&format!(
            "attempt {number} runs (pid {}): {}; checkpoint {:?}",
            runner.job.pid, runner.start.because, runner.start.checkpoint
        ));
        Ok(runner)
    }

    /// Kills the agent, starts another, and checks that the attempt was adopted and not touched.
    fn replace_agent(&mut self, before: &Runner) -> Result<()> {
        let fraction = self.wait_for_window(Window { what: "the agent", attempt: 3, from: 0.75, until: 0.90 })?;
        self.world.kill_agent()?;
        self.show.fact(&format!("the agent was killed at {} %", percent(fraction)));
        ensure!(before.job.is_alive() && before.supervisor.is_alive(), "the job or its supervisor died with the agent");
        let agent = self.world.start_agent()?;
        let status = self.world.job()?;
        let after = self.world.runner(status.attempt)?.context("the running attempt has no runner")?;
        let adoption =
            Adoption { attempt: status.attempt, epoch: status.epoch, verdict: status.verdict, after: &after };
        checks::adopted(before, &adoption)?;
        ensure!(
            after.job.is_alive() && after.supervisor.is_alive(),
            "the job or its supervisor did not outlive the new agent's start"
        );
        self.show.fact(&format!(
            "agent {} took over: attempt {} runs on as pid {}, verdict {}",
            agent.pid, status.attempt, after.job.pid, status.verdict
        ));
        Ok(())
    }

    fn wait_for_completion(&mut self, number: u32) -> Result<()> {
        let what = format!("attempt {number} to complete");
        self.watch_job(&what, |attempt, phase, _| {
            ensure!(attempt == number, "attempt {attempt} was started, and nobody killed attempt {number}");
            Ok((phase == Phase::Ended).then_some(()))
        })
    }

    /// Looks at the job until `enough` answers; shows its progress as it goes.
    fn watch_job<T>(&mut self, what: &str, mut enough: impl FnMut(u32, Phase, f64) -> Result<Option<T>>) -> Result<T> {
        wait_for(what, JOB_PATIENCE, LOOK_EVERY, || {
            ensure!(!self.interrupted.load(Ordering::Relaxed), "interrupted");
            let status = self.world.job()?;
            let fraction = status.progress.as_ref().and_then(|progress| progress.fraction).unwrap_or(0.0);
            self.show.progress(fraction, status.attempt);
            enough(status.attempt, status.phase, fraction)
        })
    }

    /// Reads back everything that was recorded and checks it.
    fn prove(&mut self, files: &Files) -> Result<()> {
        let ledger = records::ledger(&self.world.state().ledger())?;
        self.show.fact("the ledger:");
        ledger.iter().for_each(|line| self.show.fact(&format!("  {}", records::ledger_line(line))));
        checks::ledger(&ledger)?;

        let history = self.world.state().path().join("history.db");
        let entries = self.world.state().path().join("entries.jsonl");
        let (sql, lines) = wait_for("both sinks to hold the end of attempt 3", SINK_PATIENCE, LOOK_EVERY, || {
            let (sql, lines) = (records::sql(&history)?, records::lines(&entries)?);
            Ok((sql.journal.has_end_of(3) && lines.journal.has_end_of(3)).then_some((sql, lines)))
        })?;
        self.show_sinks(&sql, &lines);
        let plugins = self.world.status()?.agent.context("the agent is gone")?.plugins;
        self.show.fact(&format!("plugins:   {}", checks::plugins(&plugins)?));
        self.world.end_agent()?;
        self.show.fact("agent:     it ended on SIGTERM with exit code 0");
        let (sql, lines) = (records::sql(&history)?, records::lines(&entries)?);
        checks::journal(&sql.journal)?;
        checks::journal(&lines.journal)?;
        checks::sinks_agree(&sql.journal, &lines.journal)?;

        let facts = catalogue::read(&self.world.database())?;
        self.show.fact(&format!("catalogue: {}", facts.check(files)?));
        self.show.fact(&format!("hashes:    {} of them computed again here, all as recorded", facts.compare_hashes()?));
        self.show
            .fact("Everything was checked: the job died twice, its agent once, and nothing was lost or done twice.");
        Ok(())
    }

    fn show_sinks(&self, sql: &Sql, lines: &Lines) {
        let counts = |journal: &Journal| {
            let counts = journal.counts().into_iter().map(|(kind, count)| format!("{count} {kind}"));
            counts.collect::<Vec<_>>().join(", ")
        };
        self.show.fact(&format!("the SQLite sink, read back with SQL: {}", counts(&sql.journal)));
        sql.attempts.iter().for_each(|row| self.show.fact(&format!("  {row}")));
        self.show.fact(&format!("the JSONL sink: {}; {} came again", counts(&lines.journal), lines.repeated));
        lines.endings.iter().for_each(|line| self.show.fact(&format!("  {line}")));
    }
}

/// Builds what the demo needs and runs it.
///
/// # Errors
///
/// Fails where something cannot be built, and where [`run`] does.
pub(crate) fn run_fresh(root: &Path, options: &Options) -> Result<()> {
    if !options.built {
        crate::guests::build(root)?;
        test::build_programs(root)?;
    }
    run(options)
}
