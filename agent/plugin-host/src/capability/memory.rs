//! `state`: the plugin's durable memory, kept by the caller of the host.

use std::sync::Arc;

use serde_json::json;

use crate::bindings::v0_2::sink::latido::plugin::state::{Host, StateError};
use crate::guest::Guest;
use crate::probe::bytes;
use crate::state::{StateFault, StateStore};

/// A key is a name, not a document.
const KEY_MAX: usize = 256;

/// One value may not take the whole share.
const VALUE_MAX: usize = 256 << 10;

impl Host for Guest {
    async fn get(&mut self, key: String) -> Result<Option<Vec<u8>>, StateError> {
        let arguments = self.watch().map(|watch| (watch, json!({ "key": key })));
        let work = with_store(self, move |store, plugin| store.read(plugin, &key));
        match arguments {
            None => work.await,
            Some((watch, arguments)) => watch.around("state", "get", arguments, work).await,
        }
    }

    async fn set(&mut self, key: String, value: Option<Vec<u8>>) -> Result<(), StateError> {
        let told = |value: &Option<Vec<u8>>| value.as_deref().map_or(serde_json::Value::Null, bytes);
        let arguments = self.watch().map(|watch| (watch, json!({ "key": key, "value": told(&value) })));
        let too_large = key.len() > KEY_MAX || value.as_ref().is_some_and(|value| value.len() > VALUE_MAX);
        let work = with_store(self, move |store, plugin| match too_large {
            true => Err(StateFault::Full),
            false => store.write(plugin, &key, value.as_deref()),
        });
        match arguments {
            None => work.await,
            Some((watch, arguments)) => watch.around("state", "set", arguments, work).await,
        }
    }
}

/// Uses the store on a thread that may block, so that the call's deadline holds.
fn with_store<T: Send + 'static, W>(
    guest: &Guest,
    work: W,
) -> impl Future<Output = Result<T, StateError>> + Send + use<T, W>
where
    W: FnOnce(&dyn StateStore, &str) -> Result<T, StateFault> + Send + 'static,
{
    // Taken before the wait: the guest itself cannot be shared between threads.
    let store = guest.capabilities.state.clone();
    let plugin = Arc::clone(&guest.capabilities.plugin);
    async move {
        let Some(store) = store else {
            return Err(StateError::Denied("`state` is not granted".to_owned()));
        };
        match tokio::task::spawn_blocking(move || work(&*store, &plugin)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(StateFault::Full)) => Err(StateError::Full),
            Ok(Err(StateFault::Failed(why))) => Err(StateError::Failed(why)),
            Err(_) => Err(StateError::Failed("the host failed at the store".to_owned())),
        }
    }
}
