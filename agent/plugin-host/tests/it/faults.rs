//! A fault costs an instance; delivery goes on around what cannot be delivered.

use std::time::Duration;

use latido_plugin_host::{Delivery, FaultKind, Next, PluginError};

use crate::support::{World, beat, beats, fault, misbehaving, write};

#[tokio::test]
async fn a_trap_tells_its_last_words_and_the_next_call_has_a_new_instance() {
    let world = World::new();
    let mut sink = world.host.load_sink(misbehaving("write", "trap")).await.unwrap();
    for _ in 0..3 {
        let ended = fault(sink.write(&beat(1)).await);
        assert!(matches!(&ended, FaultKind::Trap(text) if text.contains("as the settings ask")), "{ended:?}");
        assert!(!sink.is_warm());
        sink.flush().await.unwrap();
        assert!(sink.is_warm());
    }
}

// Field case C253 (bytecodealliance/wasmtime#11086): a plugin that panics on entry 3 of 10.
#[tokio::test]
async fn c253_entries_around_a_poison_entry_are_handled_by_new_instances() {
    let world = World::new();
    let mut sink = world.host.load_sink(misbehaving("write", "panic-on-third")).await.unwrap();
    let entries: Vec<u64> = (1..=10).collect();
    let mut delivery = Delivery::new(1000);
    let (mut cursor, mut now) = (0, Duration::ZERO);
    let (mut delivered, mut aside): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    loop {
        let (skip, count) = match delivery.next(now, entries.len() - cursor) {
            Next::Send { skip, count } => (skip, count),
            Next::Wait(until) => {
                now = until;
                continue;
            }
            Next::Idle => break,
            Next::Stopped(why) => panic!("{why}"),
        };
        let batch = &entries[cursor + skip..cursor + skip + count];
        let progress = match write(&mut sink, &beats(batch[0]..=batch[count - 1])).await {
            Ok(newest) => delivery.succeeded(now, batch.iter().filter(|sequence| **sequence <= newest).count()),
            Err(error) => delivery.failed(now, &error),
        };
        let moved = &entries[cursor..cursor + progress.advance];
        aside.extend(&moved[..progress.aside]);
        delivered.extend(&moved[progress.aside..]);
        cursor += progress.advance;
    }
    assert_eq!(aside, [3]);
    assert_eq!(delivered, [1, 2, 4, 5, 6, 7, 8, 9, 10]);
}

#[tokio::test]
async fn an_answer_of_no_is_no_fault_and_costs_no_instance() {
    let world = World::new();
    let refused = world.host.load_sink(misbehaving("configure", "refuse-settings")).await.map(drop).unwrap_err();
    let cause = std::error::Error::source(&refused).unwrap().to_string();
    assert!(cause.contains("not these"), "{cause}");
    let mut sink = world.host.load_sink(misbehaving("write", "refuse")).await.unwrap();
    for _ in 0..2 {
        let error = sink.write(&beat(1)).await.unwrap_err();
        assert_eq!(error.answer(), Some(&PluginError::Permanent("never".to_owned())));
        assert!(sink.is_warm());
    }
}
