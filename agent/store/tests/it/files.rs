//! What is wrong with a file or its directory is told apart, and nothing is deleted.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support;
use latido_store::{OpenError, SqliteStore, Store, StoreError, set_aside_damaged};

/// A user without rights, whatever it is called.
const NOBODY: u32 = 65_534;

fn filled(path: &Path, entries: u64) {
    let mut store = SqliteStore::open(path).unwrap();
    store.commit(&support::numbered(1, entries, 300)).unwrap();
}

fn refusal(path: &Path) -> OpenError {
    match SqliteStore::open(path) {
        Ok(_) => panic!("{} opened", path.display()),
        Err(error) => error,
    }
}

#[test]
fn a_file_of_rubbish_is_told_and_set_aside_whole() {
    let (_directory, path) = support::place();
    let rubbish = b"this is no database\n".repeat(500);
    fs::write(&path, &rubbish).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
    assert!(error.is_damage());
    assert_eq!(error.to_string(), format!("open the store {}: it is not a database of latido", path.display()));

    let aside = set_aside_damaged(&path).unwrap();
    assert_eq!(aside.file_name().unwrap(), "latido.db.damaged-1");
    assert_eq!(fs::read(&aside).unwrap(), rubbish);
    assert_eq!(SqliteStore::open(&path).unwrap().last_sequence().unwrap(), 0);

    assert_eq!(set_aside_damaged(&path).unwrap().file_name().unwrap(), "latido.db.damaged-2");
    assert_eq!(fs::read(&aside).unwrap(), rubbish);
}

#[test]
fn a_file_torn_in_half_is_damaged() {
    let (_directory, path) = support::place();
    filled(&path, 500);
    let half = support::size(&path, "") / 2;
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(half).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
}

#[test]
fn rubbish_in_the_middle_of_a_small_file_is_found_at_once() {
    let (_directory, path) = support::place();
    filled(&path, 500);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xA5);
    fs::write(&path, &bytes).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    assert!(error.is_damage());
}

#[test]
fn rubbish_in_the_middle_of_a_large_file_is_found_where_it_is_read() {
    let (_directory, path) = support::place();
    filled(&path, 20_000);
    let mut bytes = fs::read(&path).unwrap();
    assert!(bytes.len() > 5 * 1024 * 1024, "too large to be checked at the opening");
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096 * 8].fill(0xA5);
    fs::write(&path, &bytes).unwrap();

    let store = SqliteStore::open(&path).unwrap();
    let outcome = store.entries_after(0, &[], usize::MAX);
    assert!(matches!(outcome, Err(StoreError::Damaged { .. })), "{:?}", outcome.map(|rows| rows.len()));
    assert!(matches!(store.examine(), Err(StoreError::Damaged { .. })));
}

#[test]
fn a_torn_log_keeps_every_transaction_before_the_tear() {
    let (_directory, path) = support::place();
    let mut store = SqliteStore::open(&path).unwrap();
    for n in 1..=20 {
        store.commit(&support::numbered(n, 1, 300)).unwrap();
    }
    // A copy taken while the log is full is what a machine leaves that lost its power.
    let torn = path.with_file_name("torn.db");
    fs::copy(&path, &torn).unwrap();
    let log = fs::read(format!("{}-wal", path.display())).unwrap();
    fs::write(format!("{}-wal", torn.display()), &log[..log.len() - 1_000]).unwrap();
    let found = SqliteStore::open(&torn).unwrap();
    assert_eq!(support::check_whole(&found), 19);
}

#[test]
fn a_log_without_its_database_is_set_aside_and_not_deleted() {
    let (_directory, path) = support::place();
    let log = format!("{}-wal", path.display());
    fs::write(&log, b"what a crash left between two renames").unwrap();
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.last_sequence().unwrap(), 0);
    let aside = format!("{}.damaged-1-wal", path.display());
    assert_eq!(fs::read(aside).unwrap(), b"what a crash left between two renames");
}

#[test]
fn a_database_of_a_newer_version_is_left_as_it_is() {
    let (_directory, path) = support::place();
    filled(&path, 3);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::NewerVersion { found: 99, known: 2, .. }), "{error:?}");
    assert!(!error.is_damage(), "it is whole, so it must not be set aside");
    assert!(error.to_string().ends_with("it has version 99, this latido knows versions up to 2"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_database_of_another_program_is_left_as_it_is() {
    let (_directory, path) = support::place();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("create table invoices (n integer)").unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Opens as a user who is bound by the rights of files, also when the tests are run by root.
fn refusal_without_rights(path: &Path) -> OpenError {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let nobody = rustix::process::Uid::from_raw(NOBODY);
                // Of this thread alone; the other threads keep their user.
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            refusal(path)
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_read_only_directory_is_told() {
    let (directory, path) = support::place();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o555)).unwrap();
    let none_there = refusal_without_rights(&path);
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(none_there, OpenError::ReadOnly { .. }), "{none_there:?}");

    filled(&path, 3);
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o555)).unwrap();
    let no_log_possible = refusal_without_rights(&path);
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(no_log_possible, OpenError::ReadOnly { .. }), "{no_log_possible:?}");

    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    let file_itself = refusal_without_rights(&path);
    assert!(matches!(file_itself, OpenError::ReadOnly { .. }), "{file_itself:?}");
    assert!(!file_itself.is_damage());
}

#[test]
fn a_directory_in_the_place_of_the_file_is_told_and_left() {
    let (_directory, path) = support::place();
    fs::create_dir(&path).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
    assert!(path.is_dir());
}

#[test]
fn the_files_are_for_their_user_alone() {
    let (_directory, path) = support::place();
    let _store = SqliteStore::open(&path).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let file = format!("{}{suffix}", path.display());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
}
