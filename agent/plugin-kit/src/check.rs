//! Whether an agent would load a component, by the host that loads it: nothing is judged here a second time.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use latido_plugin_host::{
    Description, Grants, Host, HttpGrant, Kind, LoadError, Loaded as _, Manifest, MemoryState, PluginSpec,
    WorkspaceGrant,
};
use serde::Serialize;
use tempfile::TempDir;

use crate::inspect::Inspection;
use crate::interfaces;

/// What came of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// the operator's name for it
    pub name: String,
    /// what it was checked as
    pub kind: &'static str,
    /// the version of `latido:plugin` that it is spoken to in, where it was loaded
    pub interface: Option<&'static str>,
    /// the lines of its table in latido.toml that grant what it asks for and was not granted
    pub missing: Vec<String>,
    /// why it would not be loaded, as a fragment that fits after "cannot", were it granted all of it
    pub problem: Option<String>,
}

/// What a component says of itself when it is asked.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// its name
    pub name: String,
    /// its own version
    pub version: String,
    /// what it does
    pub summary: String,
    /// a JSON schema of its settings; a text where it is no JSON
    pub settings_schema: serde_json::Value,
}

/// Loads and configures a plugin as an agent would, with its own settings, and with fresh databases and files in the place of
/// those that it was granted: a check leaves nothing behind.
///
/// # Errors
///
/// Where there is no room for what stands in.
pub async fn check(host: &Host, spec: PluginSpec) -> std::io::Result<Checked> {
    let (name, kind, component) = (spec.name.clone(), spec.kind, Arc::clone(&spec.component));
    let mut checked = Checked { name, kind: kind.name(), interface: None, missing: Vec::new(), problem: None };
    let folder = tempfile::tempdir()?;
    let mut spec = spec;
    if let Ok(manifest) = Manifest::read(&spec.name, &spec.component) {
        spec.grants.state = Some(Arc::new(MemoryState::default()));
        checked.missing = manifest.missing(&spec.grants);
        spec.grants = stand_ins(&manifest, spec.grants, &folder);
    }
    let loaded = match kind {
        Kind::Sink => host.load_sink(spec).await.map(|loaded| loaded.package_version()),
        Kind::Rule => host.load_rule(spec).await.map(|loaded| loaded.package_version()),
        Kind::Strategy => host.load_strategy(spec).await.map(|loaded| loaded.package_version()),
    };
    match loaded {
        Ok(version) => checked.interface = Some(version),
        Err(error) => checked.problem = Some(explain(&error, &component)),
    }
    Ok(checked)
}

/// All that a plugin asks for: fresh where a check would leave something behind, as it was granted elsewhere.
fn stand_ins(manifest: &Manifest, granted: Grants, folder: &TempDir) -> Grants {
    let paths = |names: &std::collections::BTreeSet<String>, kind: &str| -> BTreeMap<String, std::path::PathBuf> {
        let named = names.iter().enumerate();
        named.map(|(index, name)| (name.clone(), folder.path().join(format!("{kind}-{index}")))).collect()
    };
    let requires = &manifest.requires;
    Grants {
        sql: paths(&requires.sql, "sql").into_iter().map(|(name, path)| (name, path.into())).collect(),
        files: paths(&requires.files, "file").into_iter().map(|(name, path)| (name, path.into())).collect(),
        http: granted.http.or_else(|| requires.http.then(|| HttpGrant::to(Vec::<String>::new()))),
        state: granted.state,
        workspace: granted.workspace.or_else(|| requires.workspace.then(WorkspaceGrant::default)),
    }
}

/// Asks a component what it is, and adds that, or why it cannot be asked, to what was seen of it.
pub async fn describe(host: &Host, name: &str, component: Arc<[u8]>, seen: &mut Inspection) {
    let Some(kind) = seen.kind() else {
        if seen.problems.is_empty() {
            let exports = if seen.exports.is_empty() { "nothing".to_owned() } else { seen.exports.join(", ") };
            seen.problems.push(format!(
                "tell its kind: it exports {exports}, and none of the interfaces sink, rule and strategy of `latido:plugin`"
            ));
        }
        return;
    };
    match host.describe(PluginSpec::new(name, kind, Arc::clone(&component))).await {
        Ok((description, version)) => {
            seen.interface = Some(version.to_owned());
            seen.description = Some(described(description));
        }
        // What is damaged was said already, with the same words.
        Err(LoadError::Damaged { .. }) if !seen.problems.is_empty() => {}
        Err(LoadError::Manifest { .. }) if !seen.problems.is_empty() => {}
        Err(error) => seen.problems.push(explain(&error, &component)),
    }
}

fn described(said: Description) -> Described {
    let settings_schema = serde_json::from_str(&said.settings_schema);
    let settings_schema = settings_schema.unwrap_or(serde_json::Value::String(said.settings_schema));
    Described { name: said.name, version: said.version, summary: said.summary, settings_schema }
}

/// Why a plugin was not loaded, with its causes. Where its interfaces are not the package's, they are compared and the
/// differences told, in place of what the linker stumbled over first.
pub fn explain(error: &LoadError, component: &[u8]) -> String {
    if let LoadError::Mismatch { plugin, version, message: _ } = error {
        let differences = interfaces::differences(component, version);
        let differences =
            if differences.is_empty() { "a type in them is another one".to_owned() } else { differences.join("; ") };
        return format!(
            "load plugin `{plugin}`: its interfaces are not those of `latido:plugin@{version}`: {differences}; build it \
             again against that version's text in wit/"
        );
    }
    chain(error)
}

/// An error with its causes, each behind the one that it caused.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
