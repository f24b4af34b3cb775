//! The files of beats beside the database: torn, damaged, full, missing, newer, and the death of who writes them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use latido_store::{
    Batch, Beat, BeatBatch, RegistryRows, RegistryWrite, SqliteStore, Store, StoreError, WorkerRow, set_aside_damaged,
};

use crate::killed;
use crate::support::{self, SmallDisk};

/// Bytes of a file's header, of a batch's frame, and of a beat without texts.
const HEADER: usize = 48;
const FRAME: usize = 12;
const BEAT: usize = 48;

fn file(path: &Path, number: u64) -> PathBuf {
    PathBuf::from(format!("{}-beats-{number}", path.display()))
}

fn name(worker: u64) -> String {
    format!("worker-{worker:04}")
}

/// Opens the store with rows of so many workers, whose epochs are 1, 2, and so on.
fn opened(path: &Path, workers: u64) -> SqliteStore {
    let mut store = SqliteStore::open(path).unwrap();
    let row = |epoch| WorkerRow { name: name(epoch), epoch, ..WorkerRow::default() };
    let registry = (1..=workers).map(row).map(RegistryWrite::Worker).collect();
    store.commit(&Batch { registry, ..Batch::default() }).unwrap();
    store
}

/// Keeps one beat of each of these workers.
fn keep(store: &mut SqliteStore, workers: impl Iterator<Item = u64>, sequence: u64) -> Result<bool, StoreError> {
    keep_all(store, workers, sequence, false)
}

fn keep_all(
    store: &mut SqliteStore,
    workers: impl Iterator<Item = u64>,
    sequence: u64,
    ends_round: bool,
) -> Result<bool, StoreError> {
    let named: Vec<(u64, String)> = workers.map(|epoch| (epoch, name(epoch))).collect();
    let beats = named.iter().map(|(epoch, name)| Beat {
        name,
        epoch: *epoch,
        at_ms: Some(sequence),
        heard_ms: sequence * 1000,
        sequence,
        state: None,
        active_job: None,
        errors: 0,
    });
    let kept = store.keep_beats(&BeatBatch { beats: beats.collect(), ends_round })?;
    Ok(kept.wants_round)
}

fn sequences(rows: &RegistryRows) -> Vec<u64> {
    rows.workers.iter().map(|row| row.beat.sequence).collect()
}

fn rows(path: &Path) -> RegistryRows {
    SqliteStore::open(path).unwrap().registry().unwrap()
}

/// A store of three workers with three batches of a beat each, and the bytes of its file.
fn three_batches(path: &Path) -> Vec<u8> {
    let mut store = opened(path, 3);
    for sequence in 1..=3 {
        keep(&mut store, 1..=sequence, sequence).unwrap();
    }
    fs::read(file(path, 1)).unwrap()
}

#[test]
fn a_file_that_is_torn_at_any_byte_keeps_every_whole_batch_and_goes_on() {
    let (_directory, path) = support::place();
    let whole = three_batches(&path);
    let ends = [HEADER, HEADER + FRAME + BEAT, HEADER + 2 * FRAME + 3 * BEAT, HEADER + 3 * FRAME + 6 * BEAT];
    assert_eq!(whole.len(), ends[3]);
    for bytes in 0..=whole.len() {
        fs::write(file(&path, 1), &whole[..bytes]).unwrap();
        let batches = ends[1..].iter().filter(|end| **end <= bytes).count();
        let found = rows(&path);
        assert_eq!(found.beats_lost, None, "torn at {bytes}");
        let expected = [[0, 0, 0], [1, 0, 0], [2, 2, 0], [3, 3, 3]][batches];
        assert_eq!(sequences(&found), expected, "torn at {bytes}");
        if bytes % 7 == 0 {
            let mut store = SqliteStore::open(&path).unwrap();
            keep(&mut store, 3..=3, 9).unwrap();
            let [one, two, _] = expected;
            assert_eq!(sequences(&store.registry().unwrap()), [one, two, 9], "went on after {bytes}");
        }
    }
}

#[test]
fn zeros_behind_the_last_batch_are_a_tear_and_not_damage() {
    let (_directory, path) = support::place();
    let whole = three_batches(&path);
    for zeros in [1, FRAME, 5000] {
        fs::write(file(&path, 1), [whole.clone(), vec![0; zeros]].concat()).unwrap();
        let found = rows(&path);
        assert_eq!((sequences(&found), found.beats_lost), (vec![3, 3, 3], None), "{zeros} zeros");
    }
    fs::write(file(&path, 1), [whole, vec![0; 5000], vec![1]].concat()).unwrap();
    assert!(rows(&path).beats_lost.is_some());
}

