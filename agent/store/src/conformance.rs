//! The list that every store passes.

use crate::StoreError;
use crate::alert_conformance;
use crate::rows::{Batch, Committed, Cursor, JournalBound, NewEntry, SetAside, SubjectRow};
use crate::store::{PLUGIN_STATE_BYTES_MAX, Store};

mod registry;

/// One item: what it shows, and the check.
type Item = (&'static str, fn(&mut dyn Store) -> Result<(), StoreError>);

const ITEMS: [Item; 27] = [
    ("a new store is empty", a_new_store_is_empty),
    ("entries are numbered from 1 without holes", entries_are_numbered_without_holes),
    ("entries keep every field", entries_keep_every_field),
    ("entries are selected by kind and limit", entries_are_selected),
    ("a subject's row is replaced in place", a_row_is_replaced_in_place),
    ("a row with an older epoch is refused, the rest of its batch is not", an_older_epoch_is_refused),
    ("a removed name is gone, also when its batch writes it", a_removed_name_is_gone),
    ("a number that does not fit refuses the whole batch", a_number_too_large_refuses_the_batch),
    ("a quick commit is one sequence with the others", a_quick_commit_is_in_sequence),
    ("an alert is kept until it is over, with every field", alert_conformance::an_alert_is_kept),
    ("a silence is kept until it ends, with every field", alert_conformance::a_silence_is_kept),
    ("a cursor never goes back and never beyond the end", a_cursor_never_goes_back),
    ("a new sink starts at the oldest entry kept", a_new_sink_starts_at_the_oldest),
    ("an entry set aside counts once for its sink", an_entry_set_aside_counts_once),
    ("the state of plugins is apart and bounded", plugin_state_is_apart_and_bounded),
    ("trimming goes in steps and counts what a sink loses", trimming_counts_losses),
    ("trimming everything gives no number twice", trimming_gives_no_number_twice),
    ("a checkpoint changes nothing", a_checkpoint_changes_nothing),
    ("rows of the registry keep every field", registry::rows_keep_every_field),
    ("changes of the registry are made in their order", registry::changes_are_made_in_order),
    ("a reap releases what its worker holds", registry::a_reap_releases),
    ("a reap that meets something else does nothing", registry::a_reap_meets_its_condition_or_does_nothing),
    ("what follows a death is what holds", registry::what_follows_a_death_is_what_holds),
    ("the newest beat stands in its row", registry::the_newest_beat_stands_in_its_row),
    ("a row that is written is newer than its beats", registry::a_row_that_is_written_is_newer_than_its_beats),
    ("beats outlive a round", registry::beats_outlive_a_round),
    ("an older epoch of the registry is refused, and the highest is kept", registry::an_older_epoch_is_refused),
];

/// Runs the whole list, each item on a new and empty store.
///
/// # Panics
///
/// At the first item that does not hold, with its words.
pub fn run(mut make: impl FnMut() -> Box<dyn Store>) {
    for (words, check) in ITEMS {
        if let Err(error) = check(&mut *make()) {
            panic!("{words}: the store answers that it cannot {error}");
        }
    }
}

fn entry(n: u64, kind: &str) -> NewEntry {
    NewEntry { at_ms: 1_000 + n, kind: kind.to_owned(), subject: Some("a".to_owned()), body: format!("{{\"n\":{n}}}") }
}

fn entries(range: core::ops::RangeInclusive<u64>) -> Batch {
    Batch { entries: range.map(|n| entry(n, "phase")).collect(), ..Batch::default() }
}

fn subject(name: &str, epoch: u64) -> SubjectRow {
    SubjectRow {
        name: name.to_owned(),
        kind: "job".to_owned(),
        verdict: "alive".to_owned(),
        phase: "running".to_owned(),
        reason: "beats come".to_owned(),
        since_ms: 1_700_000_000_000,
        attempt: 3,
        epoch,
        pickups: 2,
        last_beat_ms: Some(1_700_000_000_500),
        sequence: 17,
        state: "{\"pid\":42}".to_owned(),
        deadline_ms: None,
    }
}

fn subjects(rows: &[SubjectRow]) -> Batch {
    Batch { subjects: rows.to_vec(), ..Batch::default() }
}

fn sequences(store: &dyn Store) -> Result<Vec<u64>, StoreError> {
    Ok(store.entries_after(0, &[], usize::MAX)?.iter().map(|row| row.sequence).collect())
}

fn a_new_store_is_empty(store: &mut dyn Store) -> Result<(), StoreError> {
    assert!(!store.journal_id().is_empty(), "the journal has an id");
    assert_eq!(store.last_sequence()?, 0);
    assert_eq!(store.entries_after(0, &[], 10)?, []);
    assert_eq!(store.subjects()?, []);
    assert_eq!(store.alerts()?, []);
    assert_eq!(store.cursor("history")?, Cursor::default());
    let committed = store.commit(&Batch::default())?;
    assert_eq!(committed, Committed { first_sequence: 1, last_sequence: 0, refused: Vec::new() });
    Ok(())
}

fn entries_are_numbered_without_holes(store: &mut dyn Store) -> Result<(), StoreError> {
    let first = store.commit(&entries(1..=3))?;
    assert_eq!((first.first_sequence, first.last_sequence), (1, 3));
    let second = store.commit(&entries(4..=4))?;
    assert_eq!((second.first_sequence, second.last_sequence), (4, 4));
    assert_eq!(sequences(store)?, [1, 2, 3, 4]);
    assert_eq!(store.last_sequence()?, 4);
    Ok(())
}

fn entries_keep_every_field(store: &mut dyn Store) -> Result<(), StoreError> {
    let about_nobody = NewEntry { subject: None, body: "{\"text\":\"ñ \\u0000 '\"}".to_owned(), ..entry(2, "agent") };
    store.commit(&Batch { entries: vec![entry(1, "alert"), about_nobody.clone()], ..Batch::default() })?;
    let rows = store.entries_after(0, &[], 10)?;
    for (row, written) in rows.iter().zip([entry(1, "alert"), about_nobody]) {
        let read =
            NewEntry { at_ms: row.at_ms, kind: row.kind.clone(), subject: row.subject.clone(), body: row.body.clone() };
        assert_eq!(read, written);
    }
    assert_eq!(rows.len(), 2);
    Ok(())
}

fn entries_are_selected(store: &mut dyn Store) -> Result<(), StoreError> {
    let kinds = ["phase", "alert", "phase", "it's \"one\"", "alert"];
    let numbered = (1..).zip(kinds);
    store.commit(&Batch { entries: numbered.map(|(n, kind)| entry(n, kind)).collect(), ..Batch::default() })?;
    let select = |after, kinds: &[&str], limit| -> Result<Vec<u64>, StoreError> {
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        Ok(store.entries_after(after, &kinds, limit)?.iter().map(|row| row.sequence).collect())
    };
    assert_eq!(select(0, &[], 2)?, [1, 2]);
    assert_eq!(select(2, &[], 10)?, [3, 4, 5]);
    assert_eq!(select(0, &["alert"], 10)?, [2, 5]);
    assert_eq!(select(0, &["alert", "it's \"one\""], 2)?, [2, 4]);
    assert_eq!(select(2, &["alert"], 10)?, [5]);
    assert_eq!(select(5, &[], 10)?, [0; 0]);
    assert_eq!(select(u64::MAX, &[], 10)?, [0; 0]);
    assert_eq!(select(0, &[], 0)?, [0; 0]);
    Ok(())
}

fn a_row_is_replaced_in_place(store: &mut dyn Store) -> Result<(), StoreError> {
    store.commit(&subjects(&[subject("b", 1), subject("a", 1)]))?;
    let changed = SubjectRow {
        kind: "check".to_owned(),
        verdict: "late".to_owned(),
        phase: "paused".to_owned(),
        reason: "silent for 31 s".to_owned(),
        since_ms: 5,
        attempt: u32::MAX,
        epoch: 9,
        pickups: 0,
        last_beat_ms: None,
        sequence: 18,
        state: "{}".to_owned(),
        deadline_ms: Some(77),
        ..subject("a", 9)
    };
    store.commit(&subjects(std::slice::from_ref(&changed)))?;
    assert_eq!(store.subjects()?, [changed, subject("b", 1)]);
    Ok(())
}

fn an_older_epoch_is_refused(store: &mut dyn Store) -> Result<(), StoreError> {
    store.commit(&subjects(&[subject("a", 5), subject("b", 5)]))?;
    let late = SubjectRow { verdict: "dead".to_owned(), ..subject("a", 4) };
    let same = SubjectRow { verdict: "late".to_owned(), ..subject("b", 5) };
    let batch = Batch { entries: vec![entry(1, "transition")], ..subjects(&[late, same.clone()]) };
    let committed = store.commit(&batch)?;
    assert_eq!(committed.refused, ["a"]);
    assert_eq!(store.subjects()?, [subject("a", 5), same]);
    assert_eq!(store.last_sequence()?, 1);
    let quick = store.commit_quick(&subjects(&[subject("a", 4)]))?;
    assert_eq!(quick.refused, ["a"]);
    Ok(())
}

fn a_removed_name_is_gone(store: &mut dyn Store) -> Result<(), StoreError> {
    store.commit(&subjects(&[subject("a", 5), subject("b", 5)]))?;
    let removed = vec!["a".to_owned(), "nobody".to_owned()];
    store.commit(&Batch { removed, ..subjects(&[subject("a", 6)]) })?;
    assert_eq!(store.subjects()?, [subject("b", 5)]);
    let committed = store.commit(&subjects(&[subject("a", 1)]))?;
    assert_eq!(committed.refused, [""; 0], "a name that is free begins anew");
    Ok(())
}

fn a_number_too_large_refuses_the_batch(store: &mut dyn Store) -> Result<(), StoreError> {
    let batch = Batch { entries: vec![entry(1, "phase")], ..subjects(&[subject("a", 1), subject("b", u64::MAX)]) };
    let outcome = store.commit(&batch);
    assert!(matches!(outcome, Err(StoreError::TooLarge { field: "epoch", value: u64::MAX })), "{outcome:?}");
    assert_eq!(store.subjects()?, []);
    assert_eq!(store.last_sequence()?, 0);
    store.commit(&subjects(&[subject("a", i64::MAX.unsigned_abs())]))?;
    assert_eq!(store.subjects()?, [subject("a", i64::MAX.unsigned_abs())]);
    Ok(())
}

fn a_quick_commit_is_in_sequence(store: &mut dyn Store) -> Result<(), StoreError> {
    store.commit(&entries(1..=1))?;
    let quick = store.commit_quick(&Batch { subjects: vec![subject("a", 1)], ..entries(2..=3) })?;
    assert_eq!((quick.first_sequence, quick.last_sequence), (2, 3));
    store.commit(&entries(4..=4))?;
    assert_eq!(sequences(store)?, [1, 2, 3, 4]);
    assert_eq!(store.subjects()?, [subject("a", 1)]);
    Ok(())
}

fn a_cursor_never_goes_back(store: &mut dyn Store) -> Result<(), StoreError> {
    store.commit(&entries(1..=10))?;
    store.advance("history", 7)?;
    store.advance("history", 3)?;
    assert_eq!(store.cursor("history")?, Cursor { sequence: 7, lost: 0 });
    assert_eq!(store.cursor("lines")?, Cursor::default());
    store.advance("history", 4_000)?;
    assert_eq!(store.cursor("history")?.sequence, 10, "what is not written yet cannot have been delivered");
    assert_eq!(store.attach_sink("history")?.sequence, 10, "a known sink stays where it is");
    store.detach_sink("history")?;
    assert_eq!(store.cursor("history")?, Cursor::default());
    Ok(())
}

fn a_new_sink_starts_at_the_oldest(store: &mut dyn Store) -> Result<(), StoreError> {
    store.commit(&entries(1..=10))?;
    store.trim(JournalBound { entries_max: 4, step: 100 })?;
    assert_eq!(store.attach_sink("history")?, Cursor { sequence: 6, lost: 0 });
    let trimmed = store.trim(JournalBound { entries_max: 3, step: 100 })?;
    assert_eq!(trimmed.lost, [("history".to_owned(), 1)], "only what was there since it came counts");
    Ok(())
}

fn an_entry_set_aside_counts_once(store: &mut dyn Store) -> Result<(), StoreError> {
    store.commit(&entries(1..=10))?;
    store.set_aside("history", 4, "trap")?;
    store.set_aside("history", 4, "trap again")?;
    store.set_aside("history", 2, "deadline")?;
    store.set_aside("history", 99, "never written")?;
    assert_eq!(store.set_aside_count("history")?, 2);
    assert_eq!(store.set_aside_count("lines")?, 0);
    let row = |sequence, why: &str| SetAside { sequence, why: why.to_owned() };
    assert_eq!(store.set_aside_entries("history")?, [row(2, "deadline"), row(4, "trap")]);
    assert_eq!(store.cursor("history")?.sequence, 0, "setting aside does not deliver");
    store.trim(JournalBound { entries_max: 7, step: 100 })?;
    assert_eq!(store.set_aside_entries("history")?, [row(4, "trap")], "bounded by the journal");
    assert_eq!(store.set_aside_count("history")?, 2, "the count stays");
    Ok(())
}

fn plugin_state_is_apart_and_bounded(store: &mut dyn Store) -> Result<(), StoreError> {
    store.set_plugin_state("script", "a", Some(b"\0one"))?;
    store.set_plugin_state("script", "b", Some(b""))?;
    store.set_plugin_state("liveness", "a", Some(b"two"))?;
    assert_eq!(store.plugin_state("script", "a")?.as_deref(), Some(&b"\0one"[..]));
    assert_eq!(store.plugin_state("script", "b")?.as_deref(), Some(&b""[..]));
    assert_eq!(store.plugin_state("liveness", "b")?, None);
    assert_eq!(store.plugin_keys("script")?, ["a", "b"]);
    store.set_plugin_state("script", "b", None)?;
    assert_eq!(store.plugin_state("script", "b")?, None);

    let all = vec![7; PLUGIN_STATE_BYTES_MAX - 2];
    store.set_plugin_state("script", "a", None)?;
    store.set_plugin_state("script", "ñ", Some(&all))?;
    store.set_plugin_state("script", "ñ", Some(&all))?;
    let outcome = store.set_plugin_state("script", "c", Some(b""));
    assert!(matches!(outcome, Err(StoreError::PluginStateFull { .. })), "{outcome:?}");
    assert_eq!(store.plugin_keys("script")?, ["ñ"]);
    store.set_plugin_state("liveness", "c", Some(b"its own limit"))?;
    Ok(())
}

fn trimming_counts_losses(store: &mut dyn Store) -> Result<(), StoreError> {
    store.commit(&entries(1..=100))?;
    store.advance("ahead", 90)?;
    store.advance("behind", 35)?;
    let keep = JournalBound { entries_max: 50, step: 20 };
    let mut removed = Vec::new();
    let mut lost = Vec::new();
    loop {
        let trimmed = store.trim(keep)?;
        removed.push(trimmed.removed);
        lost.extend(trimmed.lost);
        if !trimmed.more {
            break;
        }
    }
    assert_eq!(removed, [20, 20, 10]);
    assert_eq!(lost, [("behind".to_owned(), 5), ("behind".to_owned(), 10)]);
    assert_eq!(store.cursor("behind")?, Cursor { sequence: 50, lost: 15 });
    assert_eq!(store.cursor("ahead")?, Cursor { sequence: 90, lost: 0 });
    assert_eq!(sequences(store)?, (51..=100).collect::<Vec<u64>>());
    assert_eq!(store.trim(keep)?.removed, 0);
    Ok(())
}

fn trimming_gives_no_number_twice(store: &mut dyn Store) -> Result<(), StoreError> {
    store.commit(&entries(1..=5))?;
    assert_eq!(store.trim(JournalBound { entries_max: 0, step: 10 })?.removed, 5);
    assert_eq!(sequences(store)?, [0; 0]);
    assert_eq!(store.last_sequence()?, 5);
    assert_eq!(store.attach_sink("history")?.sequence, 5);
    let committed = store.commit(&entries(6..=6))?;
    assert_eq!((committed.first_sequence, committed.last_sequence), (6, 6));
    assert_eq!(sequences(store)?, [6]);
    Ok(())
}

fn a_checkpoint_changes_nothing(store: &mut dyn Store) -> Result<(), StoreError> {
    store.commit(&Batch { subjects: vec![subject("a", 1)], ..entries(1..=100) })?;
    let checkpoint = store.checkpoint()?;
    assert_eq!((checkpoint.log_bytes, checkpoint.blocked), (0, false));
    assert_eq!(sequences(store)?, (1..=100).collect::<Vec<u64>>());
    assert_eq!(store.subjects()?, [subject("a", 1)]);
    store.commit(&entries(101..=101))?;
    assert_eq!(store.last_sequence()?, 101);
    Ok(())
}
