//! The components that ship inside the binary. They are loaded like any other: nothing here is a privilege.

use std::sync::Arc;

/// Names of the built-in plugins, as `source = "builtin:NAME"` has them.
pub(crate) const NAMES: [&str; 7] = ["sqlite", "jsonl", "webhook", "liveness", "threshold", "anomaly", "script"];

macro_rules! embedded {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/target/components/", $name, ".wasm")).as_slice()
    };
}

/// The bytes of a built-in plugin.
pub(crate) fn component(name: &str) -> Option<Arc<[u8]>> {
    let bytes = match name {
        "sqlite" => embedded!("sqlite"),
        "jsonl" => embedded!("jsonl"),
        "webhook" => embedded!("webhook"),
        "liveness" => embedded!("liveness"),
        "threshold" => embedded!("threshold"),
        "anomaly" => embedded!("anomaly"),
        "script" => embedded!("script"),
        _ => return None,
    };
    Some(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_plugin_is_a_component() {
        for name in NAMES {
            let bytes = component(name).unwrap();
            assert_eq!(&bytes[..8], b"\0asm\x0d\0\x01\0", "{name} is no component");
        }
        assert!(component("nothing").is_none());
    }
}
