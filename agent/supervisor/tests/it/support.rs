//! A state directory with one job, the way a starter makes it, and waiting without sleeping.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use latido_process::identity;
use latido_process::lock::Lock;
use latido_process::start::{Held, Starting, collect, hold_supervisor, start_supervisor};
use latido_process::tree::{self, Tree};
use latido_protocol::attempt::{Answer, Beat, Report, Request, StopReason};
use latido_protocol::disk;
use latido_protocol::files::*;
use latido_protocol::layout::{AttemptDir, JobDir, StateDir};
use latido_protocol::{CountLimit, FORMAT_VERSION, Limit, Span, WallTime};

/// Between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Looks before a test gives up: half a minute on an idle machine, more on a loaded one.
const LOOKS_MAX: u32 = 6000;

/// Waits until a look finds something.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let (_never, pause) = mpsc::channel::<()>();
    for _ in 0..LOOKS_MAX {
        if let Some(found) = look() {
            return found;
        }
        let _ = pause.recv_timeout(LOOK_EVERY);
    }
    panic!("waited too long for {what}");
}

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// One attempt of a job, with its supervisor. What is left of it is killed when dropped.
pub(crate) struct Attempt {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) dir: AttemptDir,
    pub(crate) report: Report,
    pub(crate) supervisor: u32,
}

/// How a test wants its job.
pub(crate) struct Job {
    pub(crate) command: Vec<String>,
    pub(crate) settings: JobSettings,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) epoch: u64,
}

impl Job {
    /// A shell that runs a script in the folder of the test.
    pub(crate) fn shell(script: &str) -> Self {
        Self::of(&["sh", "-c", script])
    }

    pub(crate) fn of(command: &[&str]) -> Self {
        Self {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            settings: settings(),
            environment: BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]),
            directory: None,
            epoch: 7,
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut JobSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Starts it, as attempt 1.
    pub(crate) fn start(self) -> Attempt {
        let folder = tempfile::tempdir().unwrap();
        let dir = self.lay_out(folder.path());
        let lock = Lock::take(&dir.job().unwrap().lock()).unwrap().unwrap();
        let starting = start(&dir, lock);
        let supervisor = starting.pid;
        let report = hear(starting);
        Attempt { folder, dir, report, supervisor }
    }

    /// Makes the files that a starter makes.
    pub(crate) fn lay_out(&self, folder: &Path) -> AttemptDir {
        let state = StateDir::new(folder.join("state"));
        let name: latido_protocol::SubjectName = "job".parse().unwrap();
        let job = state.job(&name);
        let attempt = job.attempt(1);
        std::fs::create_dir_all(attempt.path()).unwrap();
        let directory = self.directory.clone().unwrap_or_else(|| folder.to_owned());
        let at = WallTime::from_millis(1_700_000_000_000);
        let file = JobFile {
            version: FORMAT_VERSION,
            name: name.clone(),
            created_at: at,
            command: self.command.clone(),
            directory: directory.clone(),
            environment: self.environment.clone(),
            settings: self.settings.clone(),
        };
        disk::create(&job.job(), &file).unwrap();
        let start = Start {
            version: FORMAT_VERSION,
            job: name,
            attempt: 1,
            epoch: self.epoch,
            host: "test".into(),
            launched_at: at,
            starter: identity::own().unwrap(),
            because: "first attempt".into(),
            by_hand: false,
            command: self.command.clone(),
            directory,
            checkpoint: "from before".into(),
            sockets: folder.join("sockets"),
            supervisor: None,
            process: None,
            started_at: None,
            cgroup: None,
            notes: vec![],
        };
        disk::create(&attempt.start(), &start).unwrap();
        attempt
    }
}

pub(crate) fn start(dir: &AttemptDir, lock: Lock) -> Starting {
    start_supervisor(Path::new(env!("CARGO_BIN_EXE_latido-supervisor")), dir.path(), lock).unwrap()
}

/// Starts one that waits for the word.
pub(crate) fn hold(dir: &AttemptDir, lock: Lock) -> Held {
    hold_supervisor(Path::new(env!("CARGO_BIN_EXE_latido-supervisor")), dir.path(), lock).unwrap()
}

pub(crate) fn hear(starting: Starting) -> Report {
    let mut line = String::new();
    BufReader::new(starting.report).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?} is no report: {error}"))
}

impl Attempt {
    pub(crate) fn start(&self) -> Start {
        disk::read(&self.dir.start()).unwrap().unwrap()
    }

    pub(crate) fn process(&self) -> Identity {
        self.start().process.unwrap()
    }

    pub(crate) fn job_dir(&self) -> JobDir {
        self.dir.job().unwrap()
    }

    pub(crate) fn status(&self) -> Status {
        disk::read(&self.dir.status()).unwrap().unwrap()
    }

    pub(crate) fn output(&self) -> Vec<u8> {
        std::fs::read(self.dir.output()).unwrap_or_default()
    }

    /// Waits for the supervisor to end, and reads what it recorded.
    pub(crate) fn end(&self) -> End {
        wait_until("the supervisor ends", || collect(self.supervisor));
        disk::read(&self.dir.end()).unwrap().expect("a record of the ending")
    }

