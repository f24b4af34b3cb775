//! What the host is told of a plugin: its component, and what the settings say.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use latido_plugin_host::{COMPONENT_MAX, Kind, PluginSpec};
use latido_protocol::layout::StateDir;

use super::builtin;
use crate::settings::{HttpSettings, PluginSettings, PluginSource};

/// Reads a plugin's component and puts together what the host wants to know of it: all but the plugin's memory, which an
/// agent alone has.
///
/// # Errors
///
/// In words, where there is no such component, or it is not to be trusted.
pub fn of(plugin: &PluginSettings, kind: Kind, state: &StateDir) -> Result<PluginSpec, String> {
    let component = match &plugin.source {
        PluginSource::Builtin(name) => builtin::component(name)
            .ok_or_else(|| format!("there is no built-in plugin {name}; there are {}", builtin::NAMES.join(", ")))?,
        PluginSource::Installed(name) => {
            let path = plugin.source.file(state).unwrap_or_default();
            read(&path).map_err(|why| format!("{why}; `latido plugin install FILE --name {name}` puts one there"))?
        }
        PluginSource::File(path) => read(path)?,
    };
    plugin.trust.judge(&component).map_err(|error| {
        let whom = format!("trust plugin `{}`", plugin.name);
        latido_protocol::chain(&error).replacen("trust it", &whom, 1)
    })?;
    let below = |path: &PathBuf| state.path().join(path);
    let mut spec = PluginSpec::new(&plugin.name, kind, component);
    spec.settings = serde_json::Value::Object(plugin.settings.clone());
    spec.grants.sql = plugin.grant.sql.iter().map(|(name, path)| (name.clone(), below(path).into())).collect();
    spec.grants.files = plugin.grant.files.iter().map(|(name, path)| (name.clone(), below(path).into())).collect();
    spec.grants.http = plugin.grant.http.as_ref().map(HttpSettings::grant);
    spec.grants.workspace = plugin.grant.workspace;
    spec.limits.memory = usize::try_from(plugin.limits.memory_max).unwrap_or(usize::MAX);
    spec.limits.cpu = plugin.limits.cpu_for.0;
    spec.limits.wall = plugin.limits.call_for.0;
    spec.limits.batch_entries = usize::try_from(plugin.limits.batch_max.get()).unwrap_or(usize::MAX);
    Ok(spec)
}

/// Reads a component, unless it is larger than any that would be accepted.
fn read(path: &Path) -> Result<Arc<[u8]>, String> {
    let broken = |error: std::io::Error| format!("read {}: {error}", path.display());
    let length = std::fs::metadata(path).map_err(broken)?.len();
    if length > COMPONENT_MAX as u64 {
        return Err(format!("read {}: it has {length} bytes, at most {COMPONENT_MAX} are accepted", path.display()));
    }
    Ok(std::fs::read(path).map_err(broken)?.into())
}
