//! Makes a pack: one file that is a component, says what it is, and may be vouched for.

use latido_plugin_host::{COMPONENT_MAX, MANIFEST_SECTION, Manifest};
use wasm_encoder::{CustomSection, Section as _};
use wasmparser::{Parser, Payload};

use crate::key::SigningKey;
use crate::project::{NAME_RULE, is_name};
use crate::seal::{self, Seal, SealError};

/// How every component begins: the encoding's version and its layer.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// Why there is no pack.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// It is no component.
    #[error("pack it: it is no WebAssembly component; `latido plugin build` makes one")]
    NoComponent,
    /// It would be larger than any that an agent accepts.
    #[error("pack it: it has {length} bytes, at most {COMPONENT_MAX} are accepted")]
    TooLarge {
        /// how long it is
        length: usize,
    },
    /// Its end cannot be believed.
    #[error("pack it")]
    Seal(#[source] SealError),
    /// It does not say what it is.
    #[error(
        "pack it: it has no section `{MANIFEST_SECTION}`; build it with `latido plugin build`, or pack its project's folder"
    )]
    NoManifest,
    /// It says twice what it is.
    #[error("pack it: it has {count} sections `{MANIFEST_SECTION}`, and one is the most")]
    SeveralManifests {
        /// how many
        count: usize,
    },
    /// What it says cannot be used.
    #[error("pack it: its manifest is wrong: {message}")]
    Manifest {
        /// what is wrong
        message: String,
    },
    /// The project says something else than the component that was built from it.
    #[error(
        "pack it: it was built with another plugin.toml than there is now; build it again with `latido plugin build`"
    )]
    OtherManifest,
}

/// A pack.
#[derive(Clone, Debug)]
pub struct Pack {
    /// the file
    pub bytes: Vec<u8>,
    /// its digest, and who vouches for it
    pub seal: Seal,
    /// what it says of itself
    pub manifest: Manifest,
}

/// Makes a pack of a component. `manifest` is the text of its project's `plugin.toml`, where it has one; without a key
/// nobody vouches for it, and a signature that it has is taken off. The same component, text and key make the same bytes.
///
/// # Errors
///
/// Says what keeps it from being one.
pub fn pack(component: &[u8], manifest: Option<&str>, key: Option<&SigningKey>) -> Result<Pack, PackError> {
    if !component.starts_with(COMPONENT) {
        return Err(PackError::NoComponent);
    }
    let mut bytes = seal::unsigned(component).map_err(PackError::Seal)?.to_vec();
    let found = manifests(&bytes)?;
    let outer: Vec<&Found> = found.iter().filter(|found| found.depth == 0).collect();
    let inner = found.iter().find(|found| found.depth > 0);
    let text = match (outer.as_slice(), manifest) {
        ([known], Some(text)) if known.text != text.as_bytes() => return Err(PackError::OtherManifest),
        ([known], _) => known.text.clone(),
        ([], Some(text)) => text.as_bytes().to_vec(),
        ([], None) => inner.ok_or(PackError::NoManifest)?.text.clone(),
        (several, _) => return Err(PackError::SeveralManifests { count: several.len() }),
    };
    let manifest = judged(&text)?;
    if outer.is_empty() {
        CustomSection { name: MANIFEST_SECTION.into(), data: text.into() }.append_to(&mut bytes);
    }
    if let Some(key) = key {
        seal::sign(&mut bytes, key);
    }
    if bytes.len() > COMPONENT_MAX {
        return Err(PackError::TooLarge { length: bytes.len() });
    }
    let seal = Seal::read(&bytes).map_err(PackError::Seal)?;
    Ok(Pack { bytes, seal, manifest })
}

/// Reads a manifest that has to say what it is of.
fn judged(text: &[u8]) -> Result<Manifest, PackError> {
    let wrong = |message: String| PackError::Manifest { message };
    let text = std::str::from_utf8(text).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    let manifest = Manifest::parse(text).map_err(wrong)?;
    let about = &manifest.plugin;
    if !is_name(&about.name) {
        return Err(wrong(format!("`name` under [plugin] is \"{}\"; {NAME_RULE}", about.name)));
    }
    if about.version.is_empty() {
        return Err(wrong("`version` is missing under [plugin]".to_owned()));
    }
    match about.kind.as_deref() {
        Some("sink" | "rule" | "strategy") => Ok(manifest),
        Some(other) => Err(wrong(format!("`kind` under [plugin] is \"{other}\"; it is sink, rule or strategy"))),
        None => Err(wrong("`kind` is missing under [plugin]; it is sink, rule or strategy".to_owned())),
    }
}

struct Found {
    depth: usize,
    text: Vec<u8>,
}

fn manifests(component: &[u8]) -> Result<Vec<Found>, PackError> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.map_err(|error| {
            PackError::Seal(SealError::Damaged {
                offset: error.offset(),
                length: component.len(),
                message: error.message().to_owned(),
            })
        })?;
        if matches!(payload, Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) {
            depth += 1;
        } else if matches!(payload, Payload::End(_)) {
            depth = depth.saturating_sub(1);
        } else if let Payload::CustomSection(section) = payload
            && section.name() == MANIFEST_SECTION
        {
            found.push(Found { depth, text: section.data().to_vec() });
        }
    }
    Ok(found)
}
