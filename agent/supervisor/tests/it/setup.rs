//! What a job's process is given before it runs.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use latido_process::Signal;
use latido_process::tree::signal;
use latido_protocol::OutcomeKind;
use latido_protocol::attempt::Report;
use latido_protocol::files::{Bound, EnvironmentFrom, JobSettings, Rlimit, Sigpipe};

use crate::support::{Attempt, Job, untested, wait_until};

/// Starts a job, and waits for its output.
fn printed(script: &str, change: impl FnOnce(&mut JobSettings)) -> String {
    let attempt = Job::shell(script).with(change).start();
    assert!(matches!(attempt.report, Report::Started { .. }), "{:?}", attempt.report);
    attempt.end();
    String::from_utf8(attempt.output()).unwrap()
}

fn refused(change: impl FnOnce(&mut JobSettings)) -> String {
    let attempt = Job::shell("echo > ran").with(change).start();
    let Report::LaunchFailed { detail } = attempt.report.clone() else { panic!("{:?}", attempt.report) };
    assert_eq!(attempt.end().outcome.kind, OutcomeKind::LaunchFailed);
    assert!(!attempt.folder.path().join("ran").exists());
    detail
}

fn limit(name: &str, soft: u64, hard: Option<u64>) -> impl FnOnce(&mut JobSettings) {
    move |s| {
        let limit = Rlimit { soft: Bound::At(soft), hard: hard.map(Bound::At) };
        s.launch.rlimits.insert(name.to_owned(), limit);
    }
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        untested("only root can run a job as another user");
    }
    is_root
}

#[test]
fn umask_niceness_and_limits_are_set() {
    assert_eq!(printed("umask", |s| s.launch.umask = Some(0o027)).trim(), "0027");
    assert_eq!(printed("nice", |s| s.launch.nice = Some(15)).trim(), "15");
    assert_eq!(printed("ulimit -Sn; ulimit -Hn", limit("nofile", 60, Some(70))), "60\n70\n");
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap();
    assert_eq!(printed("ulimit -Sn; ulimit -Hn", limit("nofile", 60, None)), format!("60\n{hard}\n"));
}

#[test]
fn what_cannot_be_set_is_refused_with_its_cause() {
    assert!(refused(|s| s.launch.umask = Some(0o1000)).contains("umask 1000"));
    assert!(refused(|s| s.launch.nice = Some(20)).contains("niceness 20"));
    assert!(refused(limit("nofiles", 1, None)).contains("limit nofiles: there is none of this name"));
    assert!(refused(limit("nofile", 9, Some(8))).contains("limit nofile to 9: its hard limit is 8"));
    assert!(refused(|s| s.launch.user = Some("no-such-user".into())).contains("there is no such user"));
    assert!(refused(|s| s.launch.group = Some("daemon".into())).contains("none is given"));
    if is_root() {
        let of =
            |s: &mut JobSettings| (s.launch.user, s.launch.group) = (Some("daemon".into()), Some("no-such".into()));
        assert!(refused(of).contains("there is no such group"));
    }
}