    pub(crate) fn ledger(&self) -> Vec<LedgerLine> {
        let lines = disk::read_lines(&self.folder.path().join("state/ledger.jsonl")).unwrap();
        assert_eq!(lines.damaged, [0; 0]);
        lines.records
    }

    /// A file that the job writes in its directory, once it has a whole line.
    pub(crate) fn said(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        wait_for(name, || std::fs::read_to_string(&path).ok()?.strip_suffix('\n').map(str::to_owned))
    }

    /// The identity of a process whose pid the job wrote.
    pub(crate) fn identity_in(&self, name: &str) -> Identity {
        identity::of(self.said(name).parse().unwrap()).unwrap().unwrap()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::new(UnixStream::connect(self.folder.path().join("sockets/control")).unwrap(), self.token())
    }

    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("sockets/token")).unwrap()
    }

    pub(crate) fn notify(&self, datagram: &[u8]) {
        let socket = UnixDatagram::unbound().unwrap();
        socket.send_to(datagram, self.folder.path().join("sockets/notify")).unwrap();
    }

    pub(crate) fn stop(&self, grace: Duration) -> Answer {
        self.connect().ask(&Request::Stop {
            ground: None,
            grace: Some(Span(grace)),
            force: false,
            because: StopReason::Commanded,
            by: "a test".into(),
        })
    }

    pub(crate) fn tree(&self) -> Tree {
        let start = self.start();
        Tree {
            attempt_dir: self.dir.path().to_owned(),
            process: start.process,
            supervisor: start.supervisor,
            cgroup: start.cgroup,
        }
    }

    pub(crate) fn kill_supervisor(&self) {
        let supervisor = self.start().supervisor.unwrap();
        assert_eq!(tree::signal(&[supervisor], latido_process::Signal::KILL), 1);
        wait_until("the supervisor is gone", || collect(self.supervisor));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let tree = self.tree();
        if let Some(supervisor) = &tree.supervisor {
            tree::signal(std::slice::from_ref(supervisor), latido_process::Signal::KILL);
        }
        let _ = tree::end(&tree, Duration::ZERO);
        collect(self.supervisor);
    }
}

/// A client of the control socket.
pub(crate) struct Client {
    /// of the attempt, as its private folder tells
    token: String,
    pub(crate) stream: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Client {
    fn new(stream: UnixStream, token: String) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { reader: BufReader::new(stream.try_clone().unwrap()), stream, token }
    }

    pub(crate) fn send(&mut self, request: &Request) {
        let mut line = serde_json::to_vec(request).unwrap();
        line.push(b'\n');
        self.stream.write_all(&line).unwrap();
    }

    pub(crate) fn ask(&mut self, request: &Request) -> Answer {
        self.send(request);
        self.hear().expect("an answer")
    }

    /// Beats with the attempt's token, unless the beat carries another.
    pub(crate) fn beat(&mut self, beat: Beat) -> Answer {
        let token = beat.token.or(Some(self.token.clone()));
        self.ask(&Request::Beat(Beat { token, ..beat }))
    }

    /// The next answer; `None`: the connection was closed.
    pub(crate) fn hear(&mut self) -> Option<Answer> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no answer: {error}"),
        }
    }
}

pub(crate) fn is_gone(identity: &Identity) -> bool {
    matches!(identity::look(identity), identity::Look::Gone { .. })
}

fn settings() -> JobSettings {
    let seconds = |seconds| Span(Duration::from_secs(seconds));
    JobSettings {
        policy: "default".into(),
        strategy: "script".into(),
        beats: Beats::Auto,
        interval: seconds(30),
        ttl: seconds(180),
        start_within: seconds(60),
        hung_after: Limit::None,
        run_for: Limit::None,
        resume: Resume {
            on: vec![ResumeOn::Lost],
            max_attempts: CountLimit::At(5),
            max_pickups: 5,
            backoff: Backoff { first: seconds(5), longest: seconds(300) },
            max_attempts_without_progress: CountLimit::None,
            wall_time_max: Limit::None,
            max_identical_deaths: CountLimit::At(3),
            spare_busy: true,
            budget: Budget::default(),
        },
        looping_after: CountLimit::None,
        first_output_within: Limit::None,
        excuse_max: seconds(3600),
        slots: vec![],
        orphans: Orphans::End,
        grace: seconds(10),
        linger: seconds(5),
        log: LogLimits { size_max: 10 * 1024 * 1024, files_max: 3, carriage_returns: CarriageReturns::default() },
        history_every: seconds(300),
        presence_every: seconds(30),
        launch: LaunchSettings::default(),
        on_end: None,
    }
}

/// Says aloud that a test could not be made on this host.
#[expect(clippy::print_stderr, reason = "a test that did not run must not look like one that passed")]
pub(crate) fn untested(why: &str) {
    eprintln!("NOT TESTED: {why}");
}

#[expect(clippy::disallowed_methods, reason = "tests start strangers")]
pub(crate) fn command(program: &str) -> Command {
    Command::new(program)
}
