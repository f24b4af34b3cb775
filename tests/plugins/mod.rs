//! `latido plugin …`, as an author and an operator use it: through the program, on real components.

mod checked;
mod installed;
mod packed;
mod recorded;

use std::fs;
use std::path::PathBuf;

use crate::support::World;

/// A component in the home of a world: of a built-in plugin, or of a guest (`guests/NAME`).
fn component(world: &World, name: &str) -> PathBuf {
    let from = format!("{}/target/components/{name}.wasm", env!("CARGO_MANIFEST_DIR"));
    let bytes = fs::read(&from).unwrap_or_else(|error| panic!("cannot read {from}: {error}; run `cargo xtask guests`"));
    write(world, &format!("{}.wasm", name.trim_start_matches("guests/")), &bytes)
}

fn write(world: &World, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = world.home().join(name);
    fs::write(&path, bytes).unwrap();
    path
}