#[test]
fn the_environment_is_all_nothing_or_a_list() {
    // The supervisor of this test has what the test has.
    let names = |from| printed("env | sed 's/=.*//'", |s| s.launch.environment = from);
    let has = |text: &str, name: &str| text.lines().any(|line| line == name);
    let is_set = |name: &String| ["PATH", "PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str());
    let mut own = std::env::vars().map(|(name, _)| name).filter(|name| !is_set(name));
    let (known, other) = (own.next().unwrap(), own.next().unwrap());
    let (all, clean) = (names(EnvironmentFrom::Inherit), names(EnvironmentFrom::Clean));
    let list = names(EnvironmentFrom::List(vec![known.clone()]));
    assert!(has(&all, &known) && !has(&clean, &known) && has(&list, &known));
    assert!(has(&clean, "PATH") && has(&clean, "LATIDO_JOB"), "the job's own and the attempt's are there: {clean}");
    assert!(!has(&list, &other));
}

/// A job in a folder that everybody may enter, as another user.
fn as_user(script: &str, change: impl FnOnce(&mut JobSettings)) -> Attempt {
    let mut job = Job::shell(script).with(|s| s.launch.user = Some("daemon".into())).with(change);
    job.directory = Some("/".into());
    job.start()
}

#[test]
fn a_job_runs_as_another_user_with_its_groups_and_home() {
    if !is_root() {
        return;
    }
    let attempt = as_user("id -u; id -g; id -G; echo $HOME $USER $LOGNAME; echo said > /dev/stdout", |_| ());
    attempt.end();
    let output = String::from_utf8(attempt.output()).unwrap();
    assert_eq!(output, "1\n1\n1\n/usr/sbin daemon daemon\nsaid\n");
    let attempt = as_user("id -u; id -g", |s| s.launch.group = Some("100".into()));
    attempt.end();
    assert_eq!(attempt.output(), b"1\n100\n");
}

#[test]
fn a_job_of_another_user_can_beat_and_nobody_else_can_reach_its_sockets() {
    if !is_root() {
        return;
    }
    let script = "import os, socket, json, time
s = socket.socket(socket.AF_UNIX); s.connect(os.environ['LATIDO_SOCKET'])
s.sendall(json.dumps({'type': 'beat', 'token': os.environ['LATIDO_TOKEN'], 'state': 'by-socket'}).encode() + b'\\n')
print(s.recv(1000).decode(), flush=True)
d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); d.connect(os.environ['NOTIFY_SOCKET']); d.send(b'READY=1')
time.sleep(1000)";
    let mut job = Job::of(&["python3", "-c", script]).with(|s| s.launch.user = Some("daemon".into()));
    job.directory = Some("/".into());
    let attempt = job.start();
    wait_until("it is ready", || attempt.status().ready);
    let output = String::from_utf8(attempt.output()).unwrap();
    assert!(output.contains("go-on"), "{output}");
    let folder = attempt.start().sockets;
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), folder.metadata().unwrap().uid()), (0o711, 0));
    for socket in ["control", "notify"] {
        let path = folder.join(socket);
        assert_eq!((mode(&path), path.metadata().unwrap().uid()), (0o600, 1), "{socket}");
    }
    signal(&[attempt.process()], Signal::KILL);
    attempt.end();
    assert!(!folder.exists());
}

#[test]
fn a_directory_that_its_user_may_not_enter_refuses_the_launch() {
    if !is_root() {
        return;
    }
    let private = tempfile::tempdir().unwrap();
    std::fs::set_permissions(private.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut job = Job::shell("true").with(|s| s.launch.user = Some("daemon".into()));
    job.directory = Some(private.path().to_owned());
    let attempt = job.start();
    let Report::LaunchFailed { detail } = &attempt.report else { panic!("{:?}", attempt.report) };
    assert!(detail.contains("enter the directory"), "{detail}");
    attempt.end();
}

#[test]
fn sigpipe_ends_a_job_or_is_an_error_as_it_is_asked_for() {
    let script = "trap '' USR1; yes | head -c 1 > /dev/null; sh -c 'grep SigIgn /proc/$$/status'";
    let ignored = |sigpipe| {
        let output = printed(script, |s| s.launch.sigpipe = sigpipe);
        let mask = output.split_ascii_whitespace().last().unwrap().to_owned();
        u64::from_str_radix(&mask, 16).unwrap() & (1 << (Signal::PIPE.as_raw() - 1)) != 0
    };
    assert!(!ignored(Sigpipe::Default));
    assert!(ignored(Sigpipe::Ignore));
}

#[test]
fn a_core_is_told_from_a_plain_signal() {
    if !std::fs::read_to_string("/proc/sys/kernel/core_pattern").is_ok_and(|pattern| pattern.trim() == "core") {
        untested("core files go elsewhere on this host");
        return;
    }
    let end = Job::shell("kill -SEGV $$").with(limit("core", 1 << 30, None)).start().end();
    assert_eq!((end.outcome.signal, end.outcome.detail.as_str()), (Some(11), "crashed with SIGSEGV (core dumped)"));
    let end = Job::shell("kill -SEGV $$").with(limit("core", 0, None)).start().end();
    assert_eq!((end.outcome.signal, end.outcome.detail.as_str()), (Some(11), "crashed with SIGSEGV"));
}

#[test]
fn a_job_that_is_stopped_by_a_signal_is_seen_and_seen_to_go_on() {
    let attempt = Job::shell("exec sleep 1000").start();
    signal(&[attempt.process()], Signal::STOP);
    wait_until("it is suspended", || attempt.status().suspended_since.is_some());
    signal(&[attempt.process()], Signal::CONT);
    wait_until("it goes on", || attempt.status().suspended_since.is_none());
}
