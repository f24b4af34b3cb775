//! Checks that the built-in plugins are there, since the binary carries them.

use std::path::Path;

fn main() {
    let components = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/components");
    for name in ["sqlite", "jsonl", "webhook", "liveness", "threshold", "anomaly", "script"] {
        let component = components.join(name).with_extension("wasm");
        println!("cargo::rerun-if-changed={}", component.display());
        if !component.is_file() {
            println!(
                "cargo::error=the built-in plugin {name} has not been built; run `cargo xtask guests`, then build again"
            );
        }
    }
}
