//! Everything that an agent reads from its store when it starts.

use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::alert_rows::{AlertRow, SilenceRow};
use crate::registry::RegistryRows;
use crate::rows::SubjectRow;
use crate::store::Store;

/// All rows of a store; the journal and what belongs to plugins are not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// by name
    pub subjects: Vec<SubjectRow>,
    /// alerts that are not over, by fingerprint
    pub alerts: Vec<AlertRow>,
    /// silences that hold, by number
    pub silences: Vec<SilenceRow>,
    /// groups, workers and targets
    pub registry: RegistryRows,
}

impl Rows {
    /// The rows that this store holds.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub fn of(store: &impl Store) -> Result<Self, StoreError> {
        Ok(Self {
            subjects: store.subjects()?,
            alerts: store.alerts()?,
            silences: store.silences()?,
            registry: store.registry()?,
        })
    }
}
