//! Packs, keys, and what is refused.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use latido_plugin_host::{Kind, Manifest, PluginSpec};
use latido_plugin_kit::{
    Digest, KeySource, PackError, PublicKey, SIGNATURE_SECTION, Seal, SealError, SigningKey, Trust, TrustError, pack,
};

use crate::openssl::output;
use crate::world::{World, builtin, component};

const MANIFEST: &str = "[plugin]\nname = \"empty\"\nversion = \"1.0.0\"\nkind = \"rule\"\n";

fn key(world: &World, name: &str) -> SigningKey {
    SigningKey::make(&world.path(name)).unwrap().0
}

fn trust(key: PublicKey) -> Trust {
    Trust { digest: None, key: Some(KeySource::Key(key)) }
}

/// A custom section of the component itself, as every tool writes it.
fn section(name: &str, data: &[u8]) -> Vec<u8> {
    let length = u8::try_from(1 + name.len() + data.len()).unwrap();
    assert!(length < 128, "its length is one byte");
    [&[0, length, u8::try_from(name.len()).unwrap()], name.as_bytes(), data].concat()
}

#[tokio::test]
async fn a_signed_pack_is_a_component_that_loads_and_says_who_vouches_for_it() {
    let world = World::new();
    let key = key(&world, "key");
    let packed = pack(&builtin("liveness"), None, Some(&key)).unwrap();
    assert_eq!(packed.seal.signer(), Some(key.public()));
    assert_eq!(packed.manifest.plugin.name, "liveness");
    assert_eq!(Manifest::read("it", &packed.bytes).unwrap(), packed.manifest);
    trust(key.public()).judge(&packed.bytes).unwrap();
    let loaded = world.host.load_rule(PluginSpec::new("packed", Kind::Rule, packed.bytes)).await.unwrap();
    assert_eq!(loaded.description().name, "liveness");
}

#[test]
fn the_same_input_gives_the_same_bytes_and_packing_again_changes_nothing() {
    let world = World::new();
    let (key, component) = (key(&world, "key"), builtin("sqlite"));
    let packed = pack(&component, None, Some(&key)).unwrap().bytes;
    assert_eq!(pack(&component, None, Some(&key)).unwrap().bytes, packed);
    assert_eq!(pack(&packed, None, Some(&key)).unwrap().bytes, packed);
    let unsigned = pack(&component, None, None).unwrap();
    assert_eq!(pack(&packed, None, None).unwrap().bytes, unsigned.bytes, "without a key nobody vouches for it");
    assert!(packed.starts_with(&unsigned.bytes) && unsigned.bytes.starts_with(&component));
    assert_eq!(Seal::read(&packed).unwrap().digest(), unsigned.seal.digest(), "a signature is not part of the digest");
}

#[test]
fn the_digest_of_what_nobody_signed_is_the_one_of_its_file() {
    let world = World::new();
    let packed = pack(&component(""), Some(MANIFEST), None).unwrap();
    let file = world.path("empty.wasm");
    std::fs::write(&file, &packed.bytes).unwrap();
    let printed = output("sha256sum", &[file.to_str().unwrap()]);
    let digits = printed.split(' ').next().unwrap();
    assert_eq!(packed.seal.digest().to_string(), format!("sha256:{digits}"));
    assert_eq!(packed.seal.digest().to_string().parse(), Ok(packed.seal.digest()));
}

#[test]
fn a_change_of_any_byte_after_signing_is_found() {
    let world = World::new();
    let key = key(&world, "key");
    let packed = pack(&component(""), Some(MANIFEST), Some(&key)).unwrap().bytes;
    for place in 8..packed.len() {
        for bit in 0..8 {
            let mut tampered = packed.clone();
            tampered[place] ^= 1 << bit;
            let judged = trust(key.public()).judge(&tampered);
            assert!(judged.is_err(), "bit {bit} of byte {place} of {} was changed, and it passes", packed.len());
        }
    }
    let mut tampered = packed.clone();
    let version = packed.windows(5).position(|window| window == b"1.0.0").unwrap();
    tampered[version] = b'9';
    let error = Seal::read(&tampered).unwrap_err();
    assert!(matches!(error, SealError::Tampered { .. }), "{error}");
    assert!(error.to_string().contains("changed after it was signed"), "{error}");
}

#[test]
fn a_file_cut_off_anywhere_does_not_pass_for_what_was_signed() {
    let world = World::new();
    let key = key(&world, "key");
    let packed = pack(&component("(core module)"), Some(MANIFEST), Some(&key)).unwrap().bytes;
    for length in 0..packed.len() {
        let error = trust(key.public()).judge(&packed[..length]).unwrap_err();
        let damaged = matches!(error, TrustError::Seal(SealError::Damaged { .. }));
        // Where a section ends it is another component, for which nobody vouches.
        assert!(damaged || matches!(error, TrustError::Unsigned { .. }), "at {length}: {error:?}");
    }
}

