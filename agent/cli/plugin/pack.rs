//! `latido plugin pack`.

use std::path::Path;
use std::process::ExitCode;

use latido_plugin_kit::{KeyError, Pack, PackError, Project, SigningKey, chain, pack};

use super::file::Source;
use crate::args::plugin_file::PluginPackArgs;
use crate::failure::Failure;
use crate::print;

/// Carries the command out.
pub(super) fn run(args: &PluginPackArgs) -> Result<ExitCode, Failure> {
    let source = Source::open(&args.path)?;
    let component = source.read()?;
    let manifest = source.project.as_ref().map(manifest).transpose()?;
    // Packed without a key first: no key is made for what cannot be packed.
    let refused = |error: PackError| {
        Failure::no(
            format!("cannot pack {}", source.component.display()),
            format!("cannot {}", chain(&error)),
            "`latido plugin inspect` shows what it has",
        )
    };
    pack(&component, manifest.as_deref(), None).map_err(refused)?;
    let key = key(args)?;
    let packed = pack(&component, manifest.as_deref(), key.as_ref()).map_err(refused)?;
    latido_plugin_kit::write_whole(&args.output, &packed.bytes).map_err(|error| {
        Failure::itself(
            format!("cannot write {}", args.output.display()),
            error.to_string(),
            "name another file with -o, or make room",
        )
    })?;
    print::out(&shown(&args.output, &packed))?;
    Ok(ExitCode::SUCCESS)
}

fn key(args: &PluginPackArgs) -> Result<Option<SigningKey>, Failure> {
    if let Some(path) = &args.key {
        return SigningKey::read(path).map(Some).map_err(|error| key_failure(&error));
    }
    let Some(path) = &args.new_key else { return Ok(None) };
    let (key, public) = SigningKey::make(path).map_err(|error| key_failure(&error))?;
    print::note(&format!(
        "made the key {}: keep it to yourself; {} is for those who are to trust it",
        path.display(),
        public.display()
    ));
    Ok(Some(key))
}

/// A key that cannot be read, used or made.
pub(super) fn key_failure(error: &KeyError) -> Failure {
    Failure::usage(
        "cannot use this key",
        format!("cannot {}", chain(error)),
        "`latido plugin pack --new-key FILE` makes one, as `openssl genpkey -algorithm ed25519` does",
    )
}

fn manifest(project: &Project) -> Result<String, Failure> {
    let path = project.root().join("plugin.toml");
    std::fs::read_to_string(&path).map_err(|error| {
        Failure::usage(format!("cannot read {}", path.display()), error.to_string(), "make it readable")
    })
}

fn shown(output: &Path, packed: &Pack) -> String {
    let about = &packed.manifest.plugin;
    let signature = packed.seal.signer().map_or_else(|| "none".to_owned(), |key| format!("by {key}"));
    format!(
        "{}: {} {}, {} bytes\n  digest     {}\n  signature  {signature}\n",
        output.display(),
        about.name,
        about.version,
        packed.bytes.len(),
        packed.seal.digest(),
    )
}
