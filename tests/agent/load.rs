//! Much at once, and something slow beside it: nobody waits for anybody else.

use latido_protocol::Class;
use latido_protocol::status::{Phase, PluginStatus, Verdict};

use super::plugins::guest;
use super::{BARE, QUICK};
use crate::support::{Agent, World, wait_until};

/// A sink whose call sleeps for so many milliseconds.
fn slow_sink(ms: u32) -> String {
    let source = guest("sleep");
    format!(
        "[[sink]]\nname = \"slow\"\nsource = \"{source}\"\nsettings = {{ ms = {ms} }}\nlimits = {{ call_for = \"10m\" }}\n"
    )
}

/// The slow sink as the agent sees it, and the journal's end.
fn slow(agent: &Agent<'_>) -> Option<(PluginStatus, u64)> {
    let status = agent.status()?;
    let plugin = status.plugins.into_iter().find(|plugin| plugin.name == "slow")?;
    Some((plugin, status.sequence))
}

// OctopusDeploy/Issues#4241
#[test]
fn c031_a_sink_that_takes_long_delays_no_beat_and_no_verdict() {
    let world = World::new();
    let config = format!("rule = []\n{}", slow_sink(600_000));
    let agent = Agent::start(&world, &config);
    for number in 0..3 {
        let options = ["--interval", "500ms", "--ttl", "30s"];
        world.detach(&format!("a{number}"), &options, "while :; do latido beat; sleep 0.3; done");
    }
    world.detach("silent", &["--interval", "500ms", "--ttl", "2s"], "latido beat; exec sleep 1000");
    wait_until("the verdict that is due", || world.status("silent").verdict == Verdict::Stale);
    let plugin = slow(&agent).unwrap().0;
    assert_eq!((plugin.cursor.unwrap_or(0), plugin.faults), (0, 0), "the sink is still in its first call");
    for number in 0..3 {
        let verdicts = world.verdicts(&format!("a{number}"));
        assert!(!verdicts.contains(&"stale".to_owned()), "a{number}: {verdicts:?}");
    }
}

// Altinn/altinn-studio#20382
#[test]
fn c045_a_strategy_that_never_returns_holds_up_its_own_job_alone_which_can_be_stopped() {
    let world = World::new();
    let config = format!(
        "sink = []\nrule = []\n[[strategy]]\nname = \"script\"\nsource = \"builtin:script\"\n\
         [[strategy]]\nname = \"bad\"\nsource = \"{}\"\nsettings = {{ where = \"decide\", what = \"loop\" }}\n\
         limits = {{ cpu_for = \"1s\", call_for = \"2s\" }}\n",
        guest("misbehave-strategy")
    );
    let _agent = Agent::start(&world, &config);
    let config = world.home().join("latido.toml").display().to_string();
    let options = ["--config", &config, "--strategy", "bad", "--backoff", "0s..0s", "--max-attempts", "20"];
    world.detach("a", &options, "exec sleep 1000");
    world.detach("b", QUICK, "exec sleep 1000");
    for job in ["a", "b"] {
        world.kill(world.start(job, 1).process.unwrap().pid, "KILL");
    }
    wait_until("attempt 2 of b", || world.attempts("b") == [1, 2]);
    wait_until("held", || world.status("a").phase == Phase::Held);
    assert_eq!(world.attempts("a"), [1]);
    let why = world.latido(&["why", "a"]).stdout;
    assert!(why.contains("strategy"), "{why}");
    world.latido(&["resume", "a"]);
    world.latido(&["stop", "a"]).ends_with(0);
    wait_until("stopped", || world.status("a").phase == Phase::Ended);
}

// multica-ai/multica#4336
#[test]
fn c089_an_agent_that_is_ended_with_a_slow_sink_loses_no_ending() {
    let world = World::new();
    let config = format!("rule = []\n{}", slow_sink(600_000));
    let agent = Agent::start(&world, &config);
    for job in ["a", "b", "c"] {
        world.detach(job, &["--max-attempts", "1"], "while ! test -e go; do sleep 0.05; done; exit 3");
    }
    std::fs::write(world.home().join("go"), "").unwrap();
    for job in ["a", "b", "c"] {
        world.end(job, 1);
    }
    agent.end();
    let ledger = world.latido(&["ledger"]).ends_with(0).stdout;
    let recorded = |job: &str| ledger.lines().filter(|line| line.contains(&format!("  {job}  "))).count();
    assert_eq!(["a", "b", "c"].map(recorded), [1, 1, 1], "{ledger}");
    let agent = Agent::start(&world, &format!("rule = []\n{}", slow_sink(0)));
    wait_until("the sink at the journal's end", || {
        slow(&agent).is_some_and(|(plugin, sequence)| plugin.cursor == Some(sequence))
    });
    for job in ["a", "b", "c"] {
        assert_eq!(world.count("attempt-ended", job), 1);
        assert_eq!(world.status(job).outcome.unwrap().class, Class::Failed);
    }
}

// louislam/uptime-kuma#4684
#[test]
fn c217_beats_make_no_history_that_an_answer_has_to_read() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    world.detach("a", &[], "while :; do latido beat --state busy; done");
    wait_until("a thousand beats", || {
        let path = world.attempt("a", 1).status();
        let status: Option<latido_protocol::files::Status> = latido_protocol::disk::read(&path).ok().flatten();
        status.is_some_and(|status| status.sequence > 300)
    });
    assert!(world.count("beat", "a") <= 1, "sampled, one in five minutes");
    assert!(world.latido(&["status", "a", "--json"]).stdout.len() < 4096);
    let heartbeats = std::fs::read_to_string(world.attempt("a", 1).heartbeats()).unwrap_or_default();
    assert!(heartbeats.lines().count() <= 1, "{heartbeats}");
}

// Supervisor/supervisor#489
#[test]
fn c215_more_jobs_than_the_soft_limit_of_descriptors_are_watched_and_each_gets_the_limit_from_before() {
    let world = World::new();
    let job = "[job.own]\ncommand = [\"sh\", \"-c\", \"ulimit -Sn > own; ulimit -Hn >> own; exec sleep 1000\"]\n";
    let config = format!("{BARE}{job}");
    let agent = Agent::start_limited(&world, &config, "ulimit -Sn 60; ulimit -Hn 4096");
    wait_until("the agent's own job", || world.read("own") == "60\n4096\n");
    for number in 0..40 {
        world.detach(&format!("a{number}"), &[], "exec sleep 1000");
    }
    for number in 0..40 {
        wait_until("alive", || world.status(&format!("a{number}")).verdict == Verdict::Alive);
    }
    world.kill(world.start("a39", 1).process.unwrap().pid, "KILL");
    wait_until("its resume", || world.attempts("a39") == [1, 2]);
    assert!(!agent.said().contains("Too many open files"));
}
