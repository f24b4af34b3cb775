//! Every way of starting work has the same life: a supervisor that is heard, and a death that is noticed.

use latido_protocol::Class;
use latido_protocol::status::Verdict;

use super::{BARE, QUICK};
use crate::support::{Agent, World, wait_until};

/// Heard by the agent, and lost when it is killed.
fn is_watched(world: &World, job: &str, attempt: u32) {
    wait_until("its supervisor's word", || {
        let status = world.status(job);
        status.verdict == Verdict::Alive && status.attempt == attempt
    });
    let start = world.start(job, attempt);
    world.kill(start.process.unwrap().pid, "KILL");
    assert_eq!(world.end(job, attempt).outcome.class, Class::Lost, "{job}");
    wait_until("its loss in the journal", || world.count("lease-expired", job) >= usize::try_from(attempt).unwrap());
}

// PrefectHQ/prefect#16515
#[test]
fn c035_work_is_watched_however_it_was_started() {
    let world = World::new();
    let command = "command = [\"sleep\", \"1000\"]\nresume = { on = [] }\nstart = \"auto\"";
    let config = format!("{BARE}[job.configured]\n{command}\n");
    let agent = Agent::start(&world, &config);
    let once = ["--max-attempts", "1"];
    is_watched(&world, "configured", 1);
    let words = ["run", "--name", "foreground", "--max-attempts", "1", "--", "sleep", "1000"];
    let foreground = world.spawn(&words);
    wait_until("the foreground job", || world.attempts("foreground") == [1]);
    is_watched(&world, "foreground", 1);
    assert_eq!(world.finish(foreground).code, Some(137));
    world.detach("detached", &once, "exec sleep 1000");
    is_watched(&world, "detached", 1);
    world.detach("resumed", QUICK, "exec sleep 1000");
    is_watched(&world, "resumed", 1);
    wait_until("attempt 2", || world.attempts("resumed") == [1, 2]);
    is_watched(&world, "resumed", 2);
    world.detach("taken-over", &once, "exec sleep 1000");
    agent.kill();
    world.detach("without-agent", &once, "exec sleep 1000");
    let _agent = Agent::start(&world, &config);
    is_watched(&world, "taken-over", 1);
    is_watched(&world, "without-agent", 1);
}

// gsd-build/gsd-2#3615
#[test]
fn c295_a_script_that_honours_its_checkpoint_repeats_no_step() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    let script = "for step in 1 2 3 4 5 6; do test $step -le ${LATIDO_CHECKPOINT:-0} && continue; \
                  echo $step >> steps; latido beat --step \"step $step\" --checkpoint $step; \
                  test $step = 3 && test $LATIDO_ATTEMPT = 1 && kill -9 $$; done; exit 0";
    world.detach("a", QUICK, script);
    wait_until("the second attempt", || world.attempts("a") == [1, 2]);
    assert_eq!(world.end("a", 2).outcome.class, Class::Completed);
    assert_eq!(world.read("steps"), "1\n2\n3\n4\n5\n6\n");
    assert_eq!((world.start("a", 1).checkpoint, world.start("a", 2).checkpoint), (String::new(), "3".to_owned()));
}
