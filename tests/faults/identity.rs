//! Pids that mean somebody else.

use std::process::Child;

use latido_protocol::Class;
use latido_protocol::disk;
use latido_protocol::files::{Identity, Start};
use latido_protocol::status::Verdict;

use crate::support::World;

/// An attempt whose records say that it runs, with identities of a test's choice; nothing of it does.
fn pretend(world: &World, name: &str, change: impl Fn(&mut Identity)) {
    world.detach(name, &[], "exit 0");
    world.end(name, 1);
    let attempt = world.attempt(name, 1);
    std::fs::remove_file(attempt.end()).unwrap();
    let mut start: Start = disk::read(&attempt.start()).unwrap().unwrap();
    for identity in [&mut start.supervisor, &mut start.process] {
        change(identity.as_mut().unwrap());
    }
    disk::replace(&attempt.start(), &start).unwrap();
}

fn innocent(world: &World) -> Child {
    world.command("sleep").arg("100").spawn().unwrap()
}

/// Field case C140 (inverse-inc/packetfence#3291) and C146 (eminence/procfs PR #3): the pid of a dead attempt belongs to
/// another program, which is not taken for it and gets no signal.
#[test]
fn c140_c146_a_recycled_pid_is_another_process_and_gets_no_signal() {
    let world = World::new();
    let mut other = innocent(&world);
    let pid = other.id();
    pretend(&world, "a", |identity| identity.pid = pid);
    let status = world.status("a");
    assert_eq!(status.verdict, Verdict::Dead, "{status:?}");
    assert!(status.reason.contains("another process"), "{status:?}");
    world.latido(&["stop", "a", "--force"]).ends_with(0);
    assert!(other.try_wait().unwrap().is_none(), "the innocent process has ended");
    world.latido(&["resume", "a"]).ends_with(0);
    world.end("a", 2);
    world.latido(&["orphans", "--kill"]).ends_with(0);
    assert!(other.try_wait().unwrap().is_none(), "the innocent process has ended");
    other.kill().unwrap();
    other.wait().unwrap();
}

/// Field case C090: a record of yesterday's boot, with pids that are taken today.
#[test]
fn c090_an_attempt_of_an_earlier_boot_is_dead_and_a_stop_only_records_it() {
    let world = World::new();
    let mut other = innocent(&world);
    let own = latido_process::identity::of(other.id()).unwrap().unwrap();
    pretend(&world, "a", |identity| {
        *identity = Identity { boot_id: "11111111-2222-3333-4444-555555555555".to_owned(), ..own.clone() };
    });
    let status = world.status("a");
    assert_eq!(status.verdict, Verdict::Dead, "{status:?}");
    assert!(status.reason.contains("started again"), "{status:?}");
    world.latido(&["stop", "a"]).ends_with(0);
    let end = world.end("a", 1);
    assert_eq!(end.outcome.class, Class::Lost);
    assert!(end.proof.contains("started again"), "{end:?}");
    assert!(other.try_wait().unwrap().is_none(), "the innocent process has ended");
    other.kill().unwrap();
    other.wait().unwrap();
}

/// Field case C150: the records come from another pid namespace; its pids mean nothing here.
#[test]
fn c150_pids_of_another_namespace_are_unknown_and_nothing_is_done() {
    let world = World::new();
    let mut other = innocent(&world);
    let own = latido_process::identity::of(other.id()).unwrap().unwrap();
    pretend(&world, "a", |identity| *identity = Identity { pid_namespace: 1, ..own.clone() });
    let status = world.status("a");
    assert_eq!(status.verdict, Verdict::Unknown, "{status:?}");
    assert!(status.reason.contains("namespace"), "{status:?}");
    for words in [&["stop", "a"][..], &["resume", "a"], &["remove", "a"]] {
        let ran = world.latido(words).ends_with(4);
        assert!(ran.stderr.contains("namespace"), "{ran:?}");
    }
    assert!(!world.attempt("a", 1).end().exists());
    assert!(other.try_wait().unwrap().is_none(), "the innocent process has ended");
    other.kill().unwrap();
    other.wait().unwrap();
}
