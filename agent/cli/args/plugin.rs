//! `latido plugin …`

use clap::{Args, Subcommand};

/// `latido plugin`.
#[derive(Debug, Args)]
pub(crate) struct PluginArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub(crate) command: PluginCommand,
}

/// What can be done about plugins.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List the agent's plugins: state, faults by kind, what waits for them, what they cost
    List(PluginListArgs),
    /// Load a plugin again from its file, and forget its faults: the way back from a quarantine
    ///
    /// The new one is loaded beside the old; where that fails the old one goes on, and the command ends with 4.
    Reload(PluginReloadArgs),
}

/// `latido plugin list`.
#[derive(Debug, Args)]
pub(crate) struct PluginListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido plugin reload`.
#[derive(Debug, Args)]
pub(crate) struct PluginReloadArgs {
    /// The plugin's name in the config
    #[arg(value_name = "NAME")]
    pub(crate) plugin: String,
}
