//! Version 0.2 of the WIT package, as wasmtime's generator reads it.

/// The world of sinks, and the types that all worlds share.
#[expect(unreachable_pub, reason = "generated from wit/latido.wit, documented there")]
pub mod sink {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "storage-sink",
        imports: { default: async },
        exports: { default: async },
        additional_derives: [PartialEq],
        require_store_data_send: true,
    });
}

/// The world of rules.
#[expect(unreachable_pub, reason = "generated from wit/latido.wit, documented there")]
pub mod rule {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "alert-rule",
        imports: { default: async },
        exports: { default: async },
        additional_derives: [PartialEq],
        require_store_data_send: true,
        with: {
            "latido:plugin/types": super::sink::latido::plugin::types,
            "latido:plugin/log": super::sink::latido::plugin::log,
            "latido:plugin/state": super::sink::latido::plugin::state,
        },
    });
}

/// The world of strategies.
#[expect(unreachable_pub, reason = "generated from wit/latido.wit, documented there")]
pub mod strategy {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "resume-strategy",
        imports: { default: async },
        exports: { default: async },
        additional_derives: [PartialEq],
        require_store_data_send: true,
        with: {
            "latido:plugin/types": super::sink::latido::plugin::types,
            "latido:plugin/log": super::sink::latido::plugin::log,
            "latido:plugin/state": super::sink::latido::plugin::state,
        },
    });
}
