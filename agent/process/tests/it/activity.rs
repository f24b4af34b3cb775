use std::time::Duration;

use latido_process::activity::{Activity, Roots, Sampler};
use latido_process::identity::of;
use latido_process::tree::{Tree, end};
use latido_protocol::files::Identity;

use crate::support::{Kept, command, wait_until};

fn session(script: &str) -> Kept {
    Kept(command("setsid").args(["sh", "-c", script]).spawn().unwrap())
}

fn identity(kept: &Kept) -> Identity {
    of(kept.pid()).unwrap().unwrap()
}

fn sample(process: &Identity) -> Activity {
    let roots = [Roots { process, supervisor: None }];
    Sampler::new().unwrap().sample(&roots).unwrap().remove(0)
}

#[test]
fn work_in_a_grandchild_that_left_the_session_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "cd {}; setsid sh -c 'echo > ready; while [ ! -e go ]; do sleep 0.01; done; head -c 50000000 /dev/zero | md5sum; echo > done; exec sleep 1000' & wait",
        folder.path().display()
    );
    let job = crate::support::marked(folder.path(), &script);
    let ready = |name: &'static str| {
        let path = folder.path().join(name);
        move || path.exists()
    };
    wait_until("it is ready", ready("ready"));
    let process = identity(&job);
    let before = sample(&process);
    assert!(before.processes_count >= 2 && before.unreadable_count == 0, "{before:?}");
    std::fs::write(folder.path().join("go"), "").unwrap();
    wait_until("it has worked", ready("done"));
    let after = sample(&process);
    assert!(after.cpu > before.cpu && !after.is_idle_since(&before), "{before:?} {after:?}");
    assert_eq!(after.first.unwrap().state, 'S');
    let tree = Tree { attempt_dir: folder.path().to_owned(), process: Some(process), supervisor: None, cgroup: None };
    assert_eq!(end(&tree, Duration::ZERO).unwrap().survivors, []);
}

#[test]
fn what_sleeps_is_idle_and_what_it_waits_in_is_named() {
    let job = Kept(command("setsid").args(["sleep", "1000"]).spawn().unwrap());
    let process = identity(&job);
    wait_until("it sleeps", || {
        sample(&process).first.is_some_and(|first| first.state == 'S' && first.syscall.is_some())
    });
    let before = sample(&process);
    let after = sample(&process);
    assert!(after.is_idle_since(&before), "{before:?} {after:?}");
    let first = after.first.unwrap();
    assert!(first.wchan.is_none_or(|name| name.contains("nanosleep")));
}

#[test]
fn what_has_ended_or_has_another_start_time_has_nothing() {
    let job = session("exec sleep 1000");
    let process = identity(&job);
    let other = Identity { start_time: process.start_time + 1, ..process.clone() };
    assert_eq!(sample(&other), Activity::default());
    drop(job);
    assert_eq!(sample(&process), Activity::default());
}

// The figure: 1,000 attempts sampled every 10 s cost at most 1 % of a core, so a pass takes at most 100 ms of CPU. The bound
// that fails here is looser, for builds without optimisation; the number is printed.
#[test]
fn a_pass_over_a_thousand_attempts_opens_a_few_files_for_each_and_is_cheap() {
    const ATTEMPTS: usize = 1000;

    let jobs: Vec<Kept> = (0..ATTEMPTS).map(|_| Kept(command("sleep").arg("1000").spawn().unwrap())).collect();
    let identities: Vec<Identity> = jobs.iter().map(identity).collect();
    let roots: Vec<Roots<'_>> = identities.iter().map(|process| Roots { process, supervisor: None }).collect();
    let mut sampler = Sampler::new().unwrap();
    let warm = sampler.sample(&roots).unwrap();
    assert!(warm.iter().all(|activity| activity.processes_count == 1));
    let opened = sampler.opened_count();
    let processes = std::fs::read_dir("/proc").unwrap().count();
    let cpu = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.try_into().unwrap())
    };
    let before = cpu();
    for _ in 0..5 {
        sampler.sample(&roots).unwrap();
    }
    let pass = (cpu() - before) / 5;
    println!("a pass over {ATTEMPTS} attempts among {processes} processes: {pass:?} of CPU, {opened} files opened");
    // One file for each process, and four more for each attempt's own.
    let own = u64::try_from(ATTEMPTS * 4).unwrap();
    assert!(opened <= own + u64::try_from(processes).unwrap() * 2, "{opened}");
    assert!(pass < Duration::from_millis(500), "{pass:?}");
}
