//! Files that are torn, empty, zeroed, rubbish, or from the future.

use std::fs;
use std::path::{Path, PathBuf};

use latido_protocol::Class;
use latido_protocol::status::Verdict;

use crate::support::{Ran, World, wait_until};

/// Ways to damage a file.
fn damages(whole: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("empty", Vec::new()),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("zeroed", vec![0; whole.len()]),
        ("rubbish", b"\xff\xfe\x00{]rubbish".to_vec()),
        ("another document", b"[1, 2, 3]\n".to_vec()),
        ("wrong types", b"{\"version\":1,\"job\":7,\"name\":null,\"attempt\":\"x\"}".to_vec()),
    ]
}

fn no_panic(ran: &Ran) {
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    assert!(matches!(ran.code, Some(0..=4 | 125)), "{ran:?}");
}

/// Asks every command that reads, none of which may panic or change anything.
fn look(world: &World) {
    for words in [
        &["status"][..],
        &["status", "--json"],
        &["why", "a"],
        &["ledger"],
        &["ledger", "--json"],
        &["logs", "a"],
        &["events"],
        &["orphans"],
        &["wait", "a", "--for", "1ms"],
        &["run", "--name", "a", "--", "true"],
    ] {
        no_panic(&world.latido(words));
    }
}

fn file(world: &World, name: &str) -> PathBuf {
    world.state().job(&"a".parse().unwrap()).path().join(name)
}

