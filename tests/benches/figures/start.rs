//! From the agent's exec to its first answer on the control socket.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use latido_process::Signal;
use latido_protocol::FORMAT_VERSION;
use latido_protocol::control::{Envelope, Request};

use crate::place::{Guarded, Place, monotonic, rest, until};
use crate::table::{Series, Table};

const ROUNDS: usize = 10;

const TARGET_MS: f64 = 30.0;

/// Short beside what is measured, long enough to leave the CPU to it.
const TURN: Duration = Duration::from_micros(200);

const WITHOUT: &str = "sink = []\nrule = []\nstrategy = []\n";

/// Whether somebody answers on a socket.
pub(crate) fn answers(socket: &Path) -> bool {
    ask(socket).is_some()
}

fn ask(socket: &Path) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let hello = serde_json::to_string(&Envelope { version: FORMAT_VERSION, request: Request::Hello }).ok()?;
    stream.write_all(format!("{hello}\n").as_bytes()).ok()?;
    let mut line = String::new();
    let read = BufReader::new(stream).read_line(&mut line).ok()?;
    (read > 0).then_some(line)
}

/// Measures it without and with the built-in plugins, in rounds with the floor.
pub(crate) fn measure(place: &Place, table: &mut Table) -> anyhow::Result<()> {
    let (bare_config, full_config) = (place.path("bare.toml"), place.path("full.toml"));
    std::fs::write(&bare_config, WITHOUT)?;
    std::fs::write(&full_config, "")?;
    drop(place.agent("")?); // compiles the plugins and makes the database
    let agent = |config: &Path| {
        let mut command = place.latido(&["agent", "--config"]);
        command.arg(config);
        command
    };
    let socket = place.state().agent_socket();
    let (mut bare, mut full, mut floors) = (Vec::new(), Vec::new(), Vec::new());
    for _round in 0..ROUNDS {
        bare.push(until_answer(&mut agent(&bare_config), &socket, Signal::TERM)?);
        full.push(until_answer(&mut agent(&full_config), &socket, Signal::TERM)?);
        floors.push(until_answer(&mut place.floor(), &place.path("floor.sock"), Signal::KILL)?);
    }
    let floor = Series::millis("exec, SQLite in WAL mode, a bound socket", &floors);
    let target = "≤ 30 ms, then 2 × floor without plugins";
    for (which, values) in [("no plugins", &bare), ("the built-in plugins, warm cache", &full)] {
        let series = Series::millis(format!("5 the agent's exec until it answers, {which}"), values);
        table.figure(&series, &[&floor], target, series.median() <= TARGET_MS);
    }
    table.beside(&[&floor]);
    Ok(())
}

fn until_answer(command: &mut Command, socket: &Path, end: Signal) -> anyhow::Result<Duration> {
    let from = monotonic();
    let program = Guarded::start(command, end)?;
    until("the first answer", TURN, || answers(socket).then_some(()))?;
    let took = monotonic().saturating_sub(from);
    rest(Duration::from_millis(100)); // what it does after its first answer is not its end's business
    drop(program);
    Ok(took)
}

/// The floor's side: opens a database in WAL mode, reads and writes one row, binds a socket and answers once a client.
pub(crate) fn floor(folder: &Path) -> anyhow::Result<()> {
    let socket = folder.join("floor.sock");
    let _stale = std::fs::remove_file(&socket);
    let connection = rusqlite::Connection::open(folder.join("floor.db"))?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         CREATE TABLE IF NOT EXISTS starts (number INTEGER NOT NULL) STRICT;
         INSERT INTO starts SELECT count(*) + 1 FROM starts;",
    )?;
    let listener = UnixListener::bind(&socket)?;
    for client in listener.incoming() {
        client?.write_all(b"here\n")?;
    }
    Ok(())
}
