//! One agent a state directory.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::BARE;
use crate::support::{Agent, World, wait_until};

/// Field cases C190 and C196: a second agent refuses, even though the first does not answer, and spoils nothing.
#[test]
fn c190_a_second_agent_refuses_and_leaves_no_trace() {
    let world = World::new();
    let first = Agent::start(&world, BARE);
    let socket = world.state().agent_socket();
    let inode = fs::metadata(&socket).unwrap().ino();
    first.signal("STOP");
    let second = world.latido(&["agent"]).ends_with(4);
    assert!(second.stderr.contains(&format!("pid {}", first.pid())), "{second:?}");
    assert!(second.stderr.contains("  next:  "), "{second:?}");
    first.signal("CONT");
    assert_eq!(fs::metadata(&socket).unwrap().ino(), inode);
    assert!(first.status().is_some());
    first.end();
    assert!(!socket.exists());
}

/// Its socket still tells of it, whether it answers or is stopped.
#[test]
fn an_agent_whose_lock_was_removed_is_still_the_only_one() {
    let world = World::new();
    let first = Agent::start(&world, BARE);
    for signal in ["CONT", "STOP"] {
        first.signal(signal);
        let _gone = fs::remove_file(world.state().agent_lock());
        let second = world.latido(&["agent"]).ends_with(4);
        assert!(second.stderr.contains("agent.lock was removed"), "{second:?}");
    }
    first.signal("CONT");
    assert!(first.status().is_some());
}

/// Field case C192: twenty agents at the same instant.
#[test]
fn c192_of_twenty_agents_one_stays() {
    let world = World::new();
    let mut agents: Vec<_> = (0..20).map(|_| world.spawn(&["agent"])).collect();
    wait_until("19 refusals", || agents.iter_mut().filter_map(|agent| agent.try_wait().unwrap()).count() == 19);
    for mut agent in agents {
        match agent.try_wait().unwrap() {
            Some(status) => assert_eq!(status.code(), Some(4)),
            None => {
                world.kill(agent.id(), "TERM");
                assert!(agent.wait().unwrap().success());
            }
        }
    }
}

/// Field case C189: a killed agent leaves its socket; the next one starts all the same.
#[test]
fn c189_a_stale_socket_is_replaced() {
    let world = World::new();
    Agent::start(&world, BARE).kill();
    assert!(world.state().agent_socket().exists());
    Agent::start(&world, BARE).end();
}

/// Field case C195: something else at the socket's path is left alone.
#[test]
fn c195_a_file_at_the_sockets_path_is_refused_and_stays() {
    for kind in ["file", "directory", "link"] {
        let world = World::new();
        fs::create_dir_all(world.state().path()).unwrap();
        let path = world.state().agent_socket();
        match kind {
            "file" => fs::write(&path, "precious").unwrap(),
            "directory" => fs::create_dir(&path).unwrap(),
            _ => std::os::unix::fs::symlink("/etc/hostname", &path).unwrap(),
        }
        let ran = world.latido(&["agent"]).ends_with(4);
        assert!(ran.stderr.contains(&format!("a {kind} lies there")), "{ran:?}");
        assert!(fs::symlink_metadata(&path).is_ok());
    }
}

/// Field case C208: directory 0700, socket 0600.
#[test]
fn c208_directory_and_socket_are_private() {
    let world = World::new();
    fs::create_dir_all(world.state().path()).unwrap();
    fs::set_permissions(world.state().path(), fs::Permissions::from_mode(0o755)).unwrap();
    let agent = Agent::start(&world, BARE);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(world.state().path()), 0o700);
    assert_eq!(mode(&world.state().agent_socket()), 0o600);
    agent.end();
}

#[test]
fn a_state_directory_too_deep_for_a_socket_works_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with_state(&folder.path().join("deep/".repeat(30)).join("state"));
    let agent = Agent::start(&world, BARE);
    world.detach("a", &[], "exec sleep 1000");
    assert_eq!(world.status("a").attempt, 1);
    agent.end();
    assert!(fs::symlink_metadata(world.state().agent_socket()).is_err());
}

#[test]
fn a_control_socket_that_is_removed_is_bound_again() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let socket = world.state().agent_socket();
    fs::remove_file(&socket).unwrap();
    wait_until("its answer", || agent.status().is_some());
    assert_eq!(fs::symlink_metadata(&socket).unwrap().mode() & 0o777, 0o600);
    // What is no socket of a dead agent is not taken away.
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "mine").unwrap();
    wait_until("its word", || agent.said().contains("cannot be bound again"));
    assert_eq!(fs::read_to_string(&socket).unwrap(), "mine");
    fs::remove_file(&socket).unwrap();
    wait_until("its answer again", || agent.status().is_some());
    agent.end();
    assert!(!socket.exists());
}

/// The state directory's path is too long for a socket, so that it lies in the runtime folder, which cleaners clear.
#[test]
fn a_runtime_folder_that_is_cleared_is_made_again() {
    let home = World::new();
    let world = World::with_state(&home.home().join("x".repeat(100)));
    let agent = Agent::start(&world, BARE);
    let socket = world.state().agent_socket();
    let folder = fs::read_link(&socket).unwrap().parent().unwrap().to_owned();
    fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    wait_until("its answer", || agent.status().is_some());
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    fs::remove_file(&socket).unwrap();
    wait_until("the link", || agent.status().is_some());
    agent.end();
    assert!(!folder.exists());
}