#[test]
fn rubbish_at_any_byte_is_said_aloud_and_nothing_behind_it_is_trusted() {
    let (_directory, path) = support::place();
    let whole = three_batches(&path);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        fs::write(file(&path, 1), &bytes).unwrap();
        let outcome = SqliteStore::open(&path).unwrap().registry();
        if (8..12).contains(&at) {
            // A version from nowhere may be a newer one.
            assert!(matches!(outcome, Err(StoreError::NewerVersion { .. })), "{at}: {outcome:?}");
            continue;
        }
        let found = outcome.unwrap();
        let lost = found.beats_lost.as_deref().unwrap_or_else(|| panic!("nothing is said of rubbish at {at}"));
        assert!(lost.contains("-beats-1"), "{lost}");
        let batches = [HEADER, HEADER + FRAME + BEAT, HEADER + 2 * FRAME + 3 * BEAT];
        let expected = [[0, 0, 0], [0, 0, 0], [1, 0, 0], [2, 2, 0]];
        let batch = batches.iter().filter(|start| **start <= at).count();
        assert_eq!(sequences(&found), expected[batch], "rubbish at {at}");
    }
}

#[test]
fn a_damaged_file_is_said_to_be_until_a_round_has_replaced_it_and_then_kept_aside() {
    let (_directory, path) = support::place();
    let mut bytes = three_batches(&path);
    bytes[HEADER + FRAME + BEAT + 20] ^= 1;
    fs::write(file(&path, 1), &bytes).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    assert!(keep(&mut store, 2..=2, 7).unwrap(), "a round is wanted");
    let found = rows(&path);
    assert_eq!(sequences(&found), [1, 7, 0]);
    assert!(found.beats_lost.is_some(), "a restart in between is told again");
    assert!(!keep_all(&mut store, [1, 3].into_iter(), 8, true).unwrap(), "the round is over");
    let found = rows(&path);
    assert_eq!((sequences(&found), found.beats_lost), (vec![8, 7, 8], None));
    assert_eq!(fs::read(format!("{}.damaged", file(&path, 1).display())).unwrap(), bytes);
}

#[test]
fn a_file_of_another_database_is_not_taken_in() {
    let (_directory, path) = support::place();
    let (_elsewhere, other) = support::place();
    three_batches(&other);
    drop(opened(&path, 3));
    fs::copy(file(&other, 1), file(&path, 1)).unwrap();
    let found = rows(&path);
    assert_eq!(sequences(&found), [0, 0, 0]);
    assert!(found.beats_lost.is_some_and(|lost| lost.contains("no file of beats of this database")));
}

#[test]
fn files_that_are_gone_are_missed() {
    let (_directory, path) = support::place();
    drop(opened(&path, 3));
    assert_eq!(rows(&path).beats_lost, None, "none were ever kept");
    three_batches(&path);
    fs::remove_file(file(&path, 1)).unwrap();
    assert!(rows(&path).beats_lost.is_some_and(|lost| lost.contains("are gone")));
}

#[test]
fn a_file_of_a_newer_version_is_refused_and_left_as_it_is() {
    let (_directory, path) = support::place();
    let mut bytes = three_batches(&path);
    bytes[8] = 2;
    fs::write(file(&path, 1), &bytes).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    let refused = [store.registry().map(|_| ()), keep(&mut store, 1..=1, 9).map(|_| ())];
    for outcome in refused {
        assert!(matches!(outcome, Err(StoreError::NewerVersion { found: 2, known: 1, .. })), "{outcome:?}");
    }
    assert_eq!(fs::read(file(&path, 1)).unwrap(), bytes);
}

#[test]
fn who_reads_the_store_changes_no_file_of_another_that_writes_it() {
    let (_directory, path) = support::place();
    let whole = three_batches(&path);
    let torn = [whole, vec![7; 5]].concat();
    fs::write(file(&path, 1), &torn).unwrap();
    assert_eq!(sequences(&rows(&path)), [3, 3, 3]);
    assert_eq!(fs::read(file(&path, 1)).unwrap(), torn);
    let mode = fs::metadata(file(&path, 1)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "beats are for their user alone");
}

#[test]
fn a_damaged_database_takes_its_beats_with_it() {
    let (_directory, path) = support::place();
    let whole = three_batches(&path);
    let aside = set_aside_damaged(&path).unwrap();
    assert_eq!(fs::read(file(&aside, 1)).unwrap(), whole);
    assert_eq!(rows(&path), RegistryRows::default());
}

/// What lies beside the database, in bytes.
fn bytes_of_beats(path: &Path) -> u64 {
    (0..10).filter_map(|number| fs::metadata(file(path, number)).ok()).map(|file| file.len()).sum()
}