#[test]
fn a_second_signature_and_what_stands_behind_one_are_refused() {
    let world = World::new();
    let key = key(&world, "key");
    let packed = pack(&component(""), Some(MANIFEST), Some(&key)).unwrap();
    let plain = pack(&component(""), Some(MANIFEST), None).unwrap().bytes;
    let signature = &packed.bytes[plain.len()..];
    let twice = [packed.bytes.as_slice(), signature].concat();
    assert!(matches!(Seal::read(&twice), Err(SealError::Several { count: 2 })));
    let behind = [packed.bytes.clone(), section("later", b"x")].concat();
    let error = Seal::read(&behind).unwrap_err();
    assert!(matches!(error, SealError::NotLast { behind: 9 }), "{error}");
    assert!(pack(&behind, None, None).is_err(), "what cannot be believed is not packed again");
    for rubbish in [&b""[..], b"\x01", &[1; 96], &[2; 97], &[1; 98]] {
        let odd = [plain.clone(), section(SIGNATURE_SECTION, rubbish)].concat();
        assert!(matches!(Seal::read(&odd), Err(SealError::Form)), "{rubbish:?}");
    }
    let forged = [plain.clone(), section(SIGNATURE_SECTION, &[1; 97])].concat();
    assert!(matches!(Seal::read(&forged), Err(SealError::Tampered { .. })));
    // A module may call a section of its own so: it is part of what is signed.
    let inner = component(&format!("(core module (@custom \"{SIGNATURE_SECTION}\" \"x\"))"));
    assert_eq!(Seal::read(&inner).unwrap().signer(), None);
}

#[test]
fn another_key_no_key_and_another_digest_are_told_apart() {
    let world = World::new();
    let (mine, other) = (key(&world, "mine"), key(&world, "other"));
    let packed = pack(&component(""), Some(MANIFEST), Some(&mine)).unwrap();
    let error = trust(other.public()).judge(&packed.bytes).unwrap_err();
    assert!(matches!(error, TrustError::OtherKey { .. }), "{error}");
    assert!(error.to_string().contains(&mine.public().to_string()), "{error}");
    let unsigned = pack(&packed.bytes, None, None).unwrap().bytes;
    assert!(matches!(trust(mine.public()).judge(&unsigned), Err(TrustError::Unsigned { .. })));
    let pinned = Trust { digest: Some(packed.seal.digest()), key: None };
    pinned.judge(&packed.bytes).unwrap();
    pinned.judge(&unsigned).unwrap();
    let changed = pack(&component("(core module)"), Some(MANIFEST), None).unwrap().bytes;
    let error = pinned.judge(&changed).unwrap_err();
    assert!(matches!(error, TrustError::Digest { .. }), "{error}");
    let missing = Trust { digest: None, key: Some(KeySource::File(world.path("nowhere"))) };
    assert!(matches!(missing.judge(&packed.bytes), Err(TrustError::Key(_))));
    // Without a demand a signature has to be valid all the same.
    let mut tampered = packed.bytes.clone();
    *tampered.last_mut().unwrap() ^= 1;
    assert!(matches!(Trust::default().judge(&tampered), Err(TrustError::Seal(SealError::Tampered { .. }))));
    Trust::default().judge(b"no component at all").unwrap();
}

