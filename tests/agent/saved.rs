//! A config that is saved while an agent runs, in every way in which programs save files.

use std::fs::{self, File, FileTimes};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use latido::jobs::clock::Deadline;
use latido_protocol::journal::Body;
use latido_protocol::status::Phase;

use super::BARE;
use crate::support::{Agent, World, wait_long_until};

/// A component is compiled on the way, which a debug build on a loaded machine takes its time for.
const SETTLES_WITHIN: Duration = Duration::from_secs(120);

/// Between two pieces of a file.
const HALF_FOR: Duration = Duration::from_millis(300);

#[track_caller]
pub(super) fn wait_until(what: &str, holds: impl FnMut() -> bool) {
    wait_long_until(what, SETTLES_WITHIN, holds);
}

/// A config that is known by the name of its check.
fn config(number: usize) -> String {
    format!("{BARE}[check.c{number}]\nevery = \"1h\"\n")
}

fn is_in_force(world: &World, number: usize) -> bool {
    world.latido(&["status", &format!("c{number}")]).code != Some(2)
}

fn comes_into_force(world: &World, number: usize) {
    wait_until(&format!("config {number} to be in force"), || is_in_force(world, number));
}

fn path(world: &World) -> PathBuf {
    world.home().join("latido.toml")
}

/// As most programs save.
pub(super) fn rename_over(path: &Path, content: impl AsRef<[u8]>) {
    let beside = path.with_extension("new");
    fs::write(&beside, content).unwrap();
    fs::rename(&beside, path).unwrap();
}

/// As vim saves where it keeps the old file for a moment.
pub(super) fn as_vim(path: &Path, content: impl AsRef<[u8]>) {
    let backup = path.with_extension("toml~");
    fs::rename(path, &backup).unwrap();
    fs::write(path, content).unwrap();
    fs::remove_file(backup).unwrap();
}

/// Into the file that is there, half of it first.
pub(super) fn in_halves(path: &Path, content: &[u8]) {
    let (first, second) = content.split_at(content.len() / 2);
    in_pieces(path, &[first, second]);
}

/// Into the file that is there, one after another.
fn in_pieces(path: &Path, pieces: &[impl AsRef<[u8]>]) {
    let mut file = File::create(path).unwrap();
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            Deadline::NEVER.rest(HALF_FOR);
        }
        file.write_all(piece.as_ref()).unwrap();
    }
}

/// As Kubernetes updates a volume: a folder beside the old one, and a link that is swapped at once.
pub(super) fn as_kubernetes(folder: &Path, version: usize, name: &str, content: impl AsRef<[u8]>) {
    let versioned = folder.join(format!("..{version}"));
    fs::create_dir_all(&versioned).unwrap();
    fs::write(versioned.join(name), content).unwrap();
    link_to(&folder.join("..data"), Path::new(versioned.file_name().unwrap()));
    if version > 1 {
        fs::remove_dir_all(folder.join(format!("..{}", version - 1))).unwrap();
    }
}

fn link_to(link: &Path, target: &Path) {
    let beside = link.with_file_name("link-that-is-made");
    symlink(target, &beside).unwrap();
    fs::rename(&beside, link).unwrap();
}

/// How often the agent said a word of itself in the journal.
pub(super) fn noted(world: &World, word: &str) -> usize {
    let is_it = |body: &Body| matches!(body, Body::Agent { what, .. } if what == word);
    world.events().iter().filter(|entry| is_it(&entry.body)).count()
}

fn refusal(agent: &Agent<'_>) -> Option<String> {
    agent.status().and_then(|status| status.config_refused)
}

/// Field cases C238 (Inlyne-Project/inlyne#104) and C245 (marswaveai/ColaMD PR #6).
#[test]
fn c238_c245_every_save_is_seen_after_any_other() {
    let world = World::new();
    let agent = Agent::start(&world, &config(0));
    for number in 1..=5 {
        rename_over(&path(&world), config(number));
        comes_into_force(&world, number);
    }
    fs::write(path(&world), config(6)).unwrap();
    comes_into_force(&world, 6);
    as_vim(&path(&world), config(7));
    comes_into_force(&world, 7);
    assert_eq!(noted(&world, "config-read-again"), 7);
    agent.end();
}