/// Field case C237 (wazuh/wazuh#36615), files of an attempt that has ended.
#[test]
fn c237_each_damaged_file_of_an_ended_attempt_is_named_and_survived() {
    let world = World::new();
    world.detach("a", &[], "latido beat --done 1 --checkpoint c1; exit 3");
    world.end("a", 1);
    for name in
        ["job.json", "wanted.json", "attempts/0001/start.json", "attempts/0001/status.json", "attempts/0001/end.json"]
    {
        let path = file(&world, name);
        let whole = fs::read(&path).unwrap();
        for (how, bytes) in damages(&whole) {
            fs::write(&path, &bytes).unwrap();
            look(&world);
            let why = world.latido(&["why", "a"]);
            assert!(why.stdout.contains(path.file_name().unwrap().to_str().unwrap()), "{name} {how}: {why:?}");
            assert_eq!(fs::read(&path).unwrap(), bytes, "{name} {how}: a look has changed it");
        }
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(world.status("a").verdict, Verdict::Ended);
}

/// Field case C237, files of an attempt that runs: it is neither lost nor doubled by it, and can be stopped.
#[test]
fn c237_damage_under_a_live_attempt_neither_loses_nor_doubles_it() {
    for name in ["wanted.json", "busy.json", "attempts/0001/start.json", "attempts/0001/status.json"] {
        let world = World::new();
        world.detach("a", &[], "echo $$ >> runs; exec sleep 100");
        wait_until("the job", || world.read("runs").lines().count() == 1);
        let path = file(&world, name);
        let whole = fs::read(&path).unwrap();
        for (_, bytes) in damages(&whole) {
            fs::write(&path, &bytes).unwrap();
            look(&world);
            no_panic(&world.latido(&["resume", "a"]));
            no_panic(&world.latido(&["remove", "a"]));
        }
        assert_eq!(world.attempts("a"), [1], "{name}");
        assert_eq!(world.read("runs").lines().count(), 1, "{name}");
        assert_ne!(world.living("a", 1), [], "{name}");
        no_panic(&world.latido(&["stop", "a"]));
    }
}

/// An ending that cannot be read is put aside, and the next launch is not held up by it.
#[test]
fn a_damaged_ending_is_put_aside_and_the_job_can_be_resumed() {
    let world = World::new();
    world.detach("a", &[], "latido beat --checkpoint c1; exit 3");
    world.end("a", 1);
    let path = world.attempt("a", 1).end();
    fs::write(&path, "{\"version\":1,").unwrap();
    world.latido(&["resume", "a"]).ends_with(0);
    assert_eq!(world.end("a", 1).outcome.class, Class::Lost);
    assert_eq!(fs::read_to_string(path.with_extension("json.damaged")).unwrap(), "{\"version\":1,");
    assert_eq!((world.start("a", 2).epoch, world.start("a", 2).checkpoint), (2, "c1".to_owned()));
}

/// What is wanted is lost: nobody can know that the job was not stopped, so it is not wanted to run, and no epoch is
/// given again.
#[test]
fn a_lost_wanted_file_stops_nothing_and_repeats_no_epoch() {
    let world = World::new();
    world.detach("a", &[], "exit 3");
    world.end("a", 1);
    world.latido(&["resume", "a"]).ends_with(0);
    world.end("a", 2);
    fs::remove_file(file(&world, "wanted.json")).unwrap();
    world.latido(&["resume", "a"]).ends_with(0);
    assert_eq!(world.end("a", 3).epoch, 3);
}

/// The latest beat is rebuilt from the sampled ones; a torn last line there is passed over.
#[test]
fn a_damaged_status_is_rebuilt_from_the_sampled_beats() {
    let world = World::new();
    world.detach("a", &[], "latido beat --done 3 --total 4 --checkpoint c3; exit 3");
    world.end("a", 1);
    let attempt = world.attempt("a", 1);
    assert!(fs::read_to_string(attempt.heartbeats()).unwrap().contains("c3"));
    fs::write(attempt.status(), "").unwrap();
    fs::remove_file(attempt.end()).unwrap();
    let mut torn = fs::read(attempt.heartbeats()).unwrap();
    torn.extend_from_slice(b"{\"at\":\"2026-");
    fs::write(attempt.heartbeats(), torn).unwrap();
    let status = world.status("a");
    assert_eq!(status.progress.unwrap().checkpoint.as_deref(), Some("c3"));
    let why = world.latido(&["why", "a"]).stdout;
    assert!(why.contains("heartbeats.jsonl"), "{why}");
    world.latido(&["resume", "a"]).ends_with(0);
    assert_eq!(world.start("a", 2).checkpoint, "c3");
}

/// Files written by a newer latido are left alone: named, and nothing follows from them.
#[test]
fn files_of_a_newer_version_are_named_and_left_alone() {
    for (name, key) in [("job.json", "resume"), ("wanted.json", "resume"), ("wanted.json", "stop")] {
        let world = World::new();
        world.detach("a", &[], "exit 3");
        world.end("a", 1);
        let path = file(&world, name);
        let newer = fs::read_to_string(&path).unwrap().replacen("\"version\":1", "\"version\":2", 1);
        fs::write(&path, &newer).unwrap();
        let why = world.latido(&["why", "a"]);
        assert!(why.stdout.contains("newer latido"), "{name}: {why:?}");
        let ran = world.latido(&[key, "a"]);
        assert!(matches!(ran.code, Some(4 | 125)) && ran.stderr.contains("newer latido"), "{name} {key}: {ran:?}");
        assert_eq!(world.attempts("a"), [1]);
        assert_eq!(fs::read_to_string(&path).unwrap(), newer);
    }
}

/// Field cases C228 (elizaOS/eliza#30878) and C231 (PrimeIntellect-ai/nano-rlm PR #97), of the ledger: a torn line costs
/// itself alone and is told of.
#[test]
fn c228_c231_a_torn_ledger_loses_the_torn_line_alone() {
    let world = World::new();
    world.detach("a", &[], "exit 0");
    world.end("a", 1);
    let ledger = world.state().ledger();
    wait_until("the ledger", || ledger.exists());
    let mut torn = fs::read(&ledger).unwrap();
    torn.extend_from_slice(b"{\"job\":\"a\",\"attempt\":9,\xe2");
    fs::write(&ledger, torn).unwrap();
    for name in ["b", "c"] {
        world.detach(name, &[], "exit 0");
        world.latido(&["wait", name]).ends_with(0);
    }
    wait_until("the lines", || world.latido(&["ledger"]).stdout.lines().count() == 4);
    let ran = world.latido(&["ledger", "--json"]).ends_with(0);
    assert_eq!(ran.stderr.matches("damaged").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("line 2 "), "{ran:?}");
}

/// Field case C204 (windmill-labs/windmill PR #9569): links and strange names in the state directory lead nowhere.
#[test]
fn c204_links_and_strange_names_are_no_jobs() {
    let world = World::new();
    world.detach("a", &[], "exit 0");
    world.end("a", 1);
    let outside = world.home().join("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, world.state().jobs().join("link")).unwrap();
    for name in [".hidden", "UPPER", "a b", "-x"] {
        fs::create_dir(world.state().jobs().join(name)).unwrap();
    }
    fs::write(world.state().jobs().join("plain"), "").unwrap();
    let document = world.latido(&["status", "--json"]).ends_with(0).stdout;
    assert_eq!(document.matches("\"name\"").count(), 1, "{document}");
    for name in ["link", "plain"] {
        for word in ["stop", "resume", "remove", "why", "logs"] {
            world.latido(&[word, name]).ends_with(2);
        }
        let ran = world.latido(&["run", "--name", name, "--", "true"]).ends_with(4);
        assert!(ran.stderr.contains("no job"), "{ran:?}");
    }
    assert_eq!(fs::read_dir(Path::new(&outside)).unwrap().count(), 0);
}

/// A live job whose supervisor is dead and whose records are lost is found by its mark: it is no launch that lasts for
/// ever, it is listed, and it can be stopped.
#[test]
fn an_orphan_without_records_is_found_by_its_mark() {
    let world = World::new();
    world.detach("a", &[], "exec sleep 1000");
    let start = world.start("a", 1);
    for lost in [world.attempt("a", 1).start(), world.state().job(&"a".parse().unwrap()).busy()] {
        fs::write(lost, "{\"version\":1,\"jo").unwrap();
    }
    world.kill(start.supervisor.unwrap().pid, "KILL");
    wait_until("the supervisor's end", || world.status("a").verdict == Verdict::Orphaned);
    world.latido(&["status", "a"]).ends_with(1);
    let pid = start.process.unwrap().pid;
    let orphans = world.latido(&["orphans"]);
    assert!(orphans.stdout.contains(&pid.to_string()), "{orphans:?}");
    world.latido(&["stop", "a", "--grace", "1s"]).ends_with(0);
    assert!(world.living("a", 1).is_empty());
}
