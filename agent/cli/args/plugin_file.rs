//! `latido plugin inspect`, `check`, `pack`, `verify`, `install`, `record` and `replay`: what is done with files.

use std::path::PathBuf;

use clap::Args;
use latido_plugin_kit::{Digest, KeySource};
use latido_protocol::Span;

/// `latido plugin inspect`.
#[derive(Debug, Args)]
pub(crate) struct PluginInspectArgs {
    /// A component, or the folder of a project that was built
    #[arg(value_name = "FILE|DIR")]
    pub(crate) path: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido plugin check`.
#[derive(Debug, Args)]
pub(crate) struct PluginCheckArgs {
    /// A component, or the folder of a project that was built
    #[arg(value_name = "FILE|DIR")]
    pub(crate) path: PathBuf,
    /// Check it with the settings and grants of this plugin of the config [default: no settings, nothing granted]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido plugin pack`.
#[derive(Debug, Args)]
pub(crate) struct PluginPackArgs {
    /// The folder of a project that was built, or a component
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    pub(crate) path: PathBuf,
    /// Sign it with this private key: Ed25519, in PEM, as `openssl genpkey -algorithm ed25519` makes it
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Make a key, write it to this file and the public one to FILE.pub, and sign with it; neither may exist
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    pub(crate) new_key: Option<PathBuf>,
    /// Write the pack to this file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// `latido plugin verify`.
#[derive(Debug, Args)]
pub(crate) struct PluginVerifyArgs {
    /// A component
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// It has to be signed by this key: a public key's file in PEM, or the key itself in base64
    #[arg(long, value_name = "KEY", value_parser = KeySource::parse)]
    pub(crate) key: Option<KeySource>,
    /// It has to have this digest: `sha256:` and 64 digits
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<Digest>,
}

/// `latido plugin install`.
#[derive(Debug, Args)]
pub(crate) struct PluginInstallArgs {
    /// A component, or the folder of a project that was built
    #[arg(value_name = "FILE|DIR")]
    pub(crate) path: PathBuf,
    /// Install it under this name [default: the name that it has itself]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// It has to be signed by this key: a public key's file in PEM, or the key itself in base64
    #[arg(long, value_name = "KEY", value_parser = KeySource::parse)]
    pub(crate) key: Option<KeySource>,
    /// It has to have this digest: `sha256:` and 64 digits
    #[arg(long, value_name = "DIGEST")]
    pub(crate) digest: Option<Digest>,
}

/// `latido plugin record`.
#[derive(Debug, Args)]
pub(crate) struct PluginRecordArgs {
    /// The plugin's name in the config
    #[arg(value_name = "NAME")]
    pub(crate) plugin: String,
    /// Record for this long, ten minutes at most
    #[arg(long = "for", value_name = "D", default_value = "1m")]
    pub(crate) record_for: Span,
    /// Write the case to this file, whose name ends in .toml, and the answers beside it, to .golden.json
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// `latido plugin replay`.
#[derive(Debug, Args)]
pub(crate) struct PluginReplayArgs {
    /// The case that was recorded
    #[arg(value_name = "FILE")]
    pub(crate) case: PathBuf,
    /// Run it with this component [default: the one that the config has under its name]
    #[arg(long, value_name = "FILE.wasm")]
    pub(crate) plugin: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