/// Field case C239 (deblasis/wintty PR #1104).
#[test]
fn c239_without_its_file_the_config_stays_in_force_and_nothing_is_written_there() {
    let world = World::new();
    let agent = Agent::start(&world, &config(1));
    fs::remove_file(path(&world)).unwrap();
    wait_until("its word", || agent.said().contains("is gone; what it said stays in force"));
    assert!(is_in_force(&world, 1) && !path(&world).exists());
    agent.signal("HUP");
    wait_until("its refusal", || refusal(&agent).is_some());
    assert!(is_in_force(&world, 1) && !path(&world).exists());
    fs::write(path(&world), config(2)).unwrap();
    comes_into_force(&world, 2);
    wait_until("the end of the refusal", || refusal(&agent).is_none());
    agent.end();
}

/// Field case C239, where the file is the user's own, which need not be there.
#[test]
fn c239_a_users_own_config_that_is_gone_is_not_replaced_by_the_defaults() {
    let world = World::new();
    let own = world.home().join(".config/latido/latido.toml");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    let agent = Agent::spawn_as(&world, "", |_| world.latido_command(&["agent"]));
    wait_until("its answer", || agent.status().is_some_and(|status| status.plugins.len() > 1));
    fs::write(&own, config(1)).unwrap();
    // The command line reads that file too, so that the agent itself is asked.
    wait_until("the config", || agent.status().is_some_and(|status| status.plugins.len() == 1));
    fs::remove_file(&own).unwrap();
    wait_until("its word", || agent.said().contains("is gone; what it said stays in force"));
    agent.signal("HUP");
    wait_until("its refusal", || refusal(&agent).is_some_and(|why| why.contains("gone")));
    assert!(is_in_force(&world, 1) && agent.status().unwrap().plugins.len() == 1);
    agent.end();
}

/// Field case C241 (bluenviron/mediamtx PR #181).
#[test]
fn c241_links_that_are_replaced_and_files_that_come_again_are_seen() {
    let world = World::new();
    let agent = Agent::start(&world, &config(0));
    let file = |number: usize| {
        let file = world.home().join(format!("config-{number}"));
        fs::write(&file, config(number)).unwrap();
        file
    };
    for number in [1, 2] {
        link_to(&path(&world), &file(number));
        comes_into_force(&world, number);
    }
    link_to(&path(&world), Path::new("second-link"));
    for number in [3, 4] {
        link_to(&world.home().join("second-link"), &file(number));
        comes_into_force(&world, number);
    }
    for number in [5, 6] {
        fs::remove_file(path(&world)).unwrap();
        wait_until("its word", || agent.said().matches("is gone").count() >= number - 4);
        fs::write(path(&world), config(number)).unwrap();
        comes_into_force(&world, number);
    }
    agent.end();
}

#[test]
fn a_volume_as_kubernetes_swaps_it_is_followed_from_swap_to_swap() {
    let world = World::new();
    let volume = world.home().join("volume");
    as_kubernetes(&volume, 1, "latido.toml", config(1));
    symlink("..data/latido.toml", volume.join("latido.toml")).unwrap();
    let agent = Agent::spawn_as(&world, "", |_| {
        world.latido_command(&["agent", "--config", volume.join("latido.toml").to_str().unwrap()])
    });
    for number in 2..=4 {
        comes_into_force(&world, number - 1);
        as_kubernetes(&volume, number, "latido.toml", config(number));
    }
    comes_into_force(&world, 4);
    agent.end();
}

/// Field case C242 (linkerd/linkerd2#1061).
#[test]
fn c242_a_save_that_keeps_size_and_time_is_seen() {
    let world = World::new();
    let agent = Agent::start(&world, &config(1));
    let before = fs::metadata(path(&world)).unwrap();
    let beside = world.home().join("beside");
    fs::write(&beside, config(2)).unwrap();
    let times = FileTimes::new().set_modified(before.modified().unwrap());
    File::options().write(true).open(&beside).unwrap().set_times(times).unwrap();
    fs::rename(&beside, path(&world)).unwrap();
    let after = fs::metadata(path(&world)).unwrap();
    assert_eq!((after.len(), after.modified().unwrap()), (before.len(), before.modified().unwrap()));
    comes_into_force(&world, 2);
    agent.end();
}

