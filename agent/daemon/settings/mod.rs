//! The config file: read into types, checked as a whole, with every fault named by line and nearest known key.
//!
//! Nothing here starts, watches or decides anything; the only files touched are config files.

use std::path::{Path, PathBuf};

mod alerts;
mod budget;
mod check;
mod document;
mod entry_kind;
mod error;
mod file;
mod group;
mod http;
mod launch;
mod model;
mod nearest;
mod policy;
mod read;
mod recording;
mod schema;
mod show;
mod source;
#[cfg(test)]
mod tests;
mod text;
mod watched;

pub use alerts::AlertsSettings;
pub use budget::{BudgetOverrides, MoneyLimit, parse_money_limit};
pub use entry_kind::EntryKind;
pub use error::{Problem, SettingsError};
pub(crate) use file::text_of;
pub use http::HttpSettings;
pub use launch::{
    LaunchOverrides, SizeLimit, Umask, on_end, parse_environment, parse_rlimit, parse_size_limit, parse_umask,
};
pub use model::{
    AgentSettings, ConfiguredJob, DEFAULT_POLICY, DEFAULT_STRATEGY, Grant, Overrides, PluginLimits, PluginSettings,
    Policy, Reload, Settings, SinkSettings, StartMode,
};
pub use policy::{BackoffError, Complaint, VariableError, check_variable, parse_backoff};
pub use recording::RecordingSettings;
pub use schema::{schema, schema_keys, schema_text};
pub use source::PluginSource;
pub use text::{parse_count_limit, parse_limit};
pub use watched::{ConfiguredCheck, ConfiguredProcess, ConfiguredTiming, NamedBy};

impl Settings {
    /// Reads the config file that is in force: `path` where one is named, else `$XDG_CONFIG_HOME/latido/latido.toml`
    /// (or `~/.config/…`) where that exists, else none, and all settings are defaults.
    ///
    /// # Errors
    /// When the file cannot be read or does not check out.
    pub fn load(path: Option<&Path>) -> Result<Self, SettingsError> {
        match path.map(Path::to_owned).or_else(|| users_config().filter(|file| file.exists())) {
            Some(file) => Self::read(&file),
            None => Ok(Self::default()),
        }
    }

    /// The config file that [`Self::load`] reads, or would read if it were there; absolute. `None` where there is no home.
    pub fn file_to_load(path: Option<&Path>) -> Option<PathBuf> {
        let file = path.map(Path::to_owned).or_else(users_config)?;
        Some(std::path::absolute(&file).unwrap_or(file))
    }

    /// Reads this config file.
    ///
    /// # Errors
    /// When it cannot be read or does not check out.
    pub fn read(file: &Path) -> Result<Self, SettingsError> {
        let text = text_of(file).map_err(|source| SettingsError::Read { file: file.to_owned(), source })?;
        Self::parse(file, &text)
    }

    /// Reads the text of a config; `file` is its name in messages, and relative paths begin at its folder.
    ///
    /// # Errors
    /// When it does not check out.
    pub fn parse(file: &Path, text: &str) -> Result<Self, SettingsError> {
        check::settings(file, text)
    }

    /// The state directory: `named` (`--state-dir`), else the config's, else `$XDG_STATE_HOME/latido`, else
    /// `~/.local/state/latido`; made absolute.
    ///
    /// # Errors
    /// When none of them is given.
    pub fn state_dir(&self, named: Option<&Path>) -> Result<PathBuf, SettingsError> {
        let directory = named
            .map(Path::to_owned)
            .or_else(|| self.agent.state_dir.clone())
            .or_else(|| base_directory("XDG_STATE_HOME", ".local/state").map(|base| base.join("latido")))
            .ok_or(SettingsError::NoStateDirectory)?;
        Ok(std::path::absolute(&directory).unwrap_or(directory))
    }
}

/// The config file of this user, whether it is there or not.
fn users_config() -> Option<PathBuf> {
    base_directory("XDG_CONFIG_HOME", ".config").map(|base| base.join("latido/latido.toml"))
}

/// A base directory of the XDG specification: the variable, where it is an absolute path, else below the home.
fn base_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below_home)))
}
