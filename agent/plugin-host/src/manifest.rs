//! What a plugin says of itself in its custom section `latido:manifest`, and how it compares with what was granted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use wasmparser::{Parser, Payload};

use crate::error::LoadError;
use crate::spec::{Grants, PluginSpec};

/// The custom section that holds the manifest, in the component or in its module.
pub const MANIFEST_SECTION: &str = "latido:manifest";

/// How large a manifest may be: a page of TOML, many times over.
const MANIFEST_MAX: usize = 64 << 10;

/// What a plugin says of itself and asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// what it is
    #[serde(default)]
    pub plugin: About,
    /// what it asks for
    #[serde(default)]
    pub requires: Requires,
}

/// What a plugin is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// its name
    #[serde(default)]
    pub name: String,
    /// its own version
    #[serde(default)]
    pub version: String,
    /// `sink`, `rule` or `strategy`
    #[serde(default)]
    pub kind: Option<String>,
}

/// What a plugin asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requires {
    /// databases, by its names for them
    #[serde(default)]
    pub sql: BTreeSet<String>,
    /// files, by its names for them
    #[serde(default)]
    pub files: BTreeSet<String>,
    /// requests over HTTP, to origins and with secrets of the operator's choice
    #[serde(default)]
    pub http: bool,
    /// a durable memory
    #[serde(default)]
    pub state: bool,
    /// what lies in the directory of the job that it is asked about
    #[serde(default)]
    pub workspace: bool,
}

impl Manifest {
    /// Reads the manifest of a component; one that has none asks for nothing. A section of the component itself stands
    /// before one of a module in it.
    ///
    /// # Errors
    ///
    /// Says what is wrong, where the bytes are damaged or the section cannot be read.
    pub fn read(plugin: &str, component: &[u8]) -> Result<Self, LoadError> {
        let mut depth = 0_usize;
        let mut found: Option<(usize, Vec<u8>)> = None;
        for payload in Parser::new(0).parse_all(component) {
            let payload = payload.map_err(|error| LoadError::Damaged {
                plugin: plugin.to_owned(),
                offset: error.offset(),
                length: component.len(),
                message: error.message().split_whitespace().collect::<Vec<_>>().join(" "),
            })?;
            if matches!(payload, Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) {
                depth += 1;
            } else if matches!(payload, Payload::End(_)) {
                depth = depth.saturating_sub(1);
            } else if let Payload::CustomSection(section) = payload
                && section.name() == MANIFEST_SECTION
                && found.as_ref().is_none_or(|(known, _)| depth < *known)
            {
                found = Some((depth, section.data().to_vec()));
            }
        }
        let Some((_, bytes)) = found else { return Ok(Self::default()) };
        let wrong = |message: String| LoadError::Manifest { plugin: plugin.to_owned(), message };
        if bytes.len() > MANIFEST_MAX {
            return Err(wrong(format!("it has {} bytes, at most {MANIFEST_MAX} are read", bytes.len())));
        }
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
        Self::parse(&text).map_err(wrong)
    }

    /// Reads a manifest's text.
    ///
    /// # Errors
    ///
    /// Says what is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// The lines of a plugin's table in latido.toml that grant what it asks for and is not granted.
    pub fn missing(&self, grants: &Grants) -> Vec<String> {
        let requires = &self.requires;
        let sql = requires.sql.iter().filter(|name| !grants.sql.contains_key(*name));
        let files = requires.files.iter().filter(|name| !grants.files.contains_key(*name));
        let mut lines: Vec<String> = sql.map(|name| format!("grant.sql.{name} = \"{name}.db\"")).collect();
        lines.extend(files.map(|name| format!("grant.files.{name} = \"{name}.jsonl\"")));
        let others = [
            (requires.http && grants.http.is_none(), "grant.http.origins = [\"https://example.org\"]"),
            (requires.state && grants.state.is_none(), "grant.state = true"),
            (requires.workspace && grants.workspace.is_none(), "grant.workspace = {}"),
        ];
        lines.extend(others.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, line)| line.to_owned()));
        lines
    }

    /// What the plugin may do: what it asks for, all of which has to be granted. What is granted and not asked for stays
    /// out, and is told in the log.
    pub(crate) fn granted(&self, spec: &PluginSpec) -> Result<Grants, LoadError> {
        if let Some(found) = self.plugin.kind.as_deref().filter(|found| *found != spec.kind.name()) {
            return Err(LoadError::WrongKind { plugin: spec.name.clone(), kind: spec.kind, found: found.to_owned() });
        }
        let missing = self.missing(&spec.grants);
        if !missing.is_empty() {
            return Err(LoadError::NotGranted { plugin: spec.name.clone(), lines: missing.join("\n") });
        }
        let asked_of = |name: &String, asked: &BTreeSet<String>| asked.contains(name);
        let allowed = Grants {
            sql: spec.grants.sql.clone().into_iter().filter(|(name, _)| asked_of(name, &self.requires.sql)).collect(),
            files: spec
                .grants
                .files
                .clone()
                .into_iter()
                .filter(|(name, _)| asked_of(name, &self.requires.files))
                .collect(),
            http: spec.grants.http.clone().filter(|_| self.requires.http),
            state: spec.grants.state.clone().filter(|_| self.requires.state),
            workspace: spec.grants.workspace.filter(|_| self.requires.workspace),
        };
        let unasked = spec.grants.sql.keys().filter(|name| !self.requires.sql.contains(*name)).map(String::as_str);
        let unasked = unasked
            .chain(spec.grants.files.keys().filter(|name| !self.requires.files.contains(*name)).map(String::as_str))
            .chain((spec.grants.workspace.is_some() && !self.requires.workspace).then_some("workspace"));
        for name in unasked {
            tracing::warn!(plugin = spec.name, grant = name, "granted, but the plugin's manifest does not ask for it");
        }
        Ok(allowed)
    }
}
