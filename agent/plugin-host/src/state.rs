//! A plugin's durable memory: what the caller has to provide, and one that lives in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Keeps small values for plugins. Called on a thread that may block.
pub trait StateStore: Send + Sync {
    /// Returns what was set last.
    ///
    /// # Errors
    ///
    /// In words, where the store cannot be read.
    fn read(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, StateFault>;

    /// Keeps a value durably, or forgets it.
    ///
    /// # Errors
    ///
    /// [`StateFault::Full`] where the plugin's share is used up.
    fn write(&self, plugin: &str, key: &str, value: Option<&[u8]>) -> Result<(), StateFault>;
}

/// Why a value was not read or kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateFault {
    /// The plugin's share is used up.
    #[error("keep more: the share is used up")]
    Full,
    /// The store failed.
    #[error("use the store: {0}")]
    Failed(String),
}

/// The default share of one plugin, keys and values, in bytes.
pub const SHARE: usize = 1 << 20;

/// A store that forgets at the end of the process: for tests and for trying plugins out.
#[derive(Debug, Default)]
pub struct MemoryState {
    values: Mutex<BTreeMap<(String, String), Vec<u8>>>,
}

impl StateStore for MemoryState {
    fn read(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, StateFault> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(values.get(&(plugin.to_owned(), key.to_owned())).cloned())
    }

    fn write(&self, plugin: &str, key: &str, value: Option<&[u8]>) -> Result<(), StateFault> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (plugin.to_owned(), key.to_owned());
        let Some(value) = value else {
            values.remove(&name);
            return Ok(());
        };
        let others = values.iter().filter(|((owner, other), _)| owner == plugin && other != key);
        let used: usize = others.map(|((_, other), kept)| other.len() + kept.len()).sum();
        if used + key.len() + value.len() > SHARE {
            return Err(StateFault::Full);
        }
        values.insert(name, value.to_vec());
        Ok(())
    }
}
