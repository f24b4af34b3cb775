//! The job's own books: its database says what is recorded, its side log what was ever begun to be hashed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest, Sha256};

/// The catalogue commits every 200 files, so a kill costs at most one file less than that.
const HASHED_AGAIN_MAX: usize = 199;

/// Files whose hash is computed here too, evenly spread: enough to trust the rest, and soon done.
const HASHES_COMPARED: usize = 100;

/// The regular files below a directory, and the folders that cannot be read.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) paths: BTreeSet<Vec<u8>>,
    pub(crate) unread_folders: u64,
}

/// One row of the table of files.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    path: Vec<u8>,
    run: u32,
    hash: Option<String>,
    times_hashed: u32,
}

/// What the job's books say. Runs are counted from 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    recorded: Vec<Recorded>,
    /// Each line of the side log: a path and the run that began to hash it.
    hashed: Vec<(Vec<u8>, u32)>,
    /// The attempt of each run, and whether it came to its end.
    runs: Vec<(Option<u32>, bool)>,
    unread_folders: u64,
}

impl Facts {
    /// Checks that each run is an attempt and only the last one completed, that every file is recorded exactly once,
    /// that nothing recorded was hashed again, and that each kill cost at most [`HASHED_AGAIN_MAX`] hashes.
    ///
    /// # Errors
    ///
    /// Names the file, or the run, that breaks it.
    pub(crate) fn check(&self, files: &Files) -> Result<String> {
        let expected = [(Some(1), false), (Some(2), false), (Some(3), true)];
        ensure!(self.runs == expected, "the runs are (attempt, completed) {:?}, not {expected:?}", self.runs);
        let recorded_by = self.recorded_once(files)?;
        let again = self.hashed_again(&recorded_by)?;
        let sum: usize = again.values().sum();
        let by_run: Vec<String> =
            again.iter().map(|(run, count)| format!("{count} after the end of run {run}")).collect();
        Ok(format!(
            "{} files recorded, each once; {} hashes begun, {sum} of them again ({}); none of a recorded file",
            self.recorded.len(),
            self.hashed.len(),
            if by_run.is_empty() { "none".to_owned() } else { by_run.join(", ") }
        ))
    }

    fn recorded_once(&self, files: &Files) -> Result<BTreeMap<&[u8], u32>> {
        let mut recorded_by = BTreeMap::new();
        for row in &self.recorded {
            ensure!(
                recorded_by.insert(row.path.as_slice(), row.run).is_none(),
                "{} is recorded twice",
                show(&row.path)
            );
            ensure!(row.times_hashed == 1, "{} was recorded {} times", show(&row.path), row.times_hashed);
        }
        if let Some(missing) = files.paths.iter().find(|path| !recorded_by.contains_key(path.as_slice())) {
            bail!("{} is not recorded", show(missing));
        }
        if let Some(more) = recorded_by.keys().find(|path| !files.paths.contains(**path)) {
            bail!("{} is recorded and not there", show(more));
        }
        ensure!(
            self.unread_folders == files.unread_folders,
            "{} folders could not be read by the job, {} cannot be read here",
            self.unread_folders,
            files.unread_folders
        );
        Ok(recorded_by)
    }

    /// How many hashes each run's end cost.
    fn hashed_again(&self, recorded_by: &BTreeMap<&[u8], u32>) -> Result<BTreeMap<u32, usize>> {
        let mut hashed = BTreeSet::new();
        let mut again = BTreeMap::<u32, usize>::new();
        for (path, run) in &self.hashed {
            let by = recorded_by.get(path.as_slice());
            let by = by.with_context(|| format!("{} was hashed and not recorded", show(path)))?;
            ensure!(by >= run, "{} was recorded by run {by} and hashed again by run {run}", show(path));
            ensure!(hashed.insert((path.as_slice(), *run)), "run {run} hashed {} twice", show(path));
            if by > run {
                *again.entry(*run).or_default() += 1;
            }
        }
        for row in &self.recorded {
            let pair = (row.path.as_slice(), row.run);
            ensure!(hashed.contains(&pair), "run {} recorded {} and did not hash it", row.run, show(&row.path));
        }
        for (run, count) in &again {
            ensure!(
                *count <= HASHED_AGAIN_MAX,
                "the end of run {run} cost {count} hashes, {HASHED_AGAIN_MAX} are allowed"
            );
        }
        Ok(again)
    }

