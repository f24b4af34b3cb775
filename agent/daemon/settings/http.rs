//! What the config says of requests over HTTP by plugins.

use std::collections::BTreeMap;
use std::path::PathBuf;

use latido_plugin_host::{HttpGrant, Network, Secret, origin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `grant.http.… = …`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct HttpTable {
    /// Where requests may go, such as `https://hooks.slack.com`; redirects too.
    pub(super) origins: Vec<String>,
    /// Networks and addresses that may be dialled although they are not of the internet, such as `127.0.0.1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) private: Vec<String>,
    /// A file of certificates in PEM that are trusted in place of the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ca: Option<PathBuf>,
    /// Secrets by the name that the plugin uses; it never sees their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) secrets: BTreeMap<String, SecretTable>,
}

/// Where a secret is: one of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct SecretTable {
    /// In this variable of the agent's environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) variable: Option<String>,
    /// In this file, relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<PathBuf>,
}

/// Requests that a plugin may send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpSettings {
    /// origins, as the host compares them
    pub origins: Vec<String>,
    /// networks that may be dialled although they are not of the internet
    pub private: Vec<Network>,
    /// certificates that are trusted in place of the machine's
    pub ca: Option<PathBuf>,
    /// secrets by the plugin's name for them
    pub secrets: BTreeMap<String, Secret>,
}

impl HttpSettings {
    /// The same as the host takes it.
    pub(crate) fn grant(&self) -> HttpGrant {
        let mut grant = HttpGrant::to(self.origins.iter().cloned());
        grant.private.clone_from(&self.private);
        grant.ca.clone_from(&self.ca);
        grant.secrets.clone_from(&self.secrets);
        grant
    }

    /// The same as the config has it.
    pub(super) fn table(&self) -> HttpTable {
        let secret = |secret: &Secret| match secret {
            Secret::Variable(name) => SecretTable { variable: Some(name.clone()), file: None },
            Secret::File(path) => SecretTable { variable: None, file: Some(path.clone()) },
        };
        HttpTable {
            origins: self.origins.clone(),
            private: self.private.iter().map(ToString::to_string).collect(),
            ca: self.ca.clone(),
            secrets: self.secrets.iter().map(|(name, source)| (name.clone(), secret(source))).collect(),
        }
    }
}

impl HttpTable {
    /// Reads a table; what is wrong with it goes to `refuse`, with the key below the table.
    pub(super) fn settings(self, base: &std::path::Path, mut refuse: impl FnMut(String, String)) -> HttpSettings {
        let mut settings = HttpSettings { ca: self.ca.map(|path| base.join(path)), ..HttpSettings::default() };
        if self.origins.is_empty() {
            refuse(
                "origins".to_owned(),
                "it is empty; name at least one origin, such as `https://example.org`".to_owned(),
            );
        }
        for (index, text) in self.origins.iter().enumerate() {
            match origin(text) {
                Ok(origin) => settings.origins.push(origin),
                Err(why) => refuse(format!("origins.{index}"), why),
            }
        }
        for (index, text) in self.private.iter().enumerate() {
            match text.parse() {
                Ok(network) => settings.private.push(network),
                Err(why) => refuse(format!("private.{index}"), why),
            }
        }
        for (name, table) in self.secrets {
            let secret = match (table.variable, table.file) {
                (Some(variable), None) => Secret::Variable(variable),
                (None, Some(file)) => Secret::File(base.join(file)),
                (Some(_), Some(_)) | (None, None) => {
                    refuse(format!("secrets.{name}"), "say either `variable` or `file`".to_owned());
                    continue;
                }
            };
            settings.secrets.insert(name, secret);
        }
        settings
    }
}
