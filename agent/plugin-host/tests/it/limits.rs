//! Guests that compute, wait, grow, recurse, flood and answer rubbish: each ends its own call and nothing else.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use latido_plugin_host::{FaultKind, Field, Kind, LoadError, PluginError, PluginSpec, Verdict};
use serde_json::json;

use crate::support::{World, beat, beats, builtin, fault, guest, misbehaving, none, output, situation, subject, write};

#[expect(clippy::disallowed_methods, reason = "the test measures how long a call takes")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// More than a deadline of at most a second needs on a crowded machine, and far less than a guest would take.
const SOON: Duration = Duration::from_secs(20);

// Field case C250 (bytecodealliance/wasmtime#9188): epochs stop guest code, not time spent in a host call.
#[tokio::test]
async fn c250_a_guest_that_sleeps_in_the_host_is_given_up_at_its_deadline() {
    let world = World::new();
    let mut spec = PluginSpec::new("sleeper", Kind::Sink, guest("sleep"));
    spec.limits.wall = Duration::from_secs(1);
    let mut sink = world.host.load_sink(spec).await.unwrap();
    let begun = now();
    assert_eq!(fault(sink.write(&beat(1)).await), FaultKind::WallDeadline(Duration::from_secs(1)));
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(1) && took < SOON, "{took:?}");
    assert!(!sink.is_warm());
    sink.flush().await.unwrap();
}

// Field case C251 (ZettaScaleLabs/hiroz#319): time waiting in the host was charged to the plugin.
#[tokio::test]
async fn c251_waiting_in_the_host_is_not_computing() {
    let world = World::new();
    let mut spec = PluginSpec::new("sleeper", Kind::Sink, guest("sleep"));
    spec.settings = json!({ "ms": 1000 });
    spec.limits.cpu = Duration::from_millis(100);
    spec.limits.wall = Duration::from_secs(60);
    let mut sink = world.host.load_sink(spec).await.unwrap();
    assert_eq!(write(&mut sink, &beat(5)).await, Ok(5));
}

// Field case C256 (bytecodealliance/wasmtime#12485): an endless loop in every export, and in the start function.
#[tokio::test]
async fn c256_an_endless_loop_is_ended_wherever_it_is() {
    let world = World::new();
    let cpu = Duration::from_millis(200);
    let error = world.host.load_sink(misbehaving("configure", "loop")).await.map(drop).unwrap_err();
    let LoadError::Start { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.fault().unwrap().kind, FaultKind::CpuDeadline(cpu));
    assert_eq!(source.fault().unwrap().function, "configure");

    let mut sink = world.host.load_sink(misbehaving("write", "loop")).await.unwrap();
    assert_eq!(fault(sink.write(&beat(1)).await), FaultKind::CpuDeadline(cpu));
    let mut sink = world.host.load_sink(misbehaving("flush", "loop")).await.unwrap();
    assert_eq!(fault(sink.flush().await), FaultKind::CpuDeadline(cpu));
    assert_eq!(write(&mut sink, &beat(1)).await, Ok(1));

    let mut spec = PluginSpec::new("bad", Kind::Rule, guest("misbehave-rule"));
    spec.settings = json!({ "what": "loop" });
    spec.limits.cpu = cpu;
    let mut rule = world.host.load_rule(spec).await.unwrap();
    assert_eq!(fault(rule.evaluate(0, &[subject("a", Verdict::Stale)]).await), FaultKind::CpuDeadline(cpu));

    for place in ["decide", "observe"] {
        let mut spec = PluginSpec::new("bad", Kind::Strategy, guest("misbehave-strategy"));
        spec.settings = json!({ "where": place, "what": "loop" });
        spec.limits.cpu = cpu;
        let mut strategy = world.host.load_strategy(spec).await.unwrap();
        let ended = match place {
            "decide" => fault(strategy.decide(&situation(), Path::new("/")).await),
            _ => fault(strategy.observe(&output(), Path::new("/")).await),
        };
        assert_eq!(ended, FaultKind::CpuDeadline(cpu), "{place}");
    }
}

#[tokio::test]
async fn c256_an_endless_start_function_is_ended() {
    let world = World::new();
    let module = r#"(func $begin (loop $again (br $again))) (start $begin)"#;
    let mut spec = PluginSpec::new("bad", Kind::Sink, raw_sink(module, ""));
    spec.limits.cpu = Duration::from_millis(200);
    let error = world.host.load_sink(spec).await.map(drop).unwrap_err();
    let LoadError::Start { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.fault().unwrap().function, "instantiate");
    assert_eq!(source.fault().unwrap().kind, FaultKind::CpuDeadline(Duration::from_millis(200)));
}

