//! A store in memory, for the simulator and for programs that embed the agent without a state directory.

use std::collections::{BTreeMap, VecDeque};

use crate::StoreError;
use crate::alert_rows::{AlertRow, SilenceRow};
use crate::all_rows::Rows;
use crate::beats::{BeatBatch, BeatsKept};
use crate::registry::{MemoryRegistry, RegistryRows, refused_name};
use crate::rows::{Batch, Checkpoint, Committed, Cursor, EntryRow, JournalBound, SetAside, SubjectRow, Trimmed, fits};
use crate::store::{PLUGIN_STATE_BYTES_MAX, Store};

/// Keeps everything in memory; it is gone with the value.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    journal_id: String,
    subjects: BTreeMap<String, SubjectRow>,
    alerts: BTreeMap<String, AlertRow>,
    silences: BTreeMap<u32, SilenceRow>,
    entries: VecDeque<EntryRow>,
    last_sequence: u64,
    sinks: BTreeMap<String, Sink>,
    plugin_state: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    registry: MemoryRegistry,
    is_away: bool,
}

#[derive(Clone, Debug, Default)]
struct Sink {
    cursor: Cursor,
    set_aside_count: u64,
    set_aside: BTreeMap<u64, String>,
}

impl MemoryStore {
    /// Makes an empty store with the given journal id; a caller that makes several takes a random one for each.
    pub fn new(journal_id: &str) -> Self {
        Self { journal_id: journal_id.to_owned(), ..Self::default() }
    }

    /// Makes a store that holds these rows, with an empty journal.
    pub fn of(rows: Rows) -> Self {
        Self {
            subjects: rows.subjects.into_iter().map(|row| (row.name.clone(), row)).collect(),
            alerts: rows.alerts.into_iter().map(|row| (row.fingerprint.clone(), row)).collect(),
            silences: rows.silences.into_iter().map(|row| (row.number, row)).collect(),
            registry: MemoryRegistry::of(rows.registry),
            ..Self::default()
        }
    }

    /// While it is away no batch is written, as when a disk is full.
    pub fn set_away(&mut self, is_away: bool) {
        self.is_away = is_away;
    }

    /// Number of the newest entry that is no longer, or never was, in the journal.
    fn trimmed_through(&self) -> u64 {
        self.last_sequence - self.entries.len() as u64
    }

    fn sink(&mut self, sink: &str) -> &mut Sink {
        let start = self.trimmed_through();
        self.sinks
            .entry(sink.to_owned())
            .or_insert_with(|| Sink { cursor: Cursor { sequence: start, lost: 0 }, ..Sink::default() })
    }
}

impl Store for MemoryStore {
    /// Nobody else has a handle.
    fn take(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<Committed, StoreError> {
        fits(batch)?;
        if self.is_away {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(StoreError::Full { store: "memory".to_owned(), source: Box::new(full) });
        }
        let mut refused = Vec::new();
        for row in &batch.subjects {
            match self.subjects.get(&row.name) {
                Some(stored) if stored.epoch > row.epoch => refused.push(row.name.clone()),
                Some(_) | None => {
                    self.subjects.insert(row.name.clone(), row.clone());
                }
            }
        }
        for name in &batch.removed {
            self.subjects.remove(name);
        }
        for write in &batch.registry {
            if !self.registry.write(write) {
                refused.extend(refused_name(write));
            }
        }
        let first_sequence = self.last_sequence + 1;
        for entry in &batch.entries {
            self.last_sequence += 1;
            self.entries.push_back(EntryRow {
                sequence: self.last_sequence,
                at_ms: entry.at_ms,
                kind: entry.kind.clone(),
                subject: entry.subject.clone(),
                body: entry.body.clone(),
            });
        }
        for alert in &batch.alerts {
            self.alerts.insert(alert.fingerprint.clone(), alert.clone());
        }
        for fingerprint in &batch.alerts_over {
            self.alerts.remove(fingerprint);
        }
        for silence in &batch.silences {
            self.silences.insert(silence.number, silence.clone());
        }
        for number in &batch.silences_over {
            self.silences.remove(number);
        }
        Ok(Committed { first_sequence, last_sequence: self.last_sequence, refused })
    }

    fn commit_quick(&mut self, batch: &Batch) -> Result<Committed, StoreError> {
        self.commit(batch)
    }

    fn keep_beats(&mut self, batch: &BeatBatch<'_>) -> Result<BeatsKept, StoreError> {
        self.registry.keep(batch);
        Ok(BeatsKept::default())
    }

    fn journal_id(&self) -> &str {
        &self.journal_id
    }

    fn entries_after(&self, sequence: u64, kinds: &[String], limit: usize) -> Result<Vec<EntryRow>, StoreError> {
        let skipped = sequence.saturating_sub(self.trimmed_through());
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX).min(self.entries.len());
        let wanted = |entry: &&EntryRow| kinds.is_empty() || kinds.contains(&entry.kind);
        Ok(self.entries.range(skipped..).filter(wanted).take(limit).cloned().collect())
    }

