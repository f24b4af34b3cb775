//! What is kept of workers beside the policy's records, and whose newest beat waits for the disk.

use std::collections::VecDeque;

use latido_policy::WorkerId;
use latido_protocol::WallTime;

/// What is kept of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(super) registered_at: WallTime,
    pub(super) beat_at: Option<WallTime>,
    pub(super) host: Option<String>,
    pub(super) pid: Option<u32>,
    pub(super) state: Option<String>,
    pub(super) active_job: Option<String>,
}

/// Everybody's, by their numbers, which are dense.
#[derive(Debug, Default)]
pub(super) struct Notes {
    notes: Vec<Option<Note>>,
    /// whose newest beat is not kept yet, in the order in which they were heard; some may have gone
    waiting: VecDeque<WorkerId>,
    /// who is among them
    waits: Vec<bool>,
}

impl Notes {
    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, count: usize) {
        self.notes.reserve(count);
    }

    pub(super) fn of(&self, worker: WorkerId) -> Option<&Note> {
        self.notes.get(worker.0 as usize)?.as_ref()
    }

    pub(super) fn put(&mut self, worker: WorkerId, note: Note) {
        let index = worker.0 as usize;
        if index >= self.notes.len() {
            self.notes.resize_with(index + 1, || None);
        }
        self.notes[index] = Some(note);
    }

    pub(super) fn remove(&mut self, worker: WorkerId) {
        if let Some(note) = self.notes.get_mut(worker.0 as usize) {
            *note = None;
        }
    }

    /// Takes in what came with a beat, which waits to be kept from then on.
    pub(super) fn heard(&mut self, worker: WorkerId, at: WallTime, state: Option<String>, active_job: Option<String>) {
        let index = worker.0 as usize;
        let Some(note) = self.notes.get_mut(index).and_then(Option::as_mut) else { return };
        note.beat_at = Some(at);
        // Most beats say what the one before said.
        for (known, said) in [(&mut note.state, state), (&mut note.active_job, active_job)] {
            if *known != said {
                *known = said;
            }
        }
        if index >= self.waits.len() {
            self.waits.resize(self.notes.len(), false);
        }
        if !std::mem::replace(&mut self.waits[index], true) {
            self.waiting.push_back(worker);
        }
    }

    /// Those whose beats wait, the longest first.
    pub(super) fn waiting(&self) -> impl ExactSizeIterator<Item = WorkerId> + '_ {
        self.waiting.iter().copied()
    }

    /// The beats of the first so many are kept.
    pub(super) fn kept(&mut self, count: usize) {
        for worker in self.waiting.drain(..count.min(self.waiting.len())) {
            self.waits[worker.0 as usize] = false;
        }
    }
}
