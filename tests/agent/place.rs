//! One agent a state directory.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;

use latido_protocol::Class;

use super::BARE;
use crate::support::{Agent, World, wait_until};

/// Field case C190: a second agent refuses, even though the first does not answer, and spoils nothing.
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

/// Everything that tells of an agent that sleeps was removed, and another took its place.
#[test]
fn an_agent_whose_place_was_taken_while_it_slept_ends_and_writes_nothing() {
    let world = World::new();
    let first = Agent::start(&world, BARE);
    world.detach("a", &[], "until [ -e end ]; do sleep 0.05; done");
    wait_until("the first to watch it", || world.latido(&["status", "a"]).stdout.contains("running"));
    first.signal("STOP");
    fs::remove_file(world.state().agent_lock()).unwrap();
    fs::remove_file(world.state().agent_socket()).unwrap();
    let second = Agent::start(&world, BARE);
    first.signal("CONT");
    fs::write(world.home().join("end"), "").unwrap();
    wait_until("its word", || first.said().contains("another agent has taken it over"));
    assert_eq!(first.ended().code(), Some(4));
    assert!(world.state().agent_socket().exists(), "the other's socket stays");
    assert_eq!(fs::read_to_string(world.state().agent_lock()).unwrap().trim(), second.pid().to_string());
    assert!(second.status().is_some());
    assert_eq!(world.end("a", 1).outcome.class, Class::Completed);
    second.end();
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
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
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

/// Field case C196 (midgetspy/Sick-Beard PR #279): stopping works on the first after a second start has failed.
#[test]
fn c196_a_second_start_that_fails_leaves_the_first_one_stoppable() {
    let world = World::new();
    let first = Agent::start(&world, BARE);
    let holder = fs::read_to_string(world.state().agent_lock()).unwrap();
    world.latido(&["agent"]).ends_with(4);
    assert_eq!(fs::read_to_string(world.state().agent_lock()).unwrap(), holder);
    let pid: u32 = holder.trim().parse().unwrap();
    assert_eq!(first.pid(), pid);
    first.end();
    Agent::start(&world, BARE).end();
}

/// Field case C193 (pedrosousa13/hop#158). The socket of a deep state directory lies in the runtime folder.
#[test]
fn c193_neither_another_socket_nor_another_state_directory_makes_a_second_agent() {
    let home = World::new();
    let world = World::with_state(&home.home().join("x".repeat(100)));
    let first = Agent::start(&world, BARE);
    let link = world.state().agent_socket();
    let before = (fs::read_link(&link).unwrap(), fs::metadata(&link).unwrap().ino());
    let elsewhere = tempfile::tempdir().unwrap();
    let mut second = world.latido_command(&["agent"]);
    second.env("XDG_RUNTIME_DIR", elsewhere.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let second = world.finish(second.spawn().unwrap()).ends_with(4);
    assert!(second.stderr.contains(&format!("pid {}", first.pid())), "{second:?}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);

    let other = World::new();
    fs::create_dir_all(other.state().path()).unwrap();
    std::os::unix::fs::symlink(&before.0, other.state().agent_socket()).unwrap();
    let third = other.latido(&["agent"]).ends_with(4);
    assert!(third.stderr.contains("answers at its socket") && third.stderr.contains("  next:  "), "{third:?}");
    assert_eq!(fs::read_link(other.state().agent_socket()).unwrap(), before.0);
    assert_eq!((fs::read_link(&link).unwrap(), fs::metadata(&link).unwrap().ino()), before);
    assert!(first.status().is_some());
    first.end();
}

/// Field case C209 (joewalnes/websocketd#474): whoever may write above a private folder puts another in its place.
#[test]
fn c209_a_state_directory_that_everybody_may_replace_is_refused() {
    let world = World::new();
    let shared = world.home().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    let exposed = World::with_state(&shared.join("state"));
    let refused = exposed.latido(&["agent"]).ends_with(4);
    assert!(refused.stderr.contains("everybody may write to") && refused.stderr.contains("chmod o-w"), "{refused:?}");
    assert!(!exposed.state().agent_socket().exists());
    // Nor is anything started without an agent.
    let refused = exposed.latido(&["run", "--", "true"]).ends_with(4);
    assert!(refused.stderr.contains("everybody may write to") && refused.stderr.contains("chmod o-w"), "{refused:?}");
    assert_eq!(fs::read_dir(exposed.state().path()).unwrap().count(), 0, "nothing was made there");
    assert!(exposed.latido(&["doctor"]).stdout.contains("everybody may write to"));
    // Nobody takes away there what is somebody else's.
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    Agent::start(&exposed, BARE).end();
}

/// Field case C209, where the modes of folder and socket give no protection: each connection is asked who it is.
#[test]
fn c209_another_user_who_reaches_a_socket_is_not_answered() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    world.detach("a", &[], "exec sleep 1000");
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let attempt = world.start("a", 1).sockets.join("control");
    let sockets = [(world.state().agent_socket(), HELLO), (attempt, "{\"type\":\"status\"}\n")];
    for (socket, _) in &sockets {
        open(socket, 0o666);
        let above = socket.ancestors().skip(1).take_while(|folder| folder.starts_with(world.home()));
        above.for_each(|folder| open(folder, 0o755));
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can be another user, so nothing is tested here");
        return;
    }
    for (socket, request) in &sockets {
        assert!(asked_by(&world, 0, socket, request).contains("type"), "{}", socket.display());
        assert_eq!(asked_by(&world, 65534, socket, request), "", "{}", socket.display());
    }
    agent.end();
}

const HELLO: &str = "{\"version\":1,\"request\":{\"type\":\"hello\"}}\n";

/// What a user is answered at a socket.
fn asked_by(world: &World, user: u32, socket: &Path, request: &str) -> String {
    let client = "import os,socket,sys; os.setresuid(*[int(sys.argv[1])]*3); s=socket.socket(socket.AF_UNIX)\n\
                  s.connect(sys.argv[2]); s.settimeout(20)\n\
                  try: s.sendall(sys.argv[3].encode()); print(s.recv(99).decode())\n\
                  except (BrokenPipeError, ConnectionResetError): pass";
    let mut command = world.command("python3");
    command.args(["-c", client, &user.to_string(), socket.to_str().unwrap(), request]);
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}