    /// Computes the hashes of some files and compares them with what is recorded. Returns how many.
    ///
    /// # Errors
    ///
    /// Names the file whose hash differs.
    pub(crate) fn compare_hashes(&self) -> Result<usize> {
        let every = self.recorded.len().div_ceil(HASHES_COMPARED).max(1);
        let mut compared = 0;
        for row in self.recorded.iter().step_by(every) {
            let Some(recorded) = &row.hash else { continue };
            let bytes = std::fs::read(OsStr::from_bytes(&row.path));
            let digest = Sha256::digest(bytes.with_context(|| format!("cannot read {}", show(&row.path)))?);
            let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            ensure!(hash == *recorded, "{} has hash {hash}, {recorded} is recorded", show(&row.path));
            compared += 1;
        }
        Ok(compared)
    }
}

/// Reads the job's books: `database`, and the side log beside it.
///
/// # Errors
///
/// Names the file that cannot be read.
pub(crate) fn read(database: &Path) -> Result<Facts> {
    let mut facts = Facts::default();
    read_database(database, &mut facts).with_context(|| format!("cannot read {}", database.display()))?;
    let mut log = database.as_os_str().to_owned();
    log.push(".log");
    let log = Path::new(&log);
    let bytes = std::fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let hashed = lines.map(|line| log_line(line).with_context(|| format!("no line of the side log: {}", show(line))));
    facts.hashed = hashed.collect::<Result<_>>()?;
    Ok(facts)
}

fn read_database(path: &Path, facts: &mut Facts) -> rusqlite::Result<()> {
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let mut files = database.prepare("SELECT CAST(path AS BLOB), run, hash, times_hashed FROM files ORDER BY path")?;
    let rows = files.query_map([], |row| {
        Ok(Recorded { path: row.get(0)?, run: row.get(1)?, hash: row.get(2)?, times_hashed: row.get(3)? })
    })?;
    facts.recorded = rows.collect::<rusqlite::Result<_>>()?;
    let mut runs = database.prepare("SELECT attempt, completed FROM runs ORDER BY run")?;
    facts.runs = runs.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    facts.unread_folders =
        database.query_row("SELECT count(*) FROM unread_folders", [], |row| row.get::<_, i64>(0))?.unsigned_abs();
    Ok(())
}

/// Reads a line `RUN TAB PATH`; in the path `\` is `\\` and a line feed is `\n`.
fn log_line(line: &[u8]) -> Option<(Vec<u8>, u32)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let run = std::str::from_utf8(&line[..tab]).ok()?.parse().ok()?;
    let mut path = Vec::with_capacity(line.len());
    let mut bytes = line[tab + 1..].iter();
    while let Some(byte) = bytes.next() {
        path.push(match byte {
            b'\\' => match bytes.next()? {
                b'n' => b'\n',
                other => *other,
            },
            other => *other,
        });
    }
    Some((path, run))
}

