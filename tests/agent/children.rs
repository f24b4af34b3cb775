//! Jobs that jobs start and wait for.

use latido_protocol::status::Verdict;

use super::BARE;
use crate::support::{Agent, World, wait_until};

// WalshyDev/oc-orchestrator PR #192
#[test]
fn c047_a_parent_is_not_hung_while_the_child_that_it_declared_moves() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    let state = world.state().path().display().to_string();
    let moves = "n=0; while :; do n=$((n+1)); latido beat --done $n; sleep 0.2; done";
    for (parent, declared) in [("declared", "--child"), ("undeclared", "")] {
        let script = format!(
            "latido run {declared} --state-dir '{state}' --name {parent}-child -- sh -c '{}'",
            moves.replace('\'', "'\\''")
        );
        world.detach(parent, &["--beats", "presence", "--interval", "1s", "--hung-after", "6s"], &script);
    }
    wait_until("the undeclared one's verdict", || world.status("undeclared").verdict == Verdict::Hung);
    let status = world.status("declared");
    assert_eq!(status.verdict, Verdict::Alive, "{status:?}");
    assert!(status.progress.unwrap().step.unwrap().starts_with("declared-child: "));
    assert_eq!(status.last_beat, None, "a child's progress is no beat, and no lease begins by it");
    world.latido(&["stop", "declared-child", "--force"]).ends_with(0);
    wait_until("the parent's end", || world.status("declared").verdict == Verdict::Ended);
    assert!(!world.verdicts("declared").contains(&"hung".to_owned()), "{:?}", world.verdicts("declared"));
}

#[test]
fn a_child_needs_a_parent_and_somebody_who_waits() {
    let world = World::new();
    let alone = world.latido(&["run", "--child", "--", "true"]).ends_with(2);
    assert!(alone.stderr.contains("does not run inside a job") && alone.stderr.contains("next:"), "{alone:?}");
    assert_eq!(world.latido(&["status"]).stdout, "nothing is watched yet; start a job with `latido run`\n");
    let detached = world.latido(&["run", "--child", "--detach", "--", "true"]).ends_with(2);
    assert!(detached.stderr.contains("--detach"), "{detached:?}");
}