/// Field case C244 (ssadedin/bpipe#210). What is written by another name of the file is told of in that name's directory
/// alone: a watch that is had and says nothing.
#[test]
fn c244_a_save_that_no_watch_tells_of_is_found_all_the_same() {
    let world = World::new();
    let agent = Agent::start(&world, &config(1));
    let elsewhere = tempfile::tempdir_in(world.home()).unwrap();
    fs::hard_link(path(&world), elsewhere.path().join("other-name")).unwrap();
    fs::write(elsewhere.path().join("other-name"), config(2)).unwrap();
    comes_into_force(&world, 2);
    fs::write(elsewhere.path().join("other-name"), config(3)).unwrap();
    agent.signal("HUP");
    comes_into_force(&world, 3);
    agent.end();
}

/// Field case C247 (osrg/gobgp PR #226).
#[test]
fn c247_a_half_and_a_faulty_config_are_never_in_force_and_the_next_valid_one_is() {
    let world = World::new();
    let agent = Agent::start(&world, &config(1));
    in_halves(&path(&world), config(2).as_bytes());
    comes_into_force(&world, 2);
    rename_over(&path(&world), "[agent]\n\nno_such_setting = 1\n");
    wait_until("its refusal", || refusal(&agent).is_some());
    let why = refusal(&agent).unwrap();
    assert!(why.contains("no_such_setting") && why.contains(":3:"), "{why}");
    assert!(world.latido(&["status"]).stderr.contains("no_such_setting"));
    assert!(agent.said().contains("what is stays so") && is_in_force(&world, 2));
    rename_over(&path(&world), config(3));
    comes_into_force(&world, 3);
    assert_eq!(refusal(&agent), None);
    agent.end();
}

/// It is read at once when another life of the agent begins, and an empty file is a config too.
#[test]
fn c247_what_is_written_while_another_config_comes_into_force_is_not_taken_by_halves() {
    let world = World::new();
    let agent = Agent::start(&world, &config(1));
    for number in 2..=6 {
        wait_until("another life", || noted(&world, "started") == number - 1);
        in_pieces(&path(&world), &["", &config(number)]);
        comes_into_force(&world, number);
    }
    assert_eq!(noted(&world, "config-read-again"), 5);
    agent.end();
}

/// Whatever comes into the config's place, the agent goes on: a pipe would be waited for, a huge file would fill the memory.
#[test]
fn what_is_no_config_file_neither_stops_the_agent_nor_fills_its_memory() {
    let world = World::new();
    let agent = Agent::start(&world, &config(1));
    world.detach("a", super::QUICK, "exec sleep 1000");
    let place: [(&str, &dyn Fn()); 3] = [
        ("regular file", &|| assert!(world.command("mkfifo").arg(path(&world)).status().unwrap().success())),
        ("bytes", &|| File::create(path(&world)).unwrap().set_len(3 << 30).unwrap()),
        ("regular file", &|| fs::create_dir(path(&world)).unwrap()),
    ];
    for (word, put) in place {
        fs::remove_file(path(&world)).unwrap();
        put();
        agent.signal("HUP");
        wait_until("its refusal", || refusal(&agent).is_some_and(|why| why.contains(word)));
        world.latido(&["config", "check", "--config", path(&world).to_str().unwrap()]).ends_with(2);
    }
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    wait_until("the next attempt", || world.attempts("a") == [1, 2]);
    agent.end();
}

/// A program that dies between emptying a file and writing it leaves nothing, and nobody means that.
#[test]
fn a_config_that_is_emptied_comes_into_force_by_order_alone() {
    let world = World::new();
    let agent = Agent::start(&world, &config(1));
    for nothing in ["", " \n"] {
        fs::write(path(&world), nothing).unwrap();
        wait_until("its refusal", || refusal(&agent).is_some_and(|why| why.contains("empty")));
        assert!(is_in_force(&world, 1));
        fs::write(path(&world), config(1)).unwrap();
        wait_until("the end of the refusal", || refusal(&agent).is_none());
    }
    fs::write(path(&world), "").unwrap();
    wait_until("its refusal", || refusal(&agent).is_some());
    agent.signal("HUP");
    wait_until("the order to be carried out", || !is_in_force(&world, 1));
    agent.end();
}

