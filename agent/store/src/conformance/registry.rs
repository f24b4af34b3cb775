//! What every store does with groups, workers and targets.

use crate::StoreError;
use crate::beats::{Beat, BeatBatch};
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
    let beat = BeatRow { heard_ms, ..worker(name, epoch).beat };
    RegistryWrite::Reap { name: name.to_owned(), instance: 3, epoch, beat, verdict: "stale".to_owned() }
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
        baseline_ms: 5_000,
        groups: vec![group.clone()],
        workers: vec![worker("a", 4), bare.clone()],
        targets: vec![target("acme/shop#42", Some("a"), 8), target("acme/shop#43", None, 6)],
        beats_lost: None,
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
            RegistryWrite::Listened { listened_ms: 7_000, baseline_ms: 5_000 },
        ],
    )?;
    assert_eq!(store.registry()?, rows);
    Ok(())
}

pub(super) fn changes_are_made_in_order(store: &mut dyn Store) -> Result<(), StoreError> {
    write(
        store,
        &[
            RegistryWrite::Target(target("t", Some("a"), 1)),
            RegistryWrite::RemoveTarget("t".to_owned()),
            RegistryWrite::Target(target("t", Some("b"), 2)),
            RegistryWrite::Worker(worker("a", 4)),
            RegistryWrite::Worker(worker("gone", 5)),
            RegistryWrite::RemoveWorker { name: "gone".to_owned(), epoch: 4 },
            RegistryWrite::RemoveWorker { name: "gone".to_owned(), epoch: 5 },
        ],
    )?;
    let rows = store.registry()?;
    assert_eq!(rows.targets, [target("t", Some("b"), 2)]);
    assert_eq!(rows.workers, [worker("a", 4)]);
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

pub(super) fn what_follows_a_death_is_what_holds(store: &mut dyn Store) -> Result<(), StoreError> {
    for name in ["a", "b", "c", "d"] {
        write(store, &[RegistryWrite::Worker(worker(name, 4)), reap(name, 4, 5_000)])?;
    }
    let left = WorkerRow { standing: "dead-left".to_owned(), ..worker("b", 4) };
    let remove = RegistryWrite::RemoveWorker { name: "c".to_owned(), epoch: 4 };
    let changes = [RegistryWrite::Worker(worker("a", 5)), RegistryWrite::Worker(left.clone()), remove];
    assert_eq!(write(store, &changes)?, Vec::<String>::new());
    let older = RegistryWrite::Worker(worker("d", 3));
    assert_eq!(write(store, &[older])?, ["d"]);
    let beat = BeatRow { heard_ms: 5_000, ..worker("d", 4).beat };
    let dead = WorkerRow { standing: DEAD_SILENT.to_owned(), verdict: "stale".to_owned(), beat, ..worker("d", 4) };
    assert_eq!(store.registry()?.workers, [worker("a", 5), left, dead]);
    assert_eq!(write(store, &[reap("a", 5, 5_000)])?, Vec::<String>::new(), "it can die again");
    Ok(())
}

pub(super) fn a_reap_meets_its_condition_or_does_nothing(store: &mut dyn Store) -> Result<(), StoreError> {
    write(store, &[RegistryWrite::Worker(worker("a", 4)), RegistryWrite::Target(target("t", Some("a"), 6))])?;
    let before = store.registry()?;
    let other = RegistryWrite::Reap {
        name: "a".to_owned(),
        instance: 2,
        epoch: 4,
        beat: worker("a", 4).beat,
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

fn beat<'a>(name: &'a str, epoch: u64, sequence: u64) -> Beat<'a> {
    let heard_ms = 9_000 + sequence;
    Beat { name, epoch, at_ms: Some(7), heard_ms, sequence, state: Some("busy"), active_job: None, errors: 4 }
}

fn row(beat: Beat<'_>) -> BeatRow {
    let mut row = BeatRow::default();
    row.replace(&beat);
    row
}

pub(super) fn the_newest_beat_stands_in_its_row(store: &mut dyn Store) -> Result<(), StoreError> {
    let rows = ["a", "b", "c"].into_iter().zip(4..).map(|(name, epoch)| RegistryWrite::Worker(worker(name, epoch)));
    write(store, &rows.collect::<Vec<_>>())?;
    let empty = Beat { at_ms: None, state: Some(""), active_job: Some("ñ"), ..beat("b", 5, 8) };
    let batches = [
        vec![beat("a", 4, 3), beat("b", 5, 9), beat("gone", 7, 3)],
        vec![],
        // An older one, one of another registration, and a newer one.
        vec![beat("a", 4, 2), beat("b", 3, 20), Beat { sequence: 10, ..empty }],
    ];
    for beats in batches {
        store.keep_beats(&BeatBatch { beats, ends_round: false })?;
    }
    let beats: Vec<BeatRow> = store.registry()?.workers.into_iter().map(|worker| worker.beat).collect();
    let newest = row(Beat { sequence: 10, ..empty });
    assert_eq!(beats, [row(beat("a", 4, 3)), newest, worker("c", 6).beat]);
    Ok(())
}

pub(super) fn a_row_that_is_written_is_newer_than_its_beats(store: &mut dyn Store) -> Result<(), StoreError> {
    write(store, &[RegistryWrite::Worker(worker("a", 4))])?;
    store.keep_beats(&BeatBatch { beats: vec![beat("a", 4, 3)], ends_round: false })?;
    write(store, &[RegistryWrite::Worker(WorkerRow { beat: row(beat("a", 4, 5)), ..worker("a", 4) })])?;
    assert_eq!(store.registry()?.workers[0].beat.sequence, 5);
    let again = WorkerRow { beat: BeatRow::default(), ..worker("a", 6) };
    write(store, &[RegistryWrite::Worker(again.clone())])?;
    assert_eq!(store.registry()?.workers, [again], "another registration inherits no beat");
    Ok(())
}

pub(super) fn beats_outlive_a_round(store: &mut dyn Store) -> Result<(), StoreError> {
    write(store, &[RegistryWrite::Worker(worker("a", 4)), RegistryWrite::Worker(worker("b", 5))])?;
    store.keep_beats(&BeatBatch { beats: vec![beat("a", 4, 3)], ends_round: false })?;
    store.keep_beats(&BeatBatch { beats: vec![beat("b", 5, 3), beat("a", 4, 3)], ends_round: true })?;
    store.keep_beats(&BeatBatch { beats: vec![beat("b", 5, 4)], ends_round: false })?;
    let rows = store.registry()?;
    assert_eq!(rows.workers.iter().map(|worker| worker.beat.sequence).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(rows.beats_lost, None);
    Ok(())
}
