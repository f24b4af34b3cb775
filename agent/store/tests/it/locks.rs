//! Other programs at the same file: writers that hold the lock, readers that hold the log.

use crate::support;
use latido_store::{LOG_BYTES_MAX, OpenError, SqliteStore, Store, StoreError};
use rusqlite::Connection;

#[test]
fn two_openers_write_one_sequence() {
    let (_directory, path) = support::place();
    let mut one = SqliteStore::open(&path).unwrap();
    let mut two = SqliteStore::open(&path).unwrap();
    assert_eq!(one.journal_id(), two.journal_id());
    for n in 0..10 {
        one.commit(&support::numbered(2 * n + 1, 1, 10)).unwrap();
        two.commit(&support::numbered(2 * n + 2, 1, 10)).unwrap();
    }
    assert_eq!(support::check_whole(&one), 20);
    assert_eq!(support::check_whole(&two), 20);
}

#[test]
fn who_took_the_store_before_writes_nothing_more() {
    let (_directory, path) = support::place();
    let (mut old, mut new) = (SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap());
    let mut beside = SqliteStore::open(&path).unwrap();
    old.take().unwrap();
    old.commit(&support::numbered(1, 1, 10)).unwrap();
    new.take().unwrap();
    let beats = latido_store::BeatBatch { beats: Vec::new(), ends_round: false };
    for outcome in [
        old.commit(&support::numbered(2, 1, 10)).map(drop),
        old.commit_quick(&support::numbered(2, 1, 10)).map(drop),
        old.advance("sink", 1),
        old.keep_beats(&beats).map(drop),
    ] {
        assert!(matches!(outcome, Err(StoreError::TakenOver { .. })), "{outcome:?}");
    }
    beside.commit(&support::numbered(2, 1, 10)).unwrap();
    new.commit(&support::numbered(3, 1, 10)).unwrap();
    assert_eq!(support::check_whole(&new), 3);
}

#[test]
fn a_store_that_could_not_be_taken_is_taken_with_the_next_write() {
    let (_directory, path) = support::place();
    let (mut old, mut new) = (SqliteStore::open(&path).unwrap(), SqliteStore::open(&path).unwrap());
    old.take().unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("begin immediate").unwrap();
    assert!(matches!(new.take(), Err(StoreError::Locked { .. })));
    other.execute_batch("rollback").unwrap();
    old.commit(&support::numbered(1, 1, 10)).unwrap();
    new.commit(&support::numbered(2, 1, 10)).unwrap();
    let refused = old.commit(&support::numbered(3, 1, 10));
    assert!(matches!(refused, Err(StoreError::TakenOver { .. })), "{refused:?}");
}

#[test]
fn twenty_at_once_make_a_new_store_once() {
    let (_directory, path) = support::place();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let open = || SqliteStore::open(&path).unwrap().journal_id().to_owned();
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

// jentic/jentic-one PR #529: a transaction that reads first and writes later gets "busy" at once.
#[test]
fn c221_twenty_writers_meet_no_lock_and_share_no_number() {
    let (_directory, path) = support::place();
    drop(SqliteStore::open(&path).unwrap());
    let mut firsts: Vec<u64> = std::thread::scope(|scope| {
        let write = || {
            let mut store = SqliteStore::open(&path).unwrap();
            (0..10)
                .map(|_| store.commit_quick(&support::numbered(1, 1, 10)).unwrap().first_sequence)
                .collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(write)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    firsts.sort_unstable();
    assert_eq!(firsts, (1..=200).collect::<Vec<u64>>(), "each number was given once");
}

// owainlewis/machinist#162: one write that failed because of a lock ended the daemon.
#[test]
fn c225_a_lock_held_for_longer_than_the_wait_is_an_error_that_passes() {
    let (_directory, path) = support::place();
    let mut store = SqliteStore::open(&path).unwrap();
    store.commit(&support::numbered(1, 1, 10)).unwrap();

    let other = Connection::open(&path).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let outcome = store.commit(&support::numbered(2, 1, 10));
    assert!(matches!(outcome, Err(StoreError::Locked { .. })), "{outcome:?}");
    assert!(matches!(store.advance("history", 1), Err(StoreError::Locked { .. })));
    assert_eq!(store.last_sequence().unwrap(), 1, "reading goes on");

    other.execute_batch("commit").unwrap();
    assert_eq!(store.commit(&support::numbered(2, 1, 10)).unwrap().first_sequence, 2);
    assert_eq!(support::check_whole(&store), 2);
}

#[test]
fn a_store_that_another_program_keeps_for_itself_is_told() {
    let (_directory, path) = support::place();
    drop(SqliteStore::open(&path).unwrap());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("pragma locking_mode = exclusive; begin exclusive").unwrap();
    let outcome = SqliteStore::open(&path);
    assert!(matches!(outcome, Err(OpenError::Locked { .. })), "{:?}", outcome.err());
    drop(other);
    SqliteStore::open(&path).unwrap();
}

/// Commits until the log holds more than its bound although it is emptied by itself, and returns the next number.
fn overfill(store: &mut SqliteStore, path: &std::path::Path) -> u64 {
    let mut next = store.last_sequence().unwrap() + 1;
    while support::size(path, "-wal") <= LOG_BYTES_MAX {
        store.commit_quick(&support::numbered(next, 1_000, 1_000)).unwrap();
        next += 1_000;
        assert!(next < 100_000, "the log does not grow");
    }
    next
}

fn reader(path: &std::path::Path) -> Connection {
    let reader = Connection::open(path).unwrap();
    reader.execute_batch("begin").unwrap();
    let _: i64 = reader.query_row("select count(*) from entries", [], |row| row.get(0)).unwrap();
    reader
}

// BYK/loreai#1221: the log grew to gigabytes because a reader always held it and only passive checkpoints ran.
#[test]
fn c218_a_log_that_a_reader_held_is_emptied_when_the_reader_has_gone() {
    let (_directory, path) = support::place();
    let mut store = SqliteStore::open(&path).unwrap();
    let reader = reader(&path);
    overfill(&mut store, &path);
    let held = store.checkpoint().unwrap();
    assert!(held.blocked, "{held:?}");
    assert!(held.log_bytes > LOG_BYTES_MAX, "the caller is told the size to warn of: {held:?}");

    drop(reader);
    let freed = store.checkpoint().unwrap();
    assert_eq!((freed.log_bytes, freed.blocked), (0, false));
    support::check_whole(&store);
}

// openclaw/openclaw#112950: after a blocked checkpoint the log stayed at its high-water mark until a restart.
#[test]
fn c219_after_a_blocked_checkpoint_usual_commits_bring_the_log_back_under_its_bound() {
    let (_directory, path) = support::place();
    let mut store = SqliteStore::open(&path).unwrap();
    let reader = reader(&path);
    let next = overfill(&mut store, &path);
    drop(reader);
    for n in 0..5 {
        store.commit(&support::numbered(next + n, 1, 1_000)).unwrap();
    }
    let size = support::size(&path, "-wal");
    assert!(size <= LOG_BYTES_MAX, "{size} bytes");
    support::check_whole(&store);
}

#[test]
fn a_log_that_nobody_holds_stays_under_its_bound() {
    let (_directory, path) = support::place();
    let mut store = SqliteStore::open(&path).unwrap();
    for n in 0..20 {
        store.commit_quick(&support::numbered(n * 1_000 + 1, 1_000, 1_000)).unwrap();
        let size = support::size(&path, "-wal");
        assert!(size <= LOG_BYTES_MAX, "{size} bytes");
    }
}
