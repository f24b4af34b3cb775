//! `latido plugin verify`.

use std::process::ExitCode;

use latido_plugin_kit::{KeySource, Seal, Trust, TrustError, chain};

use super::file::Source;
use super::pack::key_failure;
use crate::args::plugin_file::PluginVerifyArgs;
use crate::failure::Failure;
use crate::print;

/// Carries the command out.
pub(super) fn run(args: &PluginVerifyArgs) -> Result<ExitCode, Failure> {
    let source = Source { project: None, component: args.file.clone() };
    let component = source.read()?;
    let trust = Trust { digest: args.digest, key: args.key.clone() };
    let what = format!("cannot verify {}", args.file.display());
    let refused = |why: String, next: &str| Failure::no(what.clone(), why, next);
    let seal = Seal::read(&component).map_err(|error| {
        refused(format!("cannot {error}"), "fetch it again from who made it, and do not load this one")
    })?;
    match trust.judge(&component) {
        Ok(()) => {}
        Err(TrustError::Key(error)) => return Err(key_failure(&error)),
        Err(error) => {
            let next = "ask who made it for the right file, or for the right key and digest";
            return Err(refused(format!("cannot {}", chain(&error)), next));
        }
    }
    let by = match (seal.signer(), &args.key) {
        (Some(key), Some(KeySource::File(path))) => format!("by {key}, the key of {}", path.display()),
        (Some(key), Some(KeySource::Key(_))) => format!("by {key}, the key that was asked for"),
        (Some(key), None) => format!("by {key}, valid; give --key to say whose it has to be"),
        (None, _) => "none; nobody vouches for it".to_owned(),
    };
    print::out(&format!("{}: whole\n  digest     {}\n  signature  {by}\n", args.file.display(), seal.digest()))?;
    Ok(ExitCode::SUCCESS)
}
