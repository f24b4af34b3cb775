//! What can be seen of a component without running it. Works for a broken one too: what can be read is told.

use std::sync::Arc;

use latido_plugin_host::{Grants, Kind, Manifest, MemoryState, PACKAGE};
use serde::Serialize;
use wasmparser::{Parser, Payload};

use crate::check::Described;
use crate::seal::{Seal, SealError, in_one_line};

/// What can be seen of a component.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Inspection {
    /// `sink`, `rule` or `strategy`, by what it exports, else by what its manifest says
    pub kind: Option<&'static str>,
    /// the version of `latido:plugin` that it was built against
    pub interface: Option<String>,
    /// what it says of itself and asks for
    pub manifest: Option<Manifest>,
    /// the lines of a config that grant what it asks for
    pub asks: Vec<String>,
    /// the interfaces that it imports
    pub imports: Vec<String>,
    /// the interfaces that it exports
    pub exports: Vec<String>,
    /// its size
    pub bytes: usize,
    /// what the size is made of, the largest first
    pub sections: Vec<SectionSize>,
    /// the SHA-256 of the component without its signature
    pub digest: Option<String>,
    /// the public key in base64 of who vouches for it; the signature is valid
    pub signer: Option<String>,
    /// what it says when it is asked; nothing where it cannot be asked
    pub description: Option<Described>,
    /// what is wrong with it, each as a fragment that fits after "cannot"
    pub problems: Vec<String>,
}

/// A part of a component's size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SectionSize {
    /// `code`, `data`, `custom NAME` or `types, names and the rest`
    pub name: String,
    /// in bytes
    pub bytes: usize,
}

/// The part that has no name of its own.
const REST: &str = "types, names and the rest";

/// Looks at a component's bytes.
pub fn inspect(component: &[u8]) -> Inspection {
    let mut seen = Inspection { bytes: component.len(), ..Inspection::default() };
    let mut sizes = Sizes::default();
    if let Err(problem) = look(component, &mut seen, &mut sizes) {
        seen.problems.push(problem);
    }
    seen.sections = sizes.sorted(component.len());
    match Seal::read(component) {
        Ok(seal) => {
            seen.digest = Some(seal.digest().to_string());
            seen.signer = seal.signer().map(|key| key.to_string());
        }
        // Said already.
        Err(SealError::Damaged { .. }) => {}
        Err(error) => seen.problems.push(error.to_string()),
    }
    match Manifest::read("it", component) {
        Ok(manifest) => {
            seen.asks = manifest.missing(&given());
            seen.manifest = (manifest != Manifest::default()).then_some(manifest);
        }
        Err(error) if seen.problems.is_empty() => seen.problems.push(error.to_string()),
        Err(_) => {}
    }
    seen.kind = kind_of(&seen).map(Kind::name);
    seen.interface = seen.imports.iter().chain(&seen.exports).find_map(|name| version_of(name)).map(str::to_owned);
    seen
}

impl Inspection {
    /// What it is to be used as.
    pub fn kind(&self) -> Option<Kind> {
        kind_of(self)
    }
}

/// What every plugin has that asks for it, without a line in the config.
fn given() -> Grants {
    Grants { state: Some(Arc::new(MemoryState::default())), ..Grants::default() }
}

fn kind_of(seen: &Inspection) -> Option<Kind> {
    let exports = |kind: Kind| {
        seen.exports.iter().filter_map(|name| ours(name)).any(|name| name.split('@').next() == Some(kind.name()))
    };
    let kinds = [Kind::Sink, Kind::Rule, Kind::Strategy];
    let said = seen.manifest.as_ref().and_then(|manifest| manifest.plugin.kind.as_deref());
    let said = kinds.into_iter().find(|kind| Some(kind.name()) == said);
    // One that exports several kinds is what it says that it is.
    said.filter(|kind| exports(*kind)).or_else(|| kinds.into_iter().find(|kind| exports(*kind))).or(said)
}

fn ours(name: &str) -> Option<&str> {
    name.strip_prefix(PACKAGE)?.strip_prefix('/')
}

fn version_of(name: &str) -> Option<&str> {
    ours(name)?.split_once('@').map(|(_, version)| version)
}

#[derive(Default)]
struct Sizes(Vec<SectionSize>);

impl Sizes {
    fn add(&mut self, name: &str, bytes: usize) {
        match self.0.iter_mut().find(|known| known.name == name) {
            Some(known) => known.bytes += bytes,
            None => self.0.push(SectionSize { name: name.to_owned(), bytes }),
        }
    }

    fn sorted(mut self, length: usize) -> Vec<SectionSize> {
        let known: usize = self.0.iter().map(|section| section.bytes).sum();
        self.add(REST, length.saturating_sub(known));
        self.0.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.name.cmp(&other.name)));
        self.0
    }
}

fn look(component: &[u8], seen: &mut Inspection, sizes: &mut Sizes) -> Result<(), String> {
    let damaged = |error: wasmparser::BinaryReaderError| {
        let (offset, length) = (error.offset(), component.len());
        format!("read it: it is truncated or damaged at byte {offset} of {length}: {}", in_one_line(&error))
    };
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.map_err(damaged)?;
        if matches!(payload, Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) {
            depth += 1;
        } else if matches!(payload, Payload::End(_)) {
            depth = depth.saturating_sub(1);
        } else if let Payload::CodeSectionStart { size, .. } = payload {
            sizes.add("code", size as usize);
        } else if let Payload::DataSection(section) = &payload {
            sizes.add("data", section.range().len());
        } else if let Payload::CustomSection(section) = &payload {
            sizes.add(&format!("custom {}", section.name()), section.range().len());
        } else if let (Payload::ComponentImportSection(section), 0) = (&payload, depth) {
            for import in section.clone() {
                seen.imports.push(import.map_err(damaged)?.name.name.to_owned());
            }
        } else if let (Payload::ComponentExportSection(section), 0) = (&payload, depth) {
            for export in section.clone() {
                seen.exports.push(export.map_err(damaged)?.name.name.to_owned());
            }
        }
    }
    Ok(())
}
