//! A job, its supervisor and its agent are killed with SIGKILL, alone and together.

use latido_protocol::Class;
use latido_protocol::status::{Phase, Verdict};

use super::{BARE, QUICK};
use crate::support::{Agent, World, wait_until};

/// Says who it is, once for each copy that lives, and goes on for ever.
const MARK: &str = "echo $LATIDO_ATTEMPT >> marks; exec sleep 1000";

#[test]
fn a_killed_job_goes_on_as_the_next_attempt_by_itself() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    world.detach("a", QUICK, MARK);
    let first = world.start("a", 1);
    world.kill(first.process.unwrap().pid, "KILL");
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
    let end = world.end("a", 1);
    assert_eq!((end.outcome.class, end.outcome.signal), (Class::Lost, Some(9)));
    wait_until("its verdict", || world.status("a").verdict == Verdict::Alive);
    assert_eq!(world.status("a").pickups, 1);
    assert_eq!(world.start("a", 2).epoch, first.epoch + 1);
    agent.end();
    assert_eq!(world.status("a").verdict, Verdict::Alive, "jobs run on without an agent");
}

/// Field case C134: the supervisor dies, the job lives; at no moment do two copies live.
#[test]
fn c134_an_orphan_is_ended_before_the_next_attempt_begins() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    // Ends only by SIGTERM, and says so before it is gone; whoever begins before that is a second copy.
    let script = "test -e lives && echo double >> doubles; : > lives; trap 'rm lives; exit 0' TERM; \
                  echo $LATIDO_ATTEMPT >> marks; while :; do sleep 0.05; done";
    world.detach("a", QUICK, script);
    wait_until("attempt 1", || world.read("marks") == "1\n");
    world.kill(world.start("a", 1).supervisor.unwrap().pid, "KILL");
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
    assert_eq!(world.read("doubles"), "");
    assert_eq!(world.end("a", 1).outcome.class, Class::Lost);
    assert!(world.living("a", 1).is_empty());
    assert!(world.verdicts("a").contains(&"orphaned".to_owned()));
}

#[test]
fn a_loss_that_the_disk_refuses_is_recorded_and_resumed_once_the_disk_takes_it() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    world.detach("a", QUICK, MARK);
    wait_until("attempt 1", || world.read("marks") == "1\n");
    // A folder in the ledger's place refuses every line, as a full disk does.
    std::fs::create_dir(world.state().ledger()).unwrap();
    world.kill(world.start("a", 1).supervisor.unwrap().pid, "KILL");
    wait_until("the ending", || world.attempt("a", 1).end().exists());
    assert_eq!(world.read("marks"), "1\n", "nothing is resumed before the loss is recorded");
    std::fs::remove_dir(world.state().ledger()).unwrap();
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
}

#[test]
fn a_killed_agent_finds_its_jobs_as_they_were_and_touches_nothing() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    world.detach("a", &["--ttl", "3s", "--interval", "1s"], "while :; do latido beat; sleep 0.3; done");
    wait_until("a beat", || world.status("a").last_beat.is_some());
    let before = world.start("a", 1);
    agent.kill();
    let _agent = Agent::start(&world, BARE);
    let status = world.status("a");
    assert_eq!((status.attempt, status.pid), (1, before.process.as_ref().map(|process| process.pid)));
    assert_eq!(world.start("a", 1), before);
    assert_eq!(world.count("attempt-started", "a"), 1, "adopted, not started");
    let verdicts = world.verdicts("a");
    assert!(verdicts.iter().all(|verdict| verdict == "waiting" || verdict == "alive"), "{verdicts:?}");
}

/// Field case C087: everything is killed at once; the agent that comes back goes on.
#[test]
fn c087_agent_supervisor_and_job_killed_together_are_recovered() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    world.detach("a", QUICK, MARK);
    let first = world.start("a", 1);
    agent.kill();
    world.kill(first.supervisor.unwrap().pid, "KILL");
    world.kill(first.process.unwrap().pid, "KILL");
    let _agent = Agent::start(&world, BARE);
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
    assert_eq!(world.end("a", 1).outcome.class, Class::Lost);
    assert_eq!(world.count("attempt-ended", "a"), 1);
}

/// Field case C090: an attempt of another boot is dead at once, whatever lives under its pids.
#[test]
fn c090_an_attempt_of_yesterdays_boot_is_lost_and_its_pids_are_not_touched() {
    let world = World::new();
    world.detach("a", QUICK, MARK);
    let mut start = world.start("a", 1);
    for pid in [start.supervisor.as_ref().unwrap().pid, start.process.as_ref().unwrap().pid] {
        world.kill(pid, "KILL");
    }
    // The pids are those of a stranger, who must not be signalled.
    let mut stranger = world.command("sleep").arg("1000").spawn().unwrap();
    for identity in start.supervisor.iter_mut().chain(start.process.iter_mut()) {
        identity.pid = stranger.id();
        identity.boot_id = "00000000-0000-0000-0000-000000000000".to_owned();
    }
    latido_protocol::disk::replace(&world.attempt("a", 1).start(), &start).unwrap();
    let _agent = Agent::start(&world, BARE);
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger was ended");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_stopped_job_stays_stopped_and_a_resume_by_hand_goes_on() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    world.detach("a", QUICK, MARK);
    world.latido(&["stop", "a"]).ends_with(0);
    wait_until("the end", || world.status("a").phase == Phase::Ended);
    assert_eq!(world.status("a").outcome.unwrap().class, Class::Stopped);
    world.latido(&["resume", "a"]).ends_with(0);
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
}

