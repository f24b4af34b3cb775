//! The records of all workers, by number.

use alloc::vec::Vec;

use crate::WorkerId;
use crate::worker::{Registration, Worker};

/// Every worker that is known. A record and its registration are there together or not at all.
#[derive(Debug, Default)]
pub(super) struct Workers {
    records: Vec<Option<Worker>>,
    /// as long as `records`; what stands where no record is means nothing
    registrations: Vec<Registration>,
}

impl Workers {
    pub(super) fn record(&self, worker: WorkerId) -> Option<&Worker> {
        self.records.get(worker.0 as usize)?.as_ref()
    }

    pub(super) fn record_mut(&mut self, worker: WorkerId) -> Option<&mut Worker> {
        self.records.get_mut(worker.0 as usize)?.as_mut()
    }

    /// The record with what came with its registration.
    pub(super) fn whole(&self, worker: WorkerId) -> Option<(&Worker, &Registration)> {
        self.record(worker).zip(self.registrations.get(worker.0 as usize))
    }

    pub(super) fn put(&mut self, worker: WorkerId, record: Worker, registration: Registration) {
        let index = worker.0 as usize;
        if index >= self.records.len() {
            self.records.resize(index + 1, None);
            self.registrations.resize(index + 1, registration);
        }
        self.records[index] = Some(record);
        self.registrations[index] = registration;
    }

    pub(super) fn take(&mut self, worker: WorkerId) -> Option<Worker> {
        self.records.get_mut(worker.0 as usize)?.take()
    }

    /// In the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (WorkerId, &Worker, &Registration)> {
        let both = (0..).zip(self.records.iter().zip(&self.registrations));
        both.filter_map(|(id, (record, registration))| Some((WorkerId(id), record.as_ref()?, registration)))
    }
}
