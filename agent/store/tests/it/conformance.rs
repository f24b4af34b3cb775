//! Every store passes one list.

use latido_store::{MemoryStore, SqliteStore, Store, conformance};

#[test]
fn the_store_in_memory_conforms() {
    conformance::run(|| Box::new(MemoryStore::new("test")));
}

#[test]
fn the_sqlite_store_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let mut made = 0;
    conformance::run(|| {
        made += 1;
        Box::new(SqliteStore::open(&directory.path().join(format!("{made}.db"))).unwrap()) as Box<dyn Store>
    });
}

#[test]
fn a_sqlite_store_that_was_closed_has_everything_again_under_the_same_id() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("latido.db");
    let mut store = SqliteStore::open(&path).unwrap();
    let entry = latido_store::NewEntry { kind: "agent".into(), body: "{}".into(), ..Default::default() };
    store.commit(&latido_store::Batch { entries: vec![entry], ..Default::default() }).unwrap();
    store.advance("history", 1).unwrap();
    let id = store.journal_id().to_owned();
    drop(store);

    let again = SqliteStore::open(&path).unwrap();
    assert_eq!(again.journal_id(), id);
    assert_eq!(again.last_sequence().unwrap(), 1);
    assert_eq!(again.cursor("history").unwrap().sequence, 1);
    let other = SqliteStore::open(&directory.path().join("other.db")).unwrap();
    assert_ne!(other.journal_id(), id, "a new journal has a new id");
    assert_eq!(id.len(), 32);
}