#[test]
fn the_files_are_bounded_by_rounds_and_lose_nothing_in_them() {
    const WORKERS: u64 = 2_000;
    let (_directory, path) = support::place();
    let mut store = opened(&path, WORKERS);
    let (mut most, mut rounds, mut wants_round) = (0, 0, false);
    for sequence in 1..=600_u64 {
        // A third of all beat; in a round everybody's newest is given again, at once.
        let heard = 1..=WORKERS / 3;
        let (workers, ends_round) = if wants_round { (1..=WORKERS, true) } else { (heard, false) };
        rounds += u64::from(ends_round);
        wants_round = keep_all(&mut store, workers, sequence, ends_round).unwrap();
        most = most.max(bytes_of_beats(&path));
    }
    assert!(rounds >= 1, "600 batches of 666 beats are more than a file");
    assert!(most < 17 * 1024 * 1024, "{most} bytes at once");
    let found = sequences(&store.registry().unwrap());
    assert!(found[..666].iter().all(|sequence| *sequence == 600), "{found:?}");
    assert!(found[667..].iter().all(|sequence| (1..600).contains(sequence)), "those that beat in a round alone");
    assert_eq!(sequences(&rows(&path)), found);
}

#[test]
fn a_round_that_the_death_of_the_agent_cut_short_is_wanted_again() {
    let (_directory, path) = support::place();
    three_batches(&path);
    fs::copy(file(&path, 1), file(&path, 2)).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    assert!(keep(&mut store, 1..=1, 5).unwrap());
    assert!(!keep_all(&mut store, 2..=3, 5, true).unwrap());
    assert!(!file(&path, 1).exists());
    assert_eq!(sequences(&rows(&path)), [5, 5, 5]);
}

#[test]
fn a_full_disk_keeps_nothing_of_the_batch_and_the_store_goes_on_by_itself() {
    let Some(disk) = SmallDisk::mount("4m") else { return };
    let path = disk.place.join("latido.db");
    let mut store = opened(&path, 200);
    keep(&mut store, 1..=200, 1).unwrap();
    let ballast = disk.exhaust();
    for sequence in 2..5 {
        let outcome = keep(&mut store, 1..=200, sequence);
        if let Err(error) = outcome {
            assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
            let found = store.registry().unwrap();
            assert_eq!((sequences(&found), found.beats_lost), (vec![sequence - 1; 200], None));
            fs::remove_file(ballast).unwrap();
            keep(&mut store, 1..=1, 9).unwrap();
            let found = store.registry().unwrap();
            assert_eq!((sequences(&found)[..2].to_vec(), found.beats_lost), (vec![9, sequence - 1], None));
            return;
        }
    }
    panic!("the disk does not fill");
}

/// Names the store for the process that keeps beats.
const STORE: &str = "LATIDO_TEST_BEATS";
const WORKERS: u64 = 3_000;

#[test]
fn beats_that_were_acknowledged_outlive_kill_9() {
    let (_directory, path) = support::place();
    drop(opened(&path, WORKERS));
    for kill in 0..20_usize {
        let mut child = killed::process("beats::process_that_keeps_beats_until_it_is_killed", STORE, &path);
        let (mut acknowledged, mut seen) = (0, 0);
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            let Some((_, sequence)) = line.split_once("kept ") else { continue };
            acknowledged = sequence.parse().unwrap();
            seen += 1;
            if seen == 1 + kill * 7 % 50 {
                child.kill().unwrap();
            }
        }
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "it was killed: {status}");
        let found = rows(&path);
        assert_eq!(found.beats_lost, None, "kill {kill}");
        assert!(sequences(&found).iter().all(|sequence| *sequence >= acknowledged), "kill {kill}: {acknowledged}");
    }
}

/// Not a test of its own: what the process does that the test above starts and kills. Everybody beats
/// each time, so that a round is over with the second batch after it was wanted.
#[test]
fn process_that_keeps_beats_until_it_is_killed() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let mut store = SqliteStore::open(Path::new(&path)).unwrap();
    let first = 1 + sequences(&store.registry().unwrap()).into_iter().max().unwrap_or(0);
    let mut wants_round = false;
    let mut out = std::io::stdout();
    for sequence in first.. {
        let half = WORKERS / 2 + sequence % 100;
        keep(&mut store, 1..=half, sequence).unwrap();
        wants_round = keep_all(&mut store, half + 1..=WORKERS, sequence, wants_round).unwrap();
        writeln!(out, "kept {sequence}").unwrap();
        out.flush().unwrap();
    }
}
