//! From a core module to a component, and what a component has to be.

use latido_plugin_host::{MANIFEST_SECTION, Manifest};
use wasm_encoder::{Encode, Section};
use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

use super::{BuildError, World};
use crate::project::Project;

/// The module by which what was built for WASI's first preview asks for it.
const WASI: &str = wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;

/// What a module lacks or has too much, before the encoder says it in its own words. `hint` says how functions are written
/// in the language.
pub(super) fn judge_module(module: &[u8], world: &World, hint: &'static str) -> Result<(), BuildError> {
    let wrong = |error: wasmparser::BinaryReaderError| BuildError::Encode { message: error.to_string() };
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.map_err(wrong)?;
        if let Payload::ImportSection(section) = payload {
            for import in section.into_imports() {
                let import = import.map_err(wrong)?;
                imports.push((import.module.to_owned(), import.name.to_owned()));
            }
        } else if let Payload::ExportSection(section) = payload {
            for export in section {
                exports.push(export.map_err(wrong)?.name.to_owned());
            }
        }
    }
    let foreign: Vec<String> = imports
        .iter()
        .filter(|(module, _)| module != WASI && !world.imports.contains(module))
        .map(|(module, name)| format!("`{name}` of `{module}`"))
        .collect();
    if !foreign.is_empty() {
        return Err(foreign_imports(world, foreign));
    }
    let wanted = world.exports.iter().flat_map(|(interface, functions)| {
        functions.iter().map(move |function| (interface, function, format!("{interface}#{function}")))
    });
    let missing: Vec<String> = wanted
        .filter(|(_, _, name)| !exports.contains(name))
        .map(|(interface, function, _)| format!("`{function}` of `{interface}`"))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(BuildError::MissingExport { kind: world.kind, missing, hint }) }
}

fn foreign_imports(world: &World, imports: Vec<String>) -> BuildError {
    let offered = world.imports.iter().map(|import| format!("`{import}`")).chain(["WASI 0.2 without http".to_owned()]);
    BuildError::ForeignImports { kind: world.kind, imports, offered: offered.collect() }
}

/// Makes a component of a module that carries its world as a custom section.
pub(super) fn of_module(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let encode = || {
        let mut encoder = ComponentEncoder::default();
        encoder.validate(true).module(module)?;
        if imports_wasi(module) {
            encoder.adapter(WASI, wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
        }
        encoder.encode()
    };
    encode().map_err(|error| BuildError::Encode { message: format!("{error:#}") })
}

/// Gives a module its world as a custom section.
pub(super) fn with_world(mut module: Vec<u8>, world: &World) -> Result<Vec<u8>, BuildError> {
    embed_component_metadata(&mut module, &world.resolve, world.id, StringEncoding::UTF8)
        .map_err(|error| BuildError::Encode { message: format!("{error:#}") })?;
    Ok(module)
}

fn imports_wasi(module: &[u8]) -> bool {
    let mut payloads = Parser::new(0).parse_all(module).flatten();
    payloads.any(|payload| {
        matches!(payload, Payload::ImportSection(section)
            if section.clone().into_imports().flatten().any(|import| import.module == WASI))
    })
}

/// Judges what a component imports and exports.
pub(super) fn judge(component: &[u8], world: &World) -> Result<(), BuildError> {
    let (imports, exports) = names(component)?;
    let wanted = world.exports.iter().map(|(interface, _)| interface);
    let missing: Vec<String> =
        wanted.filter(|wanted| !exports.contains(wanted)).map(|wanted| format!("`{wanted}`")).collect();
    if !missing.is_empty() {
        let hint = "export every interface of the plugin's world";
        return Err(BuildError::MissingExport { kind: world.kind, missing, hint });
    }
    let is_offered = |name: &String| {
        world.imports.contains(name) && name.starts_with("latido:plugin/")
            || name.starts_with("wasi:") && !name.starts_with("wasi:http/")
    };
    let foreign: Vec<String> =
        imports.iter().filter(|name| !is_offered(name)).map(|name| format!("`{name}`")).collect();
    if foreign.is_empty() { Ok(()) } else { Err(foreign_imports(world, foreign)) }
}

/// The names of what a component imports and exports itself, not what lies within it.
fn names(component: &[u8]) -> Result<(Vec<String>, Vec<String>), BuildError> {
    let wrong = |error: wasmparser::BinaryReaderError| BuildError::Encode { message: error.to_string() };
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.map_err(wrong)?;
        if matches!(payload, Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) {
            depth += 1;
        } else if matches!(payload, Payload::End(_)) {
            depth = depth.saturating_sub(1);
        } else if let (Payload::ComponentImportSection(section), 0) = (&payload, depth) {
            for import in section.clone() {
                imports.push(import.map_err(wrong)?.name.name.to_owned());
            }
        } else if let (Payload::ComponentExportSection(section), 0) = (&payload, depth) {
            for export in section.clone() {
                exports.push(export.map_err(wrong)?.name.name.to_owned());
            }
        }
    }
    Ok((imports, exports))
}

/// Appends the project's manifest, unless the component has it already.
pub(super) fn with_manifest(mut component: Vec<u8>, project: &Project) -> Result<Vec<u8>, BuildError> {
    let path = project.root().join("plugin.toml");
    let text = std::fs::read(&path).map_err(|source| BuildError::Read { path, source })?;
    let has_one = Parser::new(0)
        .parse_all(&component)
        .flatten()
        .any(|payload| matches!(payload, Payload::CustomSection(section) if section.name() == MANIFEST_SECTION));
    if has_one {
        return match Manifest::read(project.name(), &component) {
            Ok(there) if there == *project.manifest() => Ok(component),
            Ok(_) | Err(_) => Err(BuildError::OtherManifest),
        };
    }
    let section = wasm_encoder::CustomSection { name: MANIFEST_SECTION.into(), data: text.into() };
    component.push(section.id());
    section.encode(&mut component);
    Ok(component)
}
