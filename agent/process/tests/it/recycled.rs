//! Numbers that are given again while a stop is under way, in a pid namespace of the test's own. Where that is refused the
//! test cannot be made, and says so.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::time::Duration;

use latido_process::identity::of;
use latido_process::tree::{self, Ended, Tree};
use latido_process::{Pidfd, Signal};

use crate::support::{Kept, command, untested};

/// Set inside the namespace.
const INSIDE: &str = "LATIDO_TEST_INSIDE";

/// How many rounds there are, where somebody asks for more than an ordinary run makes: a round waits for the next tick of
/// the kernel's clock, a hundredth of a second.
const ROUNDS: &str = "LATIDO_RECYCLED_ROUNDS";
const ROUNDS_SHORT: u32 = 60;

/// The smallest space of numbers that the kernel makes.
const PID_MAX: &str = "301";

// google/fleetspeak execution.go: between the wait after the first signal and the second one.
#[test]
fn c149_the_second_signal_of_a_stop_never_hits_a_newcomer_with_the_same_number() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let own = std::env::current_exe().unwrap();
    let test = "recycled::c149_the_second_signal_of_a_stop_never_hits_a_newcomer_with_the_same_number";
    let mut namespace = command("unshare");
    namespace.args(["-pf", "--mount-proc", "--kill-child"]);
    let is_allowed = namespace.arg("true").status().is_ok_and(|status| status.success());
    if !is_allowed {
        return untested("this host lets no pid namespace be made");
    }
    let mut namespace = command("unshare");
    namespace.args(["-pf", "--mount-proc", "--kill-child"]).arg(own).args(["--exact", test, "--nocapture"]);
    let output = namespace.env(INSIDE, "1").stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let output = output.output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    said.lines().filter(|line| line.starts_with("NOT TESTED")).for_each(untested);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn inside() {
    if std::fs::write("/proc/sys/kernel/pid_max", PID_MAX).is_err() {
        untested("this kernel has one space of numbers for all namespaces: only the number is forced");
    }
    if std::fs::write("/proc/sys/kernel/ns_last_pid", "100").is_err() {
        return untested("this kernel does not let the next number be chosen");
    }
    let rounds = std::env::var(ROUNDS).ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS_SHORT);
    (0..rounds).for_each(round);
}

/// A job ends in the grace, its number goes to a newcomer that leads a group of that number, and then comes the second
/// signal, on every way there is.
fn round(number: u32) {
    let mut job = sleeper();
    let identity = of(job.pid()).unwrap().unwrap();
    let held = Pidfd::open(&identity).unwrap().unwrap();
    let tree = Tree {
        attempt_dir: "/nowhere/jobs/a/attempts/0001".into(),
        process: Some(identity.clone()),
        supervisor: None,
        cgroup: None,
    };
    assert_eq!(tree::signal(std::slice::from_ref(&identity), Signal::TERM), 1);
    assert_eq!(job.0.wait().unwrap().signal(), Some(Signal::TERM.as_raw()), "round {number}");

    let mut newcomer = newcomer(&identity);
    assert!(!held.signal(Signal::KILL).unwrap(), "round {number}");
    assert_eq!(tree::signal(std::slice::from_ref(&identity), Signal::KILL), 0, "round {number}");
    let living = tree::find(&tree).unwrap();
    assert_eq!(tree::kill(&tree, &living), 0, "round {number}: {living:?}");
    assert_eq!(tree::end(&tree, Duration::ZERO).unwrap(), Ended::default(), "round {number}");

    // The signal that ends it is the first that it got.
    let pid = rustix::process::Pid::from_raw(newcomer.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::USR1).unwrap();
    assert_eq!(newcomer.0.wait().unwrap().signal(), Some(Signal::USR1.as_raw()), "round {number}");
}

/// A process with the number of one that has ended. Within one tick of the clock nothing tells the two apart, which a space
/// of numbers that is used up one by one leaves no time for: so it is another tick.
fn newcomer(former: &latido_protocol::files::Identity) -> Kept {
    loop {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (former.pid - 1).to_string()).unwrap();
        let newcomer = sleeper();
        let start_time = of(newcomer.pid()).unwrap().unwrap().start_time;
        if newcomer.pid() == former.pid && start_time != former.start_time {
            return newcomer;
        }
    }
}

fn sleeper() -> Kept {
    Kept(command("sleep").arg("1000").process_group(0).spawn().unwrap())
}
