//! Where a plugin's component is, and what is demanded of it.

use std::path::PathBuf;

use latido_plugin_kit::{Digest, KeySource, NAME_RULE, is_name};
use latido_protocol::layout::StateDir;
use schemars::{Schema, json_schema};

use super::text::Written;

/// Where a plugin's component is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginSource {
    /// Inside the binary, by this name.
    Builtin(String),
    /// Where `latido plugin install` put it, under this name.
    Installed(String),
    /// This file.
    File(PathBuf),
}

impl PluginSource {
    /// Its file; none where it is inside the binary.
    pub fn file(&self, state: &StateDir) -> Option<PathBuf> {
        match self {
            Self::Builtin(_) => None,
            Self::Installed(name) => latido_plugin_kit::installed(&state.installed_plugins(), name),
            Self::File(path) => Some(path.clone()),
        }
    }
}

/// How a built-in plugin is named, and one that was installed.
const BUILTIN: &str = "builtin:";
const INSTALLED: &str = "installed:";

impl Written for PluginSource {
    const WHAT: &'static str = "`builtin:NAME`, `installed:NAME`, or the path of a component";

    fn read(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix(INSTALLED) {
            return if is_name(name) {
                Ok(Self::Installed(name.to_owned()))
            } else {
                Err(format!("{name:?}: {NAME_RULE}"))
            };
        }
        match text.strip_prefix(BUILTIN) {
            Some(name) => Ok(Self::Builtin(name.to_owned())),
            None if text.is_empty() => Err(format!("it is empty; write {}", Self::WHAT)),
            None => Ok(Self::File(text.into())),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Builtin(name) => format!("{BUILTIN}{name}"),
            Self::Installed(name) => format!("{INSTALLED}{name}"),
            Self::File(path) => path.display().to_string(),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "examples": ["builtin:sqlite", "installed:my-sink", "my-sink.wasm"] })
    }
}

impl Written for Digest {
    const WHAT: &'static str = "a digest: `sha256:` and 64 hexadecimal digits";

    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^sha256:[0-9a-fA-F]{64}$" })
    }
}

impl Written for KeySource {
    const WHAT: &'static str = "a public key in base64, or the path of its file";

    fn read(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "examples": ["keys/acme.pub"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for text in ["builtin:sqlite", "installed:my-sink", "/x/y.wasm"] {
            assert_eq!(PluginSource::read(text).unwrap().write(), text);
        }
        let digest = format!("sha256:{}", "0f".repeat(32));
        assert_eq!(Digest::read(&digest).unwrap().write(), digest);
        assert_eq!(<KeySource as Written>::read("keys/acme.pub").unwrap().write(), "keys/acme.pub");
    }

    #[test]
    fn an_installed_plugin_is_named_by_no_path() {
        for bad in ["installed:", "installed:../x", "installed:/etc/x", "installed:a/b", "installed:A", "installed:.x"]
        {
            let why = PluginSource::read(bad).unwrap_err();
            assert!(why.contains("a name begins with a letter"), "{bad}: {why}");
        }
        assert!(Digest::read("sha256:12").is_err() && <KeySource as Written>::read("").is_err());
    }
}