/// Field case C248 (eclipse-opensovd/classic-diagnostic-adapter#497), but for one thing on purpose: an agent is not kept from
/// its start by a plugin that cannot be loaded, since who does not start watches nobody.
#[test]
fn c248_a_config_is_in_force_as_a_whole_or_not_at_all() {
    let world = World::new();
    let agent = Agent::start(&world, &config(1));
    let plugin = world.home().join("late.wasm");
    let sink = "name = \"late\"\ngrant.files.main = \"lines.jsonl\"\n";
    let named = format!("rule = []\n[check.c2]\nevery = \"1h\"\n[[sink]]\nsource = \"{}\"\n{sink}", plugin.display());
    rename_over(&path(&world), &named);
    wait_until("its refusal", || refusal(&agent).is_some_and(|why| why.contains("late.wasm")));
    assert!(is_in_force(&world, 1) && !is_in_force(&world, 2));
    assert_eq!(noted(&world, "config-refused"), 1);
    fs::copy(format!("{}/target/components/jsonl.wasm", env!("CARGO_MANIFEST_DIR")), &plugin).unwrap();
    agent.signal("HUP");
    comes_into_force(&world, 2);
    let faulty = "[check.c3]\nevery = \"1h\"\n[agent]\nno_such_setting = 1\n";
    rename_over(&path(&world), faulty);
    wait_until("its refusal", || refusal(&agent).is_some_and(|why| why.contains("no_such_setting")));
    assert!(is_in_force(&world, 2) && !is_in_force(&world, 3));
    agent.end();
    let restarted = world.latido(&["agent", "--config", path(&world).to_str().unwrap()]).ends_with(2);
    assert!(restarted.stderr.contains("no_such_setting"), "{restarted:?}");
}

#[test]
fn a_storm_of_saves_settles_with_the_last_and_no_job_feels_it() {
    let world = World::new();
    let agent = Agent::start(&world, &config(0));
    world.detach("a", &[], "exec sleep 1000");
    let process = world.start("a", 1).process.unwrap();
    for number in 1..=1000 {
        match number % 3 {
            0 => as_vim(&path(&world), config(number)),
            1 => rename_over(&path(&world), config(number)),
            _ => fs::write(path(&world), config(number)).unwrap(),
        }
    }
    comes_into_force(&world, 1000);
    assert!(noted(&world, "config-read-again") < 50, "each life took in many saves");
    assert_eq!((world.attempts("a"), world.start("a", 1).process.unwrap()), (vec![1], process));
    assert_eq!(world.status("a").phase, Phase::Running);
    agent.end();
}

/// Whether the agent has the kernel watch anything.
fn is_watching(agent: &Agent<'_>) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", agent.pid())).unwrap();
    let leads_to = |entry: std::io::Result<fs::DirEntry>| fs::read_link(entry.ok()?.path()).ok();
    open.filter_map(leads_to).any(|target| target.to_string_lossy().contains("inotify"))
}

#[test]
fn by_command_alone_nothing_is_watched() {
    let world = World::new();
    let agent = Agent::start(&world, &format!("{}[agent]\nreload = \"command\"\n", config(1)));
    wait_until("it watches its subjects", || agent.said().contains("the agent watches"));
    assert!(!is_watching(&agent));
    fs::write(path(&world), config(2)).unwrap();
    agent.signal("HUP");
    comes_into_force(&world, 2);
    wait_until("the watch", || is_watching(&agent));
    agent.end();
}

#[test]
fn where_the_kernel_watches_nothing_it_is_said_once_and_saves_are_found() {
    let world = World::new();
    let limited = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$@\"";
    let probe =
        world.command("unshare").args(["-Ur", "sh", "-c", limited, "sh", "true"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this host lets no user namespace be made, so nothing is tested here");
        return;
    }
    let agent = Agent::spawn_as(&world, &config(1), |path| {
        let latido = world.latido_command(&["agent", "--config", path]);
        let mut command = world.command("unshare");
        command.args(["-Ur", "sh", "-c", limited, "sh"]).arg(latido.get_program()).args(latido.get_args());
        command
    });
    for number in 2..=4 {
        comes_into_force(&world, number - 1);
        rename_over(&path(&world), config(number));
    }
    comes_into_force(&world, 4);
    assert!(!is_watching(&agent));
    let said = agent.said().matches("cannot watch the directories").count();
    assert_eq!(said, noted(&world, "config-read-again") + 1, "once in each life");
    agent.end();
}
