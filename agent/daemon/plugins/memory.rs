//! A plugin's durable memory: kept in the agent's store, by the driver's thread.

use std::sync::Arc;

use latido_plugin_host::{StateFault, StateStore};
use latido_store::{Store, StoreError};

use crate::driver_thread::DriverHandle;

struct Memory {
    driver: DriverHandle,
}

/// The memory of one plugin.
pub(crate) fn of(driver: DriverHandle) -> Arc<dyn StateStore> {
    Arc::new(Memory { driver })
}

impl StateStore for Memory {
    fn read(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, StateFault> {
        let (plugin, key) = (plugin.to_owned(), key.to_owned());
        let answer = self.driver.ask_and_block(move |driver| driver.store().plugin_state(&plugin, &key));
        answer.map_err(|ended| StateFault::Failed(ended.to_string()))?.map_err(fault)
    }

    fn write(&self, plugin: &str, key: &str, value: Option<&[u8]>) -> Result<(), StateFault> {
        let (plugin, key, value) = (plugin.to_owned(), key.to_owned(), value.map(<[u8]>::to_vec));
        let answer =
            self.driver.ask_and_block(move |driver| driver.store().set_plugin_state(&plugin, &key, value.as_deref()));
        answer.map_err(|ended| StateFault::Failed(ended.to_string()))?.map_err(fault)
    }
}

fn fault(error: StoreError) -> StateFault {
    if matches!(error, StoreError::PluginStateFull { .. }) {
        StateFault::Full
    } else {
        StateFault::Failed(latido_protocol::chain(&error))
    }
}