#[test]
fn a_job_that_dies_at_once_every_time_is_stuck_and_not_for_ever_resumed() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    world.detach("a", QUICK, "echo x >> marks; kill -9 $$");
    wait_until("stuck", || world.status("a").phase == Phase::Stuck);
    let attempts = world.attempts("a").len();
    assert!((2..20).contains(&attempts), "{attempts} attempts");
    assert_eq!(world.read("marks").lines().count(), attempts);
}

/// Field case C100: many ask for the same resume at the same instant.
#[test]
fn c100_twenty_resumes_at_once_make_one_attempt() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    world.detach("a", &["--resume-on", "limit"], MARK);
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    wait_until("the end", || world.status("a").phase == Phase::Ended);
    let asked: Vec<_> = (0..20).map(|_| world.spawn(&["resume", "a"])).collect();
    for child in asked {
        world.finish(child).ends_with(0);
    }
    assert_eq!(world.attempts("a"), [1, 2]);
    assert_eq!(world.read("marks"), "1\n2\n");
}

#[test]
fn a_job_of_the_config_is_launched_once_and_never_again_by_a_start() {
    let world = World::new();
    let config =
        format!("{BARE}[job.nightly]\ncommand = [\"sh\", \"-c\", \"echo x >> {}/marks\"]\n", world.home().display());
    let agent = Agent::start(&world, &config);
    wait_until("its attempt", || world.attempts("nightly") == [1]);
    wait_until("its end", || world.status("nightly").phase == Phase::Ended);
    agent.kill();
    let agent = Agent::start(&world, &config);
    wait_until("it is judged", || world.latido(&["status", "nightly"]).code == Some(0));
    assert_eq!(world.status("nightly").outcome.unwrap().class, Class::Completed);
    agent.end();
    assert_eq!((world.read("marks"), world.attempts("nightly")), ("x\n".to_owned(), vec![1]));
}

/// `agent --once` decides what identity and lock prove, carries it out, and ends.
#[test]
fn an_agent_that_runs_once_recovers_and_ends() {
    let world = World::new();
    world.detach("dead", &["--resume-on", "limit"], MARK);
    world.detach("alive", &[], "exec sleep 1000");
    let start = world.start("dead", 1);
    world.kill(start.supervisor.unwrap().pid, "KILL");
    world.kill(start.process.unwrap().pid, "KILL");
    let alive = world.start("alive", 1);
    world.latido(&["agent", "--once"]).ends_with(0);
    assert_eq!(world.end("dead", 1).outcome.class, Class::Lost);
    assert_eq!(world.start("alive", 1), alive);
    assert_eq!(world.living("alive", 1).len(), 1);
    assert!(!world.state().agent_socket().exists());
}

/// The foreground follows a job that the agent resumes, and ends with the code of the attempt that ended it.
#[test]
fn the_foreground_follows_the_next_attempt() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    let mut words = vec!["run", "--name", "a"];
    words.extend(QUICK);
    let script = "echo attempt $LATIDO_ATTEMPT; test $LATIDO_ATTEMPT = 2 && exit 7; exec sleep 1000";
    words.extend(["--", "sh", "-c", script]);
    let foreground = world.spawn(&words);
    wait_until("attempt 1", || world.attempts("a") == [1] && world.attempt("a", 1).status().exists());
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    let ran = world.finish(foreground).ends_with(7);
    assert!(ran.stdout.contains("attempt 1") && ran.stdout.contains("attempt 2"), "{ran:?}");
}

/// What ended while no agent ran is in the journal, also when the next attempt has begun or the job is gone.
#[test]
fn endings_that_no_agent_saw_reach_the_journal() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    world.detach("a", &[], "exec sleep 1000");
    world.detach("b", &[], "exec sleep 1000");
    agent.kill();
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    world.end("a", 1);
    world.latido(&["resume", "a"]).ends_with(0);
    world.latido(&["stop", "b"]).ends_with(0);
    world.latido(&["remove", "b"]).ends_with(0);
    let agent = Agent::start(&world, BARE);
    wait_until("both attempts", || (world.count("attempt-started", "a"), world.count("attempt-ended", "a")) == (2, 1));
    let removed =
        |entry: &latido_protocol::journal::Entry| serde_json::to_string(entry).unwrap().contains("job b was removed");
    wait_until("the removal", || world.events().iter().any(removed));
    agent.end();
}