// Field case C257 (carina-rs/carina#1540): a hang froze the tool, and the message named neither plugin nor limit. On one
// thread, to show that a guest that computes lets the others have their turn.
#[tokio::test(flavor = "current_thread")]
async fn c257_a_hanging_sink_is_named_and_holds_up_nobody() {
    let world = World::new();
    let mut bad = misbehaving("write", "loop");
    bad.limits.cpu = Duration::from_secs(60);
    bad.limits.wall = Duration::from_secs(2);
    let mut bad = world.host.load_sink(bad).await.unwrap();
    let mut good = world.host.load_sink(misbehaving("never", "")).await.unwrap();
    let order = Mutex::new(Vec::new());
    tokio::join!(
        async {
            let error = bad.write(&beat(1)).await.unwrap_err();
            let text = error.to_string();
            assert!(text.contains("`write` of plugin `bad`") && text.contains("2s (limit `wall`)"), "{text}");
            order.lock().unwrap().push("bad");
        },
        async {
            assert_eq!(write(&mut good, &beat(1)).await, Ok(1));
            order.lock().unwrap().push("good");
        }
    );
    assert_eq!(*order.lock().unwrap(), ["good", "bad"]);
}

// Field case C259 (astrid-runtime/astrid#127): the host believed a length given by the guest.
#[tokio::test]
async fn c259_lengths_that_lie_are_the_plugins_fault() {
    let world = World::new();
    // `describe` answers with four strings, of which the first is (pointer, length).
    for (pointer, length) in [
        ("ff ff ff 7f", "ff ff ff 7f"),
        ("00 00 00 00", "ff ff ff ff"),
        ("f0 ff 00 00", "00 01 00 00"),
        ("ff ff ff ff", "01 00 00 00"),
    ] {
        let bytes: String = [pointer, length].join(" ").split(' ').map(|byte| format!("\\{byte}")).collect();
        let component = raw_sink("", &format!(r#"(data (i32.const 256) "{bytes}")"#));
        let error = world.host.load_sink(PluginSpec::new("bad", Kind::Sink, component)).await.map(drop).unwrap_err();
        let LoadError::Start { source, .. } = error else { panic!("{error}") };
        assert!(matches!(source.fault().unwrap().kind, FaultKind::BadAnswer(_)), "{pointer}/{length}: {source}");
    }
    // The same component with an honest answer works, so the lengths are what was refused.
    let component = raw_sink("", "");
    world.host.load_sink(PluginSpec::new("good", Kind::Sink, component)).await.map(drop).unwrap();
}

#[tokio::test]
async fn c259_a_huge_answer_is_refused() {
    let world = World::new();
    let mut spec = PluginSpec::new("bad", Kind::Rule, guest("misbehave-rule"));
    spec.settings = json!({ "what": "huge-list" });
    let mut rule = world.host.load_rule(spec).await.unwrap();
    let ended = fault(rule.evaluate(0, &[subject("a", Verdict::Stale)]).await);
    assert!(matches!(ended, FaultKind::BadAnswer(_)), "{ended:?}");
    let mut sink = world.host.load_sink(misbehaving("write", "huge-text")).await.unwrap();
    let ended = fault(sink.write(&beat(1)).await);
    assert!(matches!(ended, FaultKind::BadAnswer(_)), "{ended:?}");
}

#[tokio::test]
async fn a_finding_about_nobody_is_refused() {
    let world = World::new();
    let mut spec = PluginSpec::new("bad", Kind::Rule, guest("misbehave-rule"));
    spec.settings = json!({ "what": "foreign-subject" });
    let mut rule = world.host.load_rule(spec).await.unwrap();
    let ended = fault(rule.evaluate(0, &[subject("a", Verdict::Stale)]).await);
    assert!(matches!(&ended, FaultKind::BadAnswer(why) if why.contains("nobody asked about")), "{ended:?}");
}

#[tokio::test]
async fn memory_has_an_end() {
    let world = World::new();
    let mut sink = world.host.load_sink(misbehaving("write", "grow")).await.unwrap();
    assert_eq!(fault(sink.write(&beat(1)).await), FaultKind::Memory(64 << 20));
    sink.flush().await.unwrap();
}

#[tokio::test]
async fn recursion_has_an_end() {
    let world = World::new();
    let mut sink = world.host.load_sink(misbehaving("write", "recurse")).await.unwrap();
    let ended = fault(sink.write(&beat(1)).await);
    assert!(matches!(ended, FaultKind::Trap(_)), "{ended:?}");
    sink.flush().await.unwrap();
}

#[tokio::test]
async fn an_acknowledgement_of_what_was_not_sent_is_refused() {
    let world = World::new();
    let mut sink = world.host.load_sink(misbehaving("never", "forge-acknowledgement")).await.unwrap();
    let ended = fault(sink.write(&beat(7)).await);
    assert!(matches!(&ended, FaultKind::BadAnswer(why) if why.contains("acknowledged entry 8")), "{ended:?}");
}

#[tokio::test]
async fn single_entries_are_refused_in_words_that_cannot_forge_a_line() {
    let world = World::new();
    let mut sink = world.host.load_sink(misbehaving("never", "refuse-third")).await.unwrap();
    let said = sink.write(&beats(1..=5)).await.unwrap();
    assert_eq!(said.durable, 5);
    let refused: Vec<(u64, &str)> = said.refused.iter().map(|refusal| (refusal.sequence, &*refusal.why)).collect();
    assert_eq!(refused, [(3, r"not\nthis one")]);
    let mut sink = world.host.load_sink(misbehaving("never", "refuse-foreign")).await.unwrap();
    let ended = fault(sink.write(&beats(1..=5)).await);
    assert!(matches!(&ended, FaultKind::BadAnswer(why) if why.contains("refused entry 12")), "{ended:?}");
}

#[tokio::test]
async fn a_sink_that_acknowledges_less_each_time_is_left_alone_and_loses_nothing() {
    let world = World::new();
    let mut sink = world.host.load_sink(misbehaving("never", "acknowledge-less")).await.unwrap();
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(write(&mut sink, &beats(10..=12)).await.unwrap());
    }
    assert_eq!(told, [12, 11, 10, 9], "each is less, and none is a fault: a sink that buffers may begin anew");
}

#[tokio::test]
async fn c256_a_destructor_without_an_end_is_ended() {
    let world = World::new();
    let endless =
        r#"(func (export "cabi_post_latido:plugin/lifecycle@0.2.0#describe") (param i32) (loop $again (br $again)))"#;
    let mut spec = PluginSpec::new("bad", Kind::Sink, raw_sink(endless, ""));
    spec.limits.cpu = Duration::from_millis(200);
    let error = world.host.load_sink(spec).await.map(drop).unwrap_err();
    let LoadError::Start { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.fault().unwrap().kind, FaultKind::CpuDeadline(Duration::from_millis(200)));
}

#[tokio::test]
async fn an_instance_is_renewed_by_calls_and_by_memory() {
    let world = World::new();
    let mut spec = misbehaving("never", "");
    spec.limits.calls = 3; // its description was the first
    let mut sink = world.host.load_sink(spec.clone()).await.unwrap();
    for _ in 0..4 {
        sink.flush().await.unwrap();
    }
    assert_eq!((sink.costs().calls, sink.costs().instances), (5, 2));
    spec.limits.calls = 10_000;
    let sink = world.host.load_sink(spec.clone()).await.unwrap();
    let used = sink.costs().memory;
    assert!(used > 0);
    spec.limits.memory = used * 5 / 4; // what it holds is more than three quarters of it
    let mut sink = world.host.load_sink(spec).await.unwrap();
    assert!(!sink.is_warm() && sink.costs().memory == 0);
    sink.flush().await.unwrap();
    assert_eq!(sink.costs().instances, 2);
}

#[tokio::test]
async fn a_deadline_beyond_every_clock_is_none() {
    let world = World::new();
    let mut spec = PluginSpec::new("lines", Kind::Sink, builtin("jsonl"));
    spec.grants.files.insert("main".to_owned(), world.path("lines").into());
    spec.limits.wall = Duration::MAX;
    let mut sink = world.host.load_sink(spec).await.unwrap();
    assert_eq!(write(&mut sink, &beat(1)).await, Ok(1));
}

#[tokio::test]
async fn an_answer_of_the_plugins_own_keeps_its_instance() {
    let world = World::new();
    let mut sink = world.host.load_sink(misbehaving("write", "retry-later")).await.unwrap();
    let error = sink.write(&beat(1)).await.unwrap_err();
    assert_eq!(error.answer(), Some(&PluginError::RetryAfter(1500)));
    assert!(sink.is_warm());
}

#[tokio::test]
async fn a_call_that_is_given_up_costs_the_instance_alone() {
    let world = World::new();
    let mut spec = misbehaving("write", "loop");
    spec.limits.cpu = Duration::from_secs(60);
    let mut sink = world.host.load_sink(spec).await.unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(100), sink.write(&beat(1))).await;
    assert!(given_up.is_err());
    assert!(!sink.is_warm());
    sink.flush().await.unwrap();
}

