//! Bindings, by the generators that latido carries: no author compiles one.

use std::path::Path;

use wit_bindgen_core::{Files, WorldGenerator};

use super::{BuildError, World, declarations, write};
use crate::project::{Language, Project};

/// The folder of a project that bindings lie in.
pub(crate) const FOLDER: &str = "bindings";

/// Writes the bindings of a language that latido has a generator for; the tools of the others bring their own.
pub(crate) fn write_all(project: &Project, world: &World) -> Result<(), BuildError> {
    let folder = project.root().join(FOLDER);
    match project.language() {
        Language::Rust => {
            let options = wit_bindgen_rust::Opts { generate_all: true, ..Default::default() };
            generate("Rust", &mut options.build(), world, &folder)
        }
        Language::C => generate("C", &mut *wit_bindgen_c::Opts::default().build(), world, &folder),
        Language::Go => {
            let options = wit_bindgen_go::Opts { format: wit_bindgen_go::Format::False, ..Default::default() };
            generate("Go", &mut *options.build(), world, &folder)
        }
        Language::JavaScript => write(&folder.join("latido.d.ts"), declarations::of(world).as_bytes()),
        Language::Python => Ok(()), // its tool writes them, with the first build
    }
}

fn generate(
    language: &'static str,
    generator: &mut dyn WorldGenerator,
    world: &World,
    folder: &Path,
) -> Result<(), BuildError> {
    let mut files = Files::default();
    let mut resolve = world.resolve.clone();
    generator
        .generate(&mut resolve, world.id, &mut files)
        .map_err(|error| BuildError::Bindings { language, message: format!("{error:#}") })?;
    for (name, bytes) in files.iter() {
        write(&folder.join(name), bytes)?;
    }
    Ok(())
}
