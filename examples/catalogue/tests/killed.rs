//! The real program on a real tree: killed with SIGKILL in the middle, and started again.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Regular files in the tree of [`Place::new`].
const FILES: usize = 1_203;

struct Place {
    _folder: TempDir,
    tree: PathBuf,
    database: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (tree, database) = (root.join("tree"), root.join("catalogue.db"));
        for n in 0..1_200 {
            let inner = tree.join(format!("{:02}", n % 7)).join(format!("{:02}", n % 11));
            fs::create_dir_all(&inner).unwrap();
            fs::write(inner.join(format!("{n}.txt")), format!("file {n}\n").repeat(n)).unwrap();
        }
        fs::write(tree.join("two\nlines"), "").unwrap();
        fs::write(tree.join(OsStr::from_bytes(b"not \xff utf-8")), "abc").unwrap();
        fs::write(tree.join("back\\slash"), "abc").unwrap();
        symlink("/etc", tree.join("link to a folder")).unwrap();
        symlink("nowhere", tree.join("dangling")).unwrap();
        Self { _folder: folder, tree, database }
    }

    #[expect(clippy::disallowed_methods, reason = "the test needs the real program, to kill it")]
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catalogue"));
        command.arg(&self.tree).arg("--database").arg(&self.database);
        command.env_remove("NOTIFY_SOCKET").env_remove("LATIDO_CHECKPOINT").stdin(Stdio::null());
        command
    }

    fn complete(&self) -> String {
        let output = self.command().output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a run, and kills it when it has begun `more` hashes after the line that ends with `line`.
    fn kill_after(&self, line: &str, more: usize) {
        let mut child = self.command().args(["--pace", "8s"]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reached = lines.map_while(Result::ok).any(|found| found.ends_with(line));
        assert!(reached, "the run ended before it said {line:?}");
        let begun = self.hashed().len();
        while self.hashed().len() < begun + more {
            assert!(child.try_wait().unwrap().is_none(), "the run ended too early");
            std::thread::yield_now();
        }
        kill(child);
    }

    /// Every line of the log: the run, and the path as it is on the disk.
    fn hashed(&self) -> Vec<(i64, Vec<u8>)> {
        let log = fs::read(format!("{}.log", self.database.display())).unwrap();
        let whole = log.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
        let read = |line: &[u8]| {
            let tab = line.iter().position(|byte| *byte == b'\t').unwrap();
            let run = std::str::from_utf8(&line[..tab]).unwrap().parse().unwrap();
            (run, unescape(&line[tab + 1..]))
        };
        whole.map(read).collect()
    }

    /// Every recorded file: its path, the run that recorded it, and how often.
    fn recorded(&self) -> BTreeMap<Vec<u8>, (i64, i64)> {
        let connection = Connection::open(&self.database).unwrap();
        let mut query = connection.prepare("select path, run, times_hashed from files").unwrap();
        let read =
            |row: &rusqlite::Row<'_>| Ok((row.get_ref(0)?.as_bytes().unwrap().to_vec(), (row.get(1)?, row.get(2)?)));
        query.query_map([], read).unwrap().map(Result::unwrap).collect()
    }

    /// The rows of `runs`: hashed, skipped, committed, completed.
    fn runs(&self) -> Vec<(i64, i64, i64, bool)> {
        let connection = Connection::open(&self.database).unwrap();
        let mut query =
            connection.prepare("select hashed, skipped, committed, completed from runs order by run").unwrap();
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        query.query_map([], read).unwrap().map(Result::unwrap).collect()
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");
}

fn unescape(path: &[u8]) -> Vec<u8> {
    let mut bytes = path.iter();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        let is_escape = *byte == b'\\';
        plain.push(match is_escape.then(|| bytes.next()).flatten() {
            Some(b'n') => b'\n',
            Some(escaped) => *escaped,
            None => *byte,
        });
    }
    plain
}

#[test]
fn killed_twice_it_records_every_file_once_and_hashes_nothing_recorded_again() {
    let place = Place::new();
    place.kill_after("400 of 1203 files recorded", 57);
    let first = place.recorded().len();
    place.kill_after("800 of 1203 files recorded", 230);
    let second = place.recorded().len();
    let said = place.complete();
    assert!(said.contains(&format!("run 3: {FILES} files")), "{said}");
    assert!(said.contains(&format!("completed: {FILES} files recorded, 0 of them unreadable")), "{said}");

    let recorded = place.recorded();
    assert_eq!(recorded.len(), FILES);
    assert!(recorded.values().all(|(_, times)| *times == 1), "a recorded file was recorded again");
    let hashed = place.hashed();
    let distinct: BTreeSet<_> = hashed.iter().collect();
    assert_eq!(distinct.len(), hashed.len(), "a run hashed a file twice");
    let mut again = BTreeMap::<i64, usize>::new();
    for (run, path) in &hashed {
        let by = recorded[path].0;
        assert!(*run <= by, "run {run} hashed what run {by} had recorded: {}", path.escape_ascii());
        if *run < by {
            *again.entry(*run).or_default() += 1;
        }
    }
    assert!(again.values().all(|count| *count <= 199), "hashed again after each kill: {again:?}");
    assert_eq!(again.values().sum::<usize>(), hashed.len() - FILES, "the log has every hash that was lost");
    assert!(hashed.len() > FILES, "both kills came between two commits");
    let count = |files: usize| i64::try_from(files).unwrap();
    let runs: Vec<_> = place.runs().iter().map(|run| (run.0, run.1, run.3)).collect();
    let expected = [
        (count(first), 0, false),
        (count(second - first), count(first), false),
        (count(FILES - second), count(second), true),
    ];
    assert_eq!(runs, expected);
    assert!(first >= 400 && second >= 1_000, "{first} and {second}");
}

#[test]
fn a_whole_run_does_nothing_the_second_time_and_only_what_changed_the_third() {
    let place = Place::new();
    place.complete();
    place.complete();
    assert_eq!(place.hashed().len(), FILES);
    let changed = place.tree.join("back\\slash");
    fs::write(&changed, "changed").unwrap();
    place.complete();
    let recorded = place.recorded();
    assert_eq!(place.hashed().len(), FILES + 1);
    assert_eq!(recorded[changed.as_os_str().as_bytes()], (3, 2));
    assert_eq!(place.runs().last().unwrap().0, 1);
}

#[test]
fn the_hash_is_sha_256_of_the_whole_file() {
    let place = Place::new();
    let long: Vec<u8> = (0..2_500_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(place.tree.join("long"), &long).unwrap();
    place.complete();
    let connection = Connection::open(&place.database).unwrap();
    let recorded = |name: &str| -> (String, i64) {
        let path = place.tree.join(name);
        let sql = "select hash, size from files where path = ?1";
        connection.query_row(sql, [path.to_str().unwrap()], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(recorded("two\nlines"), (nothing.to_owned(), 0));
    let expected: String = Sha256::digest(&long).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(recorded("long"), (expected, 2_500_000));
}

#[test]
fn it_tells_its_progress_and_its_checkpoint_after_each_commit() {
    let place = Place::new();
    let name = place.database.with_file_name("notify");
    let told = listen(&name, place.command().env("NOTIFY_SOCKET", &name).env("LATIDO_CHECKPOINT", "7"));
    assert_eq!(told[0], "READY=1");
    assert!(told[1].contains("X_LATIDO_CHECKPOINT=0\n") || told[1].ends_with("X_LATIDO_CHECKPOINT=0"), "{}", told[1]);
    let checkpoints = told.iter().filter_map(|text| text.rsplit_once("X_LATIDO_CHECKPOINT="));
    let checkpoints: Vec<u64> = checkpoints.map(|(_, number)| number.parse().unwrap()).collect();
    assert!(
        [200, 400, 600, 800, 1_000, 1_200, 1_203].iter().all(|number| checkpoints.contains(number)),
        "{checkpoints:?}"
    );
    assert!(checkpoints.is_sorted());
    let last = told.iter().rfind(|text| text.contains("X_LATIDO_PROGRESS")).unwrap();
    assert!(last.contains("WATCHDOG=1\n") && last.contains("X_LATIDO_PROGRESS=1.000000\n"), "{last}");
    assert!(last.contains("X_LATIDO_STEP=1203 of 1203 files recorded\n"), "{last}");
}

/// Runs the command to its end and returns every datagram it sent.
fn listen(name: &Path, command: &mut Command) -> Vec<String> {
    let socket = UnixDatagram::bind(name).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut told = Vec::new();
    let mut datagram = [0; 4096];
    while told.last().is_none_or(|text: &String| !text.starts_with("STOPPING=1")) {
        let length = socket.recv(&mut datagram).unwrap();
        told.push(String::from_utf8(datagram[..length].to_vec()).unwrap());
    }
    assert!(child.wait().unwrap().success());
    told
}

#[test]
fn a_socket_that_is_not_there_is_a_warning() {
    let place = Place::new();
    let output = place.command().env("NOTIFY_SOCKET", "/nowhere/notify").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("warning: cannot reach NOTIFY_SOCKET: "), "{said}");
    assert_eq!(said.lines().count(), 1);
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let place = Place::new();
    fs::remove_dir_all(&place.tree).unwrap();
    let output = place.command().output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot find the directory"), "{said}");
}