// Field case C254 (paritytech/substrate#10095): one instance for each call in one store never frees memory.
#[tokio::test]
async fn c254_fifty_thousand_calls_leave_no_trace() {
    let world = World::new();
    let mut sink = world.host.load_sink(misbehaving("never", "")).await.unwrap();
    let mut strategy =
        world.host.load_strategy(PluginSpec::new("script", Kind::Strategy, builtin("script"))).await.unwrap();
    let situation = situation();
    let call = async |sink: &mut latido_plugin_host::Sink, strategy: &mut latido_plugin_host::Strategy| {
        sink.flush().await.unwrap();
        strategy.decide(&situation, Path::new("/")).await.unwrap();
    };
    for _ in 0..1000 {
        call(&mut sink, &mut strategy).await;
    }
    // Mapped memory of guests is counted apart from the other tests' by its name: anonymous maps of 64 KiB and more grow
    // with every instance that is not freed, so their number is what tells.
    let before = mappings();
    for _ in 0..25_000 {
        call(&mut sink, &mut strategy).await;
    }
    let after = mappings();
    assert!(after <= before + 200, "{before} mappings before, {after} after");
}

fn mappings() -> usize {
    std::fs::read_to_string(Path::new("/proc/self/maps")).unwrap().lines().count()
}

/// A sink from a core module by hand: its `describe` answers with what lies at 256, all else is zero, which is `ok`.
fn raw_sink(items: &str, data: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            {items}
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
            (func (export "latido:plugin/lifecycle@0.2.0#describe") (result i32) (i32.const 256))
            (func (export "latido:plugin/lifecycle@0.2.0#configure") (param i32 i32) (result i32) (i32.const 512))
            (func (export "latido:plugin/sink@0.2.0#write") (param i32) (result i32) (i32.const 512))
            (func (export "latido:plugin/sink@0.2.0#flush") (result i32) (i32.const 512))
            {data})"#
    );
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = wit_parser::Resolve::default();
    let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let (package, _) = resolve.push_dir(wit).unwrap();
    let world = resolve.select_world(&[package], Some("storage-sink")).unwrap();
    wit_component::embed_component_metadata(&mut module, &resolve, world, wit_component::StringEncoding::UTF8).unwrap();
    wit_component::ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

