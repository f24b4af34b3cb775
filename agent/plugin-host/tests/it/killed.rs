//! A host whose sink writes large entries is killed with SIGKILL in the middle, again and again.

use std::env;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Barrier, mpsc};

use latido_plugin_host::{Entries, Field, Host, HostSettings, Kind, PluginSpec};
use serde_json::Value;

use crate::support::{at, builtin, none, write};

/// Names the folder for the process that writes.
const FOLDER: &str = "LATIDO_TEST_FOLDER";

const CLIENTS: u64 = 20;
const ENTRY_BYTES: usize = 1_000_000;
const KILLS: usize = 8;

/// Field case C232 (Prism-Shadow/penguin-harness PR #249).
#[test]
fn c232_large_entries_of_many_clients_are_whole_lines_whoever_is_killed_when() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("entries.jsonl");
    let mut whole_before = 0;
    for kill in 0..KILLS {
        let mut child = writer(folder.path());
        let grown = |least: u64| std::fs::metadata(&lines).is_ok_and(|file| file.len() >= least);
        let before = std::fs::metadata(&lines).map_or(0, |file| file.len());
        // Somewhere in the middle of a write, another place each time.
        let (mut says, mut byte) = (child.stdout.take().unwrap(), [0]);
        says.read_exact(&mut byte).unwrap();
        while !grown(before + 1 + (kill as u64 * 377_777) % 3_000_000) {
            assert_eq!(child.try_wait().unwrap(), None);
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let bytes = std::fs::read(&lines).unwrap();
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut whole = 0;
        for line in bytes[..end].split_inclusive(|byte| *byte == b'\n') {
            let entry: Value = serde_json::from_slice(line).unwrap_or_else(|error| panic!("kill {kill}: {error}"));
            assert!(line.len() > ENTRY_BYTES, "{}", entry["sequence"]);
            whole += 1;
        }
        assert!(whole >= whole_before, "kill {kill}: {whole} lines where {whole_before} were");
        whole_before = whole;
    }
    assert!(whole_before > 0);
}

/// Not a test of its own: what the process does that the test above starts and kills.
#[test]
fn process_that_writes_until_it_is_killed() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let host = Host::new(HostSettings { cache: folder.join("cache"), compiler: None, metered: false }).unwrap();
    let mut spec = PluginSpec::new("lines", Kind::Sink, builtin("jsonl"));
    spec.grants.files.insert("main".into(), folder.join("entries.jsonl").into());
    let mut sink = runtime.block_on(host.load_sink(spec)).unwrap();
    let (made, come) = mpsc::sync_channel(4);
    let together = Arc::new(Barrier::new(CLIENTS as usize));
    for client in 0..CLIENTS {
        let (made, together) = (made.clone(), Arc::clone(&together));
        std::thread::spawn(move || {
            for round in 0.. {
                together.wait();
                if made.send(large(round * CLIENTS + client + 1)).is_err() {
                    return;
                }
            }
        });
    }
    println!("it writes");
    for (sequence, entries) in come {
        assert_eq!(runtime.block_on(write(&mut sink, &entries)), Ok(sequence));
    }
}

fn large(sequence: u64) -> (u64, Entries) {
    let detail = char::from(b'a' + (sequence % 26) as u8).to_string().repeat(ENTRY_BYTES);
    let mut entries = none();
    entries.add(sequence, at(sequence), "agent").text(Field::Detail, &detail);
    (sequence, entries)
}

#[expect(clippy::disallowed_methods, reason = "tests need processes beside the host, to kill and to be in its way")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

fn writer(folder: &Path) -> Child {
    command(env::current_exe().unwrap())
        .args(["--exact", "killed::process_that_writes_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}
