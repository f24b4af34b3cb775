//! `latido plugin pack` and `verify`.

use super::{component, write};
use crate::support::World;

#[test]
fn a_pack_is_made_verified_and_refused_once_it_was_touched() {
    let world = World::new();
    component(&world, "liveness");
    let ran = world.latido(&["plugin", "pack", "liveness.wasm", "--new-key", "key", "-o", "pack.wasm"]).ends_with(0);
    assert!(
        ran.stdout.contains("pack.wasm: liveness 0.1.0, ") && ran.stdout.contains("  digest     sha256:"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("made the key key: keep it to yourself; key.pub is for those"), "{ran:?}");
    world.latido(&["plugin", "pack", "liveness.wasm", "--key", "key", "-o", "again.wasm"]).ends_with(0);
    let bytes = std::fs::read(world.home().join("pack.wasm")).unwrap();
    assert_eq!(bytes, std::fs::read(world.home().join("again.wasm")).unwrap());

    let ran = world.latido(&["plugin", "verify", "pack.wasm", "--key", "key.pub"]).ends_with(0);
    assert!(ran.stdout.contains("the key of key.pub"), "{}", ran.stdout);
    let ran = world.latido(&["plugin", "inspect", "pack.wasm"]).ends_with(0);
    assert!(ran.stdout.contains("  signature  by MCowBQYDK2VwAyEA"), "{}", ran.stdout);
    world.latido(&["plugin", "check", "pack.wasm"]).ends_with(0);

    let mut touched = bytes.clone();
    touched[bytes.len() / 2] ^= 1;
    write(&world, "touched.wasm", &touched);
    write(&world, "short.wasm", &bytes[..bytes.len() - 1]);
    write(&world, "longer.wasm", [&bytes[..], &[0, 3, 1, b'n', 1]].concat());
    for (file, why) in [
        ("touched.wasm", "it was changed after it was signed"),
        ("short.wasm", "it is truncated or damaged"),
        ("longer.wasm", "5 bytes stand behind its section"),
    ] {
        let ran = world.latido(&["plugin", "verify", file]).ends_with(1);
        assert!(ran.stderr.contains(why), "{file}: {}", ran.stderr);
        world.latido(&["plugin", "inspect", file]).ends_with(1);
        world.latido(&["plugin", "check", file]).ends_with(1);
        world.latido(&["plugin", "pack", file, "-o", "never.wasm"]).ends_with(1);
    }
    assert!(!world.home().join("never.wasm").exists());
}

#[test]
fn verify_tells_another_key_no_signature_and_another_digest_apart() {
    let world = World::new();
    component(&world, "liveness");
    world.latido(&["plugin", "pack", "liveness.wasm", "--new-key", "mine", "-o", "mine.wasm"]).ends_with(0);
    world.latido(&["plugin", "pack", "liveness.wasm", "--new-key", "other", "-o", "other.wasm"]).ends_with(0);
    let ran = world.latido(&["plugin", "verify", "mine.wasm", "--key", "other.pub"]).ends_with(1);
    assert!(ran.stderr.contains("its signature is by MCow"), "{}", ran.stderr);
    let ran = world.latido(&["plugin", "verify", "liveness.wasm", "--key", "other.pub"]).ends_with(1);
    assert!(ran.stderr.contains("it has no signature"), "{}", ran.stderr);
    let pin = format!("sha256:{}", "0".repeat(64));
    let ran = world.latido(&["plugin", "verify", "mine.wasm", "--digest", &pin]).ends_with(1);
    assert!(ran.stderr.contains("pinned is sha256:0000"), "{}", ran.stderr);
    let ran = world.latido(&["plugin", "verify", "mine.wasm", "--key", "mine"]).ends_with(2);
    assert!(ran.stderr.contains("it is a private key"), "{}", ran.stderr);
    world.latido(&["plugin", "verify", "mine.wasm", "--digest", "sha256:12"]).ends_with(2);
    let ran = world.latido(&["plugin", "pack", "liveness.wasm", "--new-key", "mine", "-o", "more.wasm"]).ends_with(2);
    assert!(ran.stderr.contains("cannot write the key mine"), "{}", ran.stderr);
    assert!(!world.home().join("more.wasm").exists());
    let ran = world.latido(&["plugin", "pack", "liveness.wasm", "--key", "mine.pub", "-o", "more.wasm"]).ends_with(2);
    assert!(ran.stderr.contains("a private one is needed to sign"), "{}", ran.stderr);
}