#[tokio::test]
async fn only_as_many_entries_as_a_batch_holds_are_given() {
    let world = World::new();
    let mut spec = misbehaving("never", "");
    spec.limits.batch_entries = 3;
    let mut sink = world.host.load_sink(spec).await.unwrap();
    assert_eq!(write(&mut sink, &beats(1..=5)).await, Ok(3));
    assert_eq!(write(&mut sink, &beats(4..=5)).await, Ok(5));
}

#[tokio::test]
async fn only_as_many_bytes_as_a_batch_holds_are_given_and_one_entry_in_any_case() {
    const MIB: usize = 1 << 20;
    let world = World::new();
    let mut sink = world.host.load_sink(misbehaving("never", "")).await.unwrap();
    let lengths = [MIB, MIB, MIB, MIB, 6 * MIB, MIB, 1, 1];
    let from = |first: usize| {
        let mut entries = none();
        for (number, length) in (1..).zip(lengths).skip(first) {
            let mut entry = entries.add(number, number, "agent");
            entry.whole(Field::Comings, 1).text(Field::Detail, &"x".repeat(length)).whole(Field::Started, 2);
        }
        entries
    };
    let mut given = Vec::new();
    while given.last() != Some(&8) {
        let done = given.last().copied().unwrap_or(0);
        given.push(usize::try_from(write(&mut sink, &from(done)).await.unwrap()).unwrap());
    }
    assert_eq!(given, [3, 4, 5, 8]);
}
