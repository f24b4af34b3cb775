//! A clock that stands and randomness that is known, as a guest sees them through WASI.

use std::path::Path;

use latido_plugin_host::{FaultKind, Fixed, Kind, PluginSpec};

use crate::support::{World, beat, fault};

/// A world with what languages bring along.
const WIT: &str = "package latido:test;
package wasi:clocks@0.2.0 {
    interface wall-clock {
        record datetime { seconds: u64, nanoseconds: u32 }
        now: func() -> datetime;
    }
}
package wasi:random@0.2.0 {
    interface random { get-random-u64: func() -> u64; }
}
world fixed {
    include latido:plugin/storage-sink@0.2.0;
    import wasi:clocks/wall-clock@0.2.0;
    import wasi:random/random@0.2.0;
}";

/// A sink that acknowledges what the instructions leave as a number; it is told by the host's refusal.
fn sink(number: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "wasi:clocks/wall-clock@0.2.0" "now" (func $now (param i32)))
            (import "wasi:random/random@0.2.0" "get-random-u64" (func $random (result i64)))
            (memory (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
            (func (export "latido:plugin/lifecycle@0.2.0#describe") (result i32) (i32.const 256))
            (func (export "latido:plugin/lifecycle@0.2.0#configure") (param i32 i32) (result i32) (i32.const 512))
            (func (export "latido:plugin/sink@0.2.0#write") (param i32) (result i32)
                (call $now (i32.const 1024))
                (i64.store (i32.const 520) {number})
                (i32.const 512))
            (func (export "latido:plugin/sink@0.2.0#flush") (result i32) (i32.const 512)))"#
    );
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = wit_parser::Resolve::default();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    resolve.push_dir(wit).unwrap();
    let package = resolve.push_str("fixed.wit", WIT).unwrap();
    let world = resolve.select_world(&[package], Some("fixed")).unwrap();
    wit_component::embed_component_metadata(&mut module, &resolve, world, wit_component::StringEncoding::UTF8).unwrap();
    wit_component::ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

/// What a guest was told, once in each of two instances.
async fn told(number: &str, fixed: Option<Fixed>) -> [String; 2] {
    let world = World::new();
    let mut spec = PluginSpec::new("fixed", Kind::Sink, sink(number));
    spec.fixed = fixed;
    let mut sink = world.host.load_sink(spec).await.unwrap();
    let mut told = [const { String::new() }; 2];
    for told in &mut told {
        let FaultKind::BadAnswer(why) = fault(sink.write(&beat(1)).await) else { panic!("it is refused") };
        *told = why.split_whitespace().nth(3).unwrap().trim_end_matches(',').to_owned();
    }
    told
}

#[tokio::test]
async fn a_guest_sees_the_clock_that_was_fixed() {
    let seconds = "(i64.load (i32.const 1024))";
    let fixed = Fixed { now_ms: 1_767_323_045_250, seed: 0 };
    assert_eq!(told(seconds, Some(fixed)).await, ["1767323045", "1767323045"]);
    let nanoseconds = "(i64.load32_u (i32.const 1032))";
    assert_eq!(told(nanoseconds, Some(fixed)).await, ["250000000", "250000000"]);
    assert_ne!(told(seconds, None).await[0], "1767323045", "the machine's own clock moves on");
}

#[tokio::test]
async fn a_guest_sees_the_randomness_that_was_fixed_the_same_in_each_instance() {
    // Above what was given to it whatever it is, so that it is told.
    let random = "(i64.or (i64.shr_u (call $random) (i64.const 2)) (i64.const 1024))";
    let seeded = |seed| told(random, Some(Fixed { now_ms: 0, seed }));
    let (one, again, other) = (seeded(1).await, seeded(1).await, seeded(2).await);
    assert_eq!(one, again);
    assert_eq!(one[0], one[1]);
    assert_ne!(one, other);
    let [first, second] = told(random, None).await;
    assert_ne!(first, second, "without it chance is chance");
}