fn show(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Lists the regular files below a directory, links not followed.
///
/// # Errors
///
/// Names what cannot be looked at. A folder that may not be read is counted.
pub(crate) fn list(directory: &Path) -> Result<Files> {
    let mut files = Files::default();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                files.unread_folders += 1;
                continue;
            }
            entries => entries.with_context(|| format!("cannot read {}", folder.display()))?,
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", folder.display()))?;
            let kind = entry.file_type().with_context(|| format!("cannot look at {}", entry.path().display()))?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                files.paths.insert(entry.path().into_os_string().into_vec());
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(number: u32) -> Vec<u8> {
        format!("/f/{number}").into_bytes()
    }

    fn files() -> Files {
        Files { paths: (0..600).map(path).collect(), unread_folders: 0 }
    }

    /// 600 files; run 1 recorded 200 and lost 150, run 2 recorded 200 and lost nothing, run 3 the rest.
    fn good() -> Facts {
        let row = |number: u32| Recorded { path: path(number), run: number / 200 + 1, hash: None, times_hashed: 1 };
        let recorded: Vec<Recorded> = (0..600).map(row).collect();
        let lost = (200..350).map(|number| (path(number), 1));
        Facts {
            hashed: recorded.iter().map(|row| (row.path.clone(), row.run)).chain(lost).collect(),
            recorded,
            runs: vec![(Some(1), false), (Some(2), false), (Some(3), true)],
            unread_folders: 0,
        }
    }

    fn refused(doctor: impl FnOnce(&mut Facts)) -> String {
        let mut facts = good();
        doctor(&mut facts);
        facts.check(&files()).unwrap_err().to_string()
    }

    #[test]
    fn a_job_that_went_on_where_it_was_passes() {
        let expected = "600 files recorded, each once; 750 hashes begun, 150 of them again (150 after the end of run 1); \
                        none of a recorded file";
        assert_eq!(good().check(&files()).unwrap(), expected);
    }

    #[test]
    fn a_file_that_is_missing_or_doubled_is_found() {
        assert_eq!(refused(|facts| drop(facts.recorded.pop())), "/f/599 is not recorded");
        assert_eq!(refused(|facts| facts.recorded[1].path = path(0)), "/f/0 is recorded twice");
        assert_eq!(refused(|facts| facts.recorded[1].times_hashed = 2), "/f/1 was recorded 2 times");
        let strange = |facts: &mut Facts| {
            let row = Recorded { path: path(600), ..facts.recorded[0].clone() };
            facts.recorded.push(row);
        };
        assert_eq!(refused(strange), "/f/600 is recorded and not there");
        assert!(refused(|facts| facts.unread_folders = 1).starts_with("1 folders could not be read"));
    }

    #[test]
    fn a_recorded_file_that_is_hashed_again_is_found() {
        let again = |facts: &mut Facts| facts.hashed.push((path(0), 2));
        assert_eq!(refused(again), "/f/0 was recorded by run 1 and hashed again by run 2");
        let twice = |facts: &mut Facts| facts.hashed.push((path(0), 1));
        assert_eq!(refused(twice), "run 1 hashed /f/0 twice");
    }

    #[test]
    fn books_that_do_not_fit_each_other_are_found() {
        assert_eq!(refused(|facts| drop(facts.hashed.remove(0))), "run 1 recorded /f/0 and did not hash it");
        assert_eq!(refused(|facts| facts.hashed[0].0 = path(700)), "/f/700 was hashed and not recorded");
    }

    #[test]
    fn a_run_too_many_or_one_that_did_not_complete_is_found() {
        assert!(refused(|facts| facts.runs.push((Some(4), true))).starts_with("the runs are"));
        assert!(refused(|facts| facts.runs[2].1 = false).starts_with("the runs are"));
    }

    #[test]
    fn a_kill_that_cost_a_whole_commit_is_found() {
        let costly = |facts: &mut Facts| facts.hashed.extend((350..400).map(|number| (path(number), 1)));
        assert_eq!(refused(costly), "the end of run 1 cost 200 hashes, 199 are allowed");
    }

    #[test]
    fn a_line_of_the_side_log_holds_any_path() {
        assert_eq!(log_line(b"2\t/a\\\\b\\nc\td"), Some((b"/a\\b\nc\td".to_vec(), 2)));
        assert_eq!(log_line(b"/a"), None);
        assert_eq!(log_line(b"x\t/a"), None);
    }

    #[test]
    fn a_wrong_hash_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("abc");
        std::fs::write(&file, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let row =
            Recorded { path: file.into_os_string().into_vec(), run: 1, hash: Some(abc.to_owned()), times_hashed: 1 };
        let mut facts = Facts { recorded: vec![row], ..Facts::default() };
        assert_eq!(facts.compare_hashes().unwrap(), 1);
        facts.recorded[0].hash = Some(abc.replace('b', "c"));
        assert!(facts.compare_hashes().unwrap_err().to_string().contains("is recorded"));
    }

    #[test]
    fn only_regular_files_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        std::fs::write(folder.path().join("inner/a"), "").unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("inner/link")).unwrap();
        let files = list(folder.path()).unwrap();
        assert_eq!(files.paths, BTreeSet::from([folder.path().join("inner/a").into_os_string().into_vec()]));
    }
}
