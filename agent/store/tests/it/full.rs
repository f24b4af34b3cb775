//! No space: nothing is acknowledged that is not there, and the store goes on by itself.

use std::fs;
use std::path::Path;

use crate::support::{self, SmallDisk};
use latido_store::{JournalBound, OpenError, SqliteStore, Store, StoreError};

/// Commits until no space is left, and returns the last number that was acknowledged.
fn fill(store: &mut SqliteStore) -> u64 {
    let mut acknowledged = store.last_sequence().unwrap();
    loop {
        match store.commit(&support::numbered(acknowledged + 1, 10, 1_000)) {
            Ok(committed) => acknowledged = committed.last_sequence,
            Err(StoreError::Full { .. }) => return acknowledged,
            Err(error) => panic!("{error:?}"),
        }
        assert!(acknowledged < 100_000, "the disk does not fill");
    }
}

#[test]
fn a_store_at_its_bound_says_full_and_goes_on_when_there_is_space() {
    let (_directory, path) = support::place();
    let mut store = SqliteStore::open(&path).unwrap();
    store.limit_bytes(1024 * 1024).unwrap();
    let acknowledged = fill(&mut store);
    assert!(acknowledged > 100);
    assert_eq!(support::check_whole(&store), acknowledged, "what was refused is not there");
    let again = store.commit(&support::numbered(acknowledged + 1, 10, 1_000));
    assert!(matches!(again, Err(StoreError::Full { .. })), "{again:?}");

    store.limit_bytes(2 * 1024 * 1024).unwrap();
    let committed = store.commit(&support::numbered(acknowledged + 1, 10, 1_000)).unwrap();
    assert_eq!(committed.first_sequence, acknowledged + 1);
    assert_eq!(support::check_whole(&store), acknowledged + 10);
}

#[test]
fn trimming_makes_space_in_a_store_at_its_bound() {
    let (_directory, path) = support::place();
    let mut store = SqliteStore::open(&path).unwrap();
    store.limit_bytes(1024 * 1024).unwrap();
    let acknowledged = fill(&mut store);
    store.trim(JournalBound { entries_max: 100, step: 10_000 }).unwrap();
    let committed = store.commit(&support::numbered(acknowledged + 1, 10, 1_000)).unwrap();
    assert_eq!(committed.first_sequence, acknowledged + 1);
}

fn free_again(store: &mut SqliteStore, ballast: &Path, acknowledged: u64) {
    fs::remove_file(ballast).unwrap();
    let committed = store.commit(&support::numbered(acknowledged + 1, 10, 1_000)).unwrap();
    assert_eq!(committed.first_sequence, acknowledged + 1);
}

#[test]
fn a_full_disk_acknowledges_nothing_and_the_store_goes_on_by_itself() {
    let Some(disk) = SmallDisk::mount("2m") else { return };
    let path = disk.place.join("latido.db");
    let mut store = SqliteStore::open(&path).unwrap();
    store.commit(&support::numbered(1, 10, 1_000)).unwrap();
    let ballast = disk.exhaust();
    let acknowledged = fill(&mut store);
    assert_eq!(support::check_whole(&store), acknowledged);
    free_again(&mut store, &ballast, acknowledged);
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(support::check_whole(&store), acknowledged + 10);
    store.examine().unwrap();
}

#[test]
fn a_store_on_a_full_disk_can_be_opened_again_once_there_is_space() {
    let Some(disk) = SmallDisk::mount("1m") else { return };
    let path = disk.place.join("latido.db");
    let ballast = disk.exhaust();
    let outcome = SqliteStore::open(&path);
    assert!(matches!(outcome, Err(OpenError::Full { .. })), "{:?}", outcome.err());
    fs::remove_file(ballast).unwrap();
    assert_eq!(SqliteStore::open(&path).unwrap().last_sequence().unwrap(), 0);
}