    fn last_sequence(&self) -> Result<u64, StoreError> {
        Ok(self.last_sequence)
    }

    fn subjects(&self) -> Result<Vec<SubjectRow>, StoreError> {
        Ok(self.subjects.values().cloned().collect())
    }

    fn alerts(&self) -> Result<Vec<AlertRow>, StoreError> {
        Ok(self.alerts.values().cloned().collect())
    }

    fn silences(&self) -> Result<Vec<SilenceRow>, StoreError> {
        Ok(self.silences.values().cloned().collect())
    }

    fn registry(&self) -> Result<RegistryRows, StoreError> {
        Ok(self.registry.rows())
    }

    fn attach_sink(&mut self, sink: &str) -> Result<Cursor, StoreError> {
        Ok(self.sink(sink).cursor)
    }

    fn detach_sink(&mut self, sink: &str) -> Result<(), StoreError> {
        self.sinks.remove(sink);
        Ok(())
    }

    fn cursor(&self, sink: &str) -> Result<Cursor, StoreError> {
        Ok(self.sinks.get(sink).map(|sink| sink.cursor).unwrap_or_default())
    }

    fn advance(&mut self, sink: &str, sequence: u64) -> Result<(), StoreError> {
        let sequence = sequence.min(self.last_sequence);
        let cursor = &mut self.sink(sink).cursor;
        cursor.sequence = cursor.sequence.max(sequence);
        Ok(())
    }

    fn set_aside(&mut self, sink: &str, sequence: u64, why: &str) -> Result<(), StoreError> {
        let is_kept = sequence > self.trimmed_through() && sequence <= self.last_sequence;
        let sink = self.sink(sink);
        if is_kept && !sink.set_aside.contains_key(&sequence) {
            sink.set_aside.insert(sequence, why.to_owned());
            sink.set_aside_count += 1;
        }
        Ok(())
    }

    fn set_aside_count(&self, sink: &str) -> Result<u64, StoreError> {
        Ok(self.sinks.get(sink).map_or(0, |sink| sink.set_aside_count))
    }

    fn set_aside_entries(&self, sink: &str) -> Result<Vec<SetAside>, StoreError> {
        let set_aside = self.sinks.get(sink).map(|sink| &sink.set_aside);
        let rows = set_aside.into_iter().flatten();
        Ok(rows.map(|(sequence, why)| SetAside { sequence: *sequence, why: why.clone() }).collect())
    }

    fn plugin_state(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.plugin_state.get(plugin).and_then(|keys| keys.get(key)).cloned())
    }

    fn set_plugin_state(&mut self, plugin: &str, key: &str, value: Option<&[u8]>) -> Result<(), StoreError> {
        let keys = self.plugin_state.entry(plugin.to_owned()).or_default();
        let Some(value) = value else {
            keys.remove(key);
            return Ok(());
        };
        let others = keys.iter().filter(|(other, _)| *other != key);
        let bytes = others.map(|(key, value)| key.len() + value.len()).sum::<usize>() + key.len() + value.len();
        if bytes > PLUGIN_STATE_BYTES_MAX {
            let limit = PLUGIN_STATE_BYTES_MAX;
            return Err(StoreError::PluginStateFull { plugin: plugin.to_owned(), bytes, limit });
        }
        keys.insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn plugin_keys(&self, plugin: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.plugin_state.get(plugin).map(|keys| keys.keys().cloned().collect()).unwrap_or_default())
    }

    fn trim(&mut self, keep: JournalBound) -> Result<Trimmed, StoreError> {
        let start = self.trimmed_through();
        let excess = (self.entries.len() as u64).saturating_sub(keep.entries_max);
        let removed = excess.min(keep.step as u64);
        let through = start + removed;
        self.entries.drain(..usize::try_from(removed).unwrap_or(usize::MAX).min(self.entries.len()));
        let mut lost = Vec::new();
        for (name, sink) in &mut self.sinks {
            sink.set_aside = sink.set_aside.split_off(&(through + 1));
            if sink.cursor.sequence < through {
                let count = through - sink.cursor.sequence.max(start);
                sink.cursor = Cursor { sequence: through, lost: sink.cursor.lost + count };
                lost.push((name.clone(), count));
            }
        }
        Ok(Trimmed { removed, lost, more: excess > removed })
    }

    fn checkpoint(&mut self) -> Result<Checkpoint, StoreError> {
        Ok(Checkpoint::default())
    }
}
