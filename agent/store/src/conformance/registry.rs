//! What every store does with groups, workers and targets.

use crate::StoreError;
use crate::registry::{BeatRow, DEAD_SILENT, GroupRow, RegistryRows, RegistryWrite, TargetRow, WorkerRow};
use crate::rows::Batch;
use crate::store::Store;

fn worker(name: &str, epoch: u64) -> WorkerRow {
    WorkerRow {
        name: name.to_owned(),
        group: "executor".to_owned(),
        instance: 3,
        epoch,
        standing: "active".to_owned(),
        verdict: "alive".to_owned(),
        interval_ms: 30_000,
        ttl_ms: 90_000,
        start_ms: 60_000,
        host: Some("pod-1".to_owned()),
        pid: Some(42),
        registered_ms: 1_700_000_000_000,
        beat: BeatRow {
            at_ms: Some(1_700_000_030_000),
            heard_ms: 5_000,
            sequence: 2,
            state: Some("waiting".to_owned()),
            active_job: Some("build 7".to_owned()),
            errors: 1,
        },
    }
}

fn target(name: &str, holder: Option<&str>, epoch: u64) -> TargetRow {
    let event = holder.map(|_| "push".to_owned());
    TargetRow { name: name.to_owned(), holder: holder.map(str::to_owned), epoch, event, pickups: 0 }
}

fn reap(name: &str, epoch: u64, heard_ms: u64) -> RegistryWrite {
    RegistryWrite::Reap { name: name.to_owned(), instance: 3, epoch, heard_ms, verdict: "stale".to_owned() }
}

fn write(store: &mut dyn Store, registry: &[RegistryWrite]) -> Result<Vec<String>, StoreError> {
    Ok(store.commit(&Batch { registry: registry.to_vec(), ..Batch::default() })?.refused)
}

pub(super) fn rows_keep_every_field(store: &mut dyn Store) -> Result<(), StoreError> {
    assert_eq!(store.registry()?, RegistryRows::default());
    let group = GroupRow { name: "executor".to_owned(), instance: 3 };
    let bare = WorkerRow { name: "b".to_owned(), epoch: 5, ..WorkerRow::default() };
    let rows = RegistryRows {
        epoch: 9,
        listened_ms: 7_000,
        groups: vec![group.clone()],
        workers: vec![worker("a", 4), bare.clone()],
        targets: vec![target("acme/shop#42", Some("a"), 8), target("acme/shop#43", None, 6)],
    };
    write(
        store,
        &[
            RegistryWrite::Group(group),
            RegistryWrite::Worker(worker("a", 4)),
            RegistryWrite::Worker(bare),
            RegistryWrite::Target(target("acme/shop#42", Some("a"), 8)),
            RegistryWrite::Target(target("acme/shop#43", None, 6)),
            RegistryWrite::Epoch(9),
            RegistryWrite::Listened(7_000),
        ],
    )?;
    assert_eq!(store.registry()?, rows);
    Ok(())
}

pub(super) fn changes_are_made_in_order(store: &mut dyn Store) -> Result<(), StoreError> {
    let beat = BeatRow { heard_ms: 9_000, sequence: 3, ..BeatRow::default() };
    write(
        store,
        &[
            RegistryWrite::Target(target("t", Some("a"), 1)),
            RegistryWrite::RemoveTarget("t".to_owned()),
            RegistryWrite::Target(target("t", Some("b"), 2)),
            RegistryWrite::Worker(worker("a", 4)),
            RegistryWrite::Beat { name: "a".to_owned(), epoch: 3, beat: BeatRow::default() },
            RegistryWrite::Beat { name: "a".to_owned(), epoch: 4, beat: beat.clone() },
            RegistryWrite::Worker(worker("gone", 5)),
            RegistryWrite::RemoveWorker { name: "gone".to_owned(), epoch: 4 },
            RegistryWrite::RemoveWorker { name: "gone".to_owned(), epoch: 5 },
        ],
    )?;
    let rows = store.registry()?;
    assert_eq!(rows.targets, [target("t", Some("b"), 2)]);
    assert_eq!(rows.workers, [WorkerRow { beat, ..worker("a", 4) }]);
    Ok(())
}

pub(super) fn a_reap_releases(store: &mut dyn Store) -> Result<(), StoreError> {
    let held = ["t", "u"].map(|name| RegistryWrite::Target(target(name, Some("a"), 6)));
    write(store, &held)?;
    write(store, &[RegistryWrite::Worker(worker("a", 4)), RegistryWrite::Target(target("v", Some("b"), 7))])?;
    assert_eq!(write(store, &[reap("a", 4, 5_000)])?, Vec::<String>::new());
    let rows = store.registry()?;
    assert_eq!((rows.workers[0].standing.as_str(), rows.workers[0].verdict.as_str()), (DEAD_SILENT, "stale"));
    let released = |name| TargetRow { pickups: 1, ..target(name, None, 6) };
    assert_eq!(rows.targets, [released("t"), released("u"), target("v", Some("b"), 7)]);
    assert_eq!(write(store, &[reap("a", 4, 5_000)])?, ["a"], "dead is dead, and no pickup counts twice");
    assert_eq!(store.registry()?, rows);
    Ok(())
}

pub(super) fn a_reap_meets_its_condition_or_does_nothing(store: &mut dyn Store) -> Result<(), StoreError> {
    write(store, &[RegistryWrite::Worker(worker("a", 4)), RegistryWrite::Target(target("t", Some("a"), 6))])?;
    let before = store.registry()?;
    let other = RegistryWrite::Reap {
        name: "a".to_owned(),
        instance: 2,
        epoch: 4,
        heard_ms: 5_000,
        verdict: "stale".to_owned(),
    };
    for refused in [reap("a", 3, 5_000), reap("a", 4, 4_999), reap("b", 4, 5_000), other] {
        assert_eq!(write(store, &[refused])?.len(), 1);
    }
    assert_eq!(store.registry()?, before);
    Ok(())
}

pub(super) fn an_older_epoch_is_refused(store: &mut dyn Store) -> Result<(), StoreError> {
    let row = RegistryWrite::Worker(worker("a", 4));
    write(store, &[row.clone(), RegistryWrite::Target(target("t", Some("a"), 6)), RegistryWrite::Epoch(6)])?;
    let older = [
        RegistryWrite::Worker(worker("a", 3)),
        RegistryWrite::Target(target("t", Some("b"), 5)),
        RegistryWrite::Epoch(5),
    ];
    assert_eq!(write(store, &older)?, ["a", "t"]);
    let rows = store.registry()?;
    assert_eq!((rows.workers, rows.epoch), (vec![worker("a", 4)], 6));
    assert_eq!(rows.targets, [target("t", Some("a"), 6)]);
    Ok(())
}