#[test]
fn keys_of_openssl_are_taken_and_openssl_takes_ours() {
    let world = World::new();
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    output("openssl", &["genpkey", "-algorithm", "ed25519", "-out", &path("theirs")]);
    output("openssl", &["pkey", "-in", &path("theirs"), "-pubout", "-out", &path("theirs.pub")]);
    let theirs = SigningKey::read(&world.path("theirs")).unwrap();
    assert_eq!(PublicKey::read(&world.path("theirs.pub")).unwrap(), theirs.public());
    let (ours, public) = SigningKey::make(&world.path("ours")).unwrap();
    assert_eq!(
        output("openssl", &["pkey", "-in", &path("ours"), "-pubout"]),
        std::fs::read_to_string(&public).unwrap()
    );
    assert_eq!(SigningKey::read(&world.path("ours")).unwrap().public(), ours.public());
    assert_eq!(ours.public().to_string().parse(), Ok(ours.public()));
    let mode = std::fs::metadata(world.path("ours")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_key_is_never_written_over() {
    let world = World::new();
    SigningKey::make(&world.path("key")).unwrap();
    let before = std::fs::read(world.path("key")).unwrap();
    assert!(SigningKey::make(&world.path("key")).is_err());
    std::fs::remove_file(world.path("key.pub")).unwrap();
    assert!(SigningKey::make(&world.path("key")).is_err());
    assert_eq!(std::fs::read(world.path("key")).unwrap(), before);
    std::fs::write(world.path("other.pub"), "mine").unwrap();
    assert!(SigningKey::make(&world.path("other")).is_err());
    assert!(!world.path("other").exists(), "the private key was written without its public one");
}

#[test]
fn a_file_that_holds_no_key_of_ours_is_told_what_it_holds() {
    let world = World::new();
    let (_, public) = SigningKey::make(&world.path("key")).unwrap();
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    output("openssl", &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024", "-out", &path("rsa")]);
    let encrypted = ["pkey", "-in", &path("key"), "-aes256", "-passout", "pass:x", "-out", &path("encrypted")];
    output("openssl", &encrypted);
    std::fs::write(world.path("text"), "no key").unwrap();
    std::fs::write(world.path("cut"), "-----BEGIN PRIVATE KEY-----\nMC4C").unwrap();
    std::fs::write(world.path("odd"), "-----BEGIN PRIVATE KEY-----\n!!!\n-----END PRIVATE KEY-----\n").unwrap();
    std::fs::write(world.path("bytes"), [0xff; 64]).unwrap();
    std::fs::write(world.path("large"), vec![b'-'; 1 << 20]).unwrap();
    let private = |path: &Path| SigningKey::read(path).map(drop).unwrap_err().to_string();
    assert!(private(&public).contains("PUBLIC KEY"), "{}", private(&public));
    assert!(private(&world.path("rsa")).contains("not of Ed25519"));
    assert!(private(&world.path("encrypted")).contains("takes its passphrase off"));
    assert!(private(&world.path("text")).contains("no PEM block"));
    assert!(private(&world.path("cut")).contains("has no end"));
    assert!(private(&world.path("odd")).contains("no base64"));
    assert!(private(&world.path("bytes")).contains("no PEM"));
    assert!(private(&world.path("large")).contains("too large"));
    output("mkfifo", &[&path("pipe")]);
    assert!(private(&world.path("pipe")).contains("no regular file"));
    assert!(private(&world.path("")).contains("no regular file"));
    let error = PublicKey::read(&world.path("key")).unwrap_err().to_string();
    assert!(error.contains("it is a private key") && error.contains("-pubout"), "{error}");
    let key = PublicKey::read(&public).unwrap().to_string();
    assert_eq!(KeySource::parse(&key), Ok(KeySource::Key(key.parse().unwrap())));
    assert!(KeySource::parse(&key[..40]).is_err() && KeySource::parse("").is_err());
    assert_eq!(KeySource::parse("keys/mine.pub"), Ok(KeySource::File("keys/mine.pub".into())));
    for odd in ["", "sha256:", "sha256:00", &format!("sha256:{}", "g".repeat(64)), &format!("md5:{}", "0".repeat(64))] {
        assert!(odd.parse::<Digest>().is_err(), "{odd}");
    }
}

#[test]
fn what_does_not_say_what_it_is_is_no_pack() {
    let refused = |component: &[u8], manifest: Option<&str>| pack(component, manifest, None).map(drop).unwrap_err();
    assert!(matches!(refused(b"text", None), PackError::NoComponent));
    assert!(matches!(refused(&wat::parse_str("(module)").unwrap(), Some(MANIFEST)), PackError::NoComponent));
    assert!(matches!(refused(&component(""), None), PackError::NoManifest));
    for (odd, word) in [
        ("[plugin]\nname = \"empty\"\nversion = \"1\"\n", "`kind` is missing"),
        ("[plugin]\nname = \"empty\"\nversion = \"1\"\nkind = \"sinc\"\n", "\"sinc\""),
        ("[plugin]\nname = \"../up\"\nversion = \"1\"\nkind = \"rule\"\n", "\"../up\""),
        ("[plugin]\nname = \"empty\"\nkind = \"rule\"\n", "`version` is missing"),
        ("[plugin]\nnmae = \"empty\"\n", "nmae"),
    ] {
        let error = refused(&component(""), Some(odd)).to_string();
        assert!(error.contains(word), "{error}");
    }
    let packed = pack(&component(""), Some(MANIFEST), None).unwrap().bytes;
    let other = MANIFEST.replace("1.0.0", "1.0.1");
    assert!(matches!(refused(&packed, Some(&other)), PackError::OtherManifest));
    let twice = [packed.clone(), section(latido_plugin_host::MANIFEST_SECTION, b"")].concat();
    assert!(matches!(refused(&twice, None), PackError::SeveralManifests { count: 2 }));
    assert!(matches!(refused(&packed[..packed.len() - 1], None), PackError::Seal(SealError::Damaged { .. })));
}
