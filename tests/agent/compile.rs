//! Components that are compiled by a child under limits, and what the agent does meanwhile.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use latido::compile::{OwnProgram, WORD};
use latido_plugin_host::{Host, HostSettings, Kind, PluginSpec};
use latido_process::limited::Limits;

use crate::support::{Agent, World, wait_long_until, wait_until};

const LATIDO: &str = env!("CARGO_BIN_EXE_latido");

/// Limits that a small component keeps within.
const ROOMY: Limits = Limits {
    memory_max: 2 << 30,
    cpu_for: Duration::from_secs(120),
    file_max: 64 << 20,
    within: Duration::from_secs(100),
};

/// Bytes of one function that wasmparser takes, all but some.
const BODY_MAX: usize = 7_600_000;

fn number(mut number: usize, bytes: &mut Vec<u8>) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        bytes.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return;
        }
    }
}

fn section(id: u8, content: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(id);
    number(content.len(), bytes);
    bytes.extend(content);
}

/// A component with so many functions, each of this size, none of which can be made shorter.
fn heavy(functions: usize, size: usize) -> Vec<u8> {
    let mut body = vec![0];
    // Its argument, turned by itself again and again.
    (0..size / 7).for_each(|_| body.extend([0x20, 0, 0x20, 0, 0x77, 0x21, 0]));
    body.extend([0x20, 0, 0x0b]);
    let (mut declared, mut code) = (Vec::new(), Vec::new());
    number(functions, &mut declared);
    number(functions, &mut code);
    declared.extend(std::iter::repeat_n(0, functions));
    for _ in 0..functions {
        number(body.len(), &mut code);
        code.extend(&body);
    }
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    section(1, &[1, 0x60, 1, 0x7f, 1, 0x7f], &mut module);
    section(3, &declared, &mut module);
    section(10, &code, &mut module);
    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    section(1, &module, &mut component);
    section(2, &[1, 0, 0, 0], &mut component);
    component
}

/// The answer is what the test is about; all else has to be there.
#[expect(clippy::unwrap_in_result, reason = "a test fails by a panic")]
fn load(cache: &Path, limits: Limits, component: Vec<u8>) -> Result<(), String> {
    let compiler = Arc::new(OwnProgram::at(Path::new(LATIDO), limits));
    let host = Host::new(HostSettings { cache: cache.to_owned(), compiler: Some(compiler), metered: false }).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let loaded = runtime.block_on(host.load_strategy(PluginSpec::new("heavy", Kind::Strategy, component)));
    loaded.map(drop).map_err(|error| latido_protocol::chain(&error))
}

fn script() -> Vec<u8> {
    fs::read(format!("{}/target/components/script.wasm", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn files(cache: &Path) -> Vec<String> {
    fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_a_child_compiled_is_kept_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    load(&cache, ROOMY, script()).unwrap();
    let kept = files(&cache);
    assert!(kept.len() == 1 && kept[0].ends_with(".cwasm"), "{kept:?}");
    // Nobody is there to compile it: it comes from the cache.
    load(&cache, Limits { within: Duration::ZERO, ..ROOMY }, script()).unwrap();
    assert_eq!(files(&cache), kept);
}

#[test]
fn a_component_whose_compiling_takes_too_much_of_anything_is_refused_with_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let limits = [
        (Limits { memory_max: 128 << 20, ..ROOMY }, "more than 134217728 bytes of memory"),
        (Limits { cpu_for: Duration::from_secs(1), ..ROOMY }, "more than 1s of computing time"),
        (Limits { within: Duration::from_secs(1), ..ROOMY }, "more than 1s for it"),
    ];
    for (limits, says) in limits {
        let why = load(&cache, limits, heavy(4, BODY_MAX / 2)).unwrap_err();
        assert!(why.contains(says) && why.contains("build it smaller"), "{why}");
        assert_eq!(files(&cache), [""; 0]);
    }
    let why = load(&cache, Limits { file_max: 4 << 10, ..ROOMY }, script()).unwrap_err();
    assert!(why.contains("compiled form has more than 4096 bytes"), "{why}");
    assert_eq!(files(&cache), [""; 0]);
}

/// A limit by which the child of one test is told from those of the others.
const OWN_LIMIT: u64 = (64 << 20) + 1;

/// The child that has that limit, once there is one.
fn compiling() -> Option<u32> {
    let own = OWN_LIMIT.to_string();
    fs::read_dir("/proc").unwrap().filter_map(Result::ok).find_map(|entry| {
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        let is_it = words.get(1) == Some(&WORD.as_bytes()) && words.contains(&own.as_bytes());
        is_it.then(|| entry.file_name().to_str()?.parse().ok())?
    })
}

#[test]
fn a_child_that_is_killed_leaves_nothing_behind_and_the_next_one_does_it() {
    let world = World::new();
    let cache = world.home().join("cache");
    let loading = std::thread::spawn({
        let cache = cache.clone();
        move || load(&cache, Limits { file_max: OWN_LIMIT, ..ROOMY }, heavy(4, BODY_MAX))
    });
    wait_until("the child", || compiling().is_some_and(|child| fs::read(format!("/proc/{child}/environ")).is_ok()));
    let child = compiling().unwrap();
    assert_eq!(fs::read(format!("/proc/{child}/environ")).unwrap(), b"", "it has no environment");
    world.kill(child, "KILL");
    let why = loading.join().unwrap().unwrap_err();
    assert!(why.contains("the compiler was killed"), "{why}");
    assert_eq!(files(&cache), [""; 0]);
    load(&cache, ROOMY, script()).unwrap();
}

#[test]
fn a_person_who_types_the_childs_word_is_told_that_it_is_not_for_people() {
    let world = World::new();
    let mut command = world.command(LATIDO);
    let ran = command.arg(WORD).output().unwrap();
    assert!(!ran.status.success() && String::from_utf8_lossy(&ran.stderr).contains("by latido alone"), "{ran:?}");
}

#[test]
fn an_agent_lives_and_hears_its_beats_while_a_component_takes_all_that_compiling_may() {
    let world = World::new();
    let file = world.home().join("heavy.wasm");
    fs::write(&file, heavy(8, BODY_MAX)).unwrap();
    let config = format!("rule = []\nsink = []\n[[strategy]]\nname = \"heavy\"\nsource = \"{}\"\n", file.display());
    let agent = Agent::start(&world, &config);
    world.detach("a", &["--ttl", "10s", "--interval", "3s"], "while latido beat; do sleep 0.5; done");
    let heavy = || agent.status().unwrap().plugins.into_iter().find(|plugin| plugin.name == "heavy").unwrap();
    wait_long_until("its refusal", Duration::from_secs(150), || heavy().state == "refused");
    let why = heavy().detail.unwrap();
    assert!(why.contains("more than") && why.contains("build it smaller"), "{why}");
    assert!(!world.verdicts("a").iter().any(|verdict| verdict != "waiting" && verdict != "alive"));
    agent.end();
}
