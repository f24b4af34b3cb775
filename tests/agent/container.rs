//! The agent as the first process of a pid namespace, as in a container.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use latido_protocol::Class;

use super::BARE;
use crate::support::{Agent, World, wait_until};

/// An agent that is the first process of a namespace of its own. `None` where none can be made, which is said on stderr.
#[expect(clippy::print_stderr, reason = "a test that cannot be made skips loudly")]
fn contained<'a>(world: &'a World, config: &str) -> Option<Agent<'a>> {
    let probe = world.command("unshare").args(["-pf", "--mount-proc", "true"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this host lets no pid namespace be made, so nothing is tested here");
        return None;
    }
    let agent = Agent::spawn_as(world, config, |path| {
        let latido = world.latido_command(&["agent", "--config", path]);
        let mut command = world.command("unshare");
        command.args(["-pf", "--mount-proc", "--kill-child"]).arg(latido.get_program()).args(latido.get_args());
        command
    });
    wait_until("the agent", || agent.said().contains("the agent watches"));
    Some(agent)
}

/// The pid of the namespace's first process, as this side sees it.
fn first(agent: &Agent<'_>) -> u32 {
    let pid = agent.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_ascii_whitespace().next().unwrap().parse().unwrap()
}

/// Ends the namespace, and keeps its number from being given to the next one, which would prove that it is gone.
fn stop(agent: Agent<'_>) -> fs::File {
    let first = first(&agent);
    let number = fs::File::open(format!("/proc/{first}/ns/pid")).unwrap();
    agent.world().kill(first, "KILL");
    agent.ended();
    number
}

/// Runs a script in the namespace.
fn inside(world: &World, agent: &Agent<'_>, script: &str) -> String {
    let first = first(agent).to_string();
    let ran = world.command("nsenter").args(["-t", &first, "-p", "-m", "sh", "-c", script]).output().unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn as_pid_1_an_agent_collects_what_comes_to_it_and_says_what_its_end_does() {
    let world = World::new();
    let job = "[job.a]\ncommand = [\"sh\", \"-c\", \"setsid sleep 1000 & exec sleep 1000\"]\n\
               resume = { backoff = \"0s..0s\" }\n";
    let config = format!("{BARE}{job}");
    let Some(agent) = contained(&world, &config) else { return };
    let runs = |number| world.attempts("a").contains(&number) && world.start("a", number).process.is_some();
    wait_until("the job", || runs(1));
    // Its supervisor is killed: what it leaves has the agent for its parent.
    let supervisor = world.start("a", 1).supervisor.unwrap().pid;
    inside(&world, &agent, &format!("kill -KILL {supervisor}"));
    wait_until("the next attempt", || runs(2));
    assert_eq!(world.end("a", 1).outcome.class, Class::Lost);
    inside(&world, &agent, "(sleep 0.05 &) ; true");
    let zombies = || inside(&world, &agent, "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '");
    wait_until("no zombie", || zombies().trim() == "0");
    world.kill(first(&agent), "TERM");
    wait_until("its word", || agent.said().contains("the kernel ends all jobs"));
    let said = agent.said();
    assert!(agent.ended().success(), "{said}");
}

/// A container that was stopped takes all of its processes along, and the next one has its state directory.
#[test]
fn the_agent_of_the_next_container_knows_what_the_end_of_the_first_one_ended() {
    let world = World::new();
    let job = "[job.a]\ncommand = [\"sh\", \"-c\", \"echo $LATIDO_ATTEMPT >> ran; setsid sleep 1000 & exec sleep 1000\"]\n\
               resume = { backoff = \"0s..0s\" }\n";
    let config = format!("{BARE}{job}");
    let Some(agent) = contained(&world, &config) else { return };
    wait_until("the job", || world.read("ran") == "1\n");
    let _number = stop(agent);
    let Some(agent) = contained(&world, &config) else { return };
    // Nobody can look into a namespace from outside it, so the agent does nothing by itself.
    let why = || world.latido(&["why", "a"]).stdout;
    wait_until("a verdict", || why().contains("told by     the agent"));
    for part in ["verdict     unknown", "phase       held", "latido resume a --presume-lost"] {
        assert!(why().contains(part), "{}", why());
    }
    let refused = world.latido(&["resume", "a"]).ends_with(4);
    assert!(refused.stderr.contains("--presume-lost"), "{refused:?}");
    assert_eq!(world.attempts("a"), [1]);
    // A person knows that the first container is gone.
    world.latido(&["resume", "a", "--presume-lost"]).ends_with(0);
    wait_until("the next attempt", || world.read("ran") == "1\n2\n");
    let end = world.end("a", 1);
    assert_eq!(end.outcome.class, Class::Lost);
    assert!(end.proof.contains("vouches") && end.proof.contains("another pid namespace"), "{end:?}");
    drop(agent);
}

/// What ended in a container that is gone needs nobody's word.
#[test]
fn a_job_that_ended_in_the_first_container_runs_again_in_the_next_one() {
    let world = World::new();
    let config = format!("{BARE}[job.a]\ncommand = [\"sh\", \"-c\", \"echo $LATIDO_ATTEMPT >> ran; exit 3\"]\n");
    let Some(agent) = contained(&world, &config) else { return };
    assert_eq!(world.end("a", 1).outcome.class, Class::Failed);
    let _number = stop(agent);
    let Some(_agent) = contained(&world, &config) else { return };
    world.latido(&["resume", "a"]).ends_with(0);
    assert_eq!(world.end("a", 2).outcome.class, Class::Failed);
}

/// What is seen to live counts for more than anybody's word.
#[test]
fn nobody_vouches_away_what_lives() {
    let world = World::new();
    world.detach("a", &[], "exec sleep 1000");
    assert!(
        world.latido(&["resume", "a", "--presume-lost"]).ends_with(0).stderr.contains("running already as attempt 1")
    );
    // Its record is of another namespace, as far as can be told, and its lock is held.
    let path = world.state().job(&"a".parse().unwrap()).attempt(1).path().join("start.json");
    let here = fs::metadata("/proc/self/ns/pid").unwrap().ino().to_string();
    let start = fs::read_to_string(&path).unwrap();
    assert!(start.contains(&here));
    fs::write(&path, start.replace(&here, "1")).unwrap();
    let refused = world.latido(&["resume", "a", "--presume-lost"]).ends_with(4);
    assert!(refused.stderr.contains("its lock") || refused.stderr.contains("is held"), "{refused:?}");
    assert_eq!(world.attempts("a"), [1]);
    fs::write(&path, start).unwrap();
}
