use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use latido_protocol::attempt::{Advice, Answer, Beat, Request};
use latido_protocol::files::{Heartbeat, Spent, Wanted};
use latido_protocol::{FORMAT_VERSION, Progress, disk};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::support::{Attempt, Job, wait_until};

fn sleeper() -> Attempt {
    Job::shell("exec sleep 1000").start()
}

fn status(attempt: &Attempt) -> latido_protocol::files::Status {
    let answer = attempt.connect().ask(&Request::Status);
    let Answer::Status { status } = answer else { panic!("{answer:?}") };
    *status
}

/// Sends a datagram with descriptors and returns the end that tells when they are closed.
fn send_with_pipes(attempt: &Attempt, datagram: &[u8], count: usize) -> Vec<std::os::fd::OwnedFd> {
    let (reads, writes): (Vec<_>, Vec<_>) =
        (0..count).map(|_| rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap()).unzip();
    let socket = UnixDatagram::unbound().unwrap();
    socket.connect(attempt.folder.path().join("sockets/notify")).unwrap();
    let borrowed: Vec<_> = writes.iter().map(AsFd::as_fd).collect();
    let mut space = vec![std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if count > 0 {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)));
    }
    rustix::net::sendmsg(&socket, &[std::io::IoSlice::new(datagram)], &mut ancillary, SendFlags::empty()).unwrap();
    reads
}

fn wait_closed(reads: &[std::os::fd::OwnedFd]) {
    for read in reads {
        // Blocks until the last copy of the writing end is closed.
        assert_eq!(rustix::io::read(read, &mut [0_u8; 1]).unwrap(), 0);
    }
}

#[test]
fn notifications_arrive_and_only_own_beats_renew() {
    let attempt = sleeper();
    attempt.notify(b"READY=1\nSTATUS=file 3/8");
    wait_until("ready", || status(&attempt).ready);
    let ready = status(&attempt);
    assert_eq!((ready.sequence, ready.last_beat), (0, None), "READY and STATUS are no beats");
    let progress = ready.progress.unwrap();
    assert_eq!((progress.done, progress.total, progress.step.as_deref()), (Some(3), Some(8), Some("file 3/8")));

    attempt.notify(b"WATCHDOG=1");
    wait_until("the beat", || status(&attempt).sequence == 1);
    let beaten = status(&attempt);
    assert!(beaten.last_beat.is_some() && beaten.progress_changed == ready.progress_changed, "a beat is no progress");

    attempt.notify(b"WATCHDOG=trigger\nSTOPPING=1");
    wait_until("broken", || status(&attempt).broken);
    assert_eq!(status(&attempt).state.as_deref(), Some("stopping"));
    attempt.notify(b"X_LATIDO_EPOCH=6\nX_LATIDO_PROGRESS=0.9\nX_UNKNOWN=1");
    attempt.notify(b"X_LATIDO_EPOCH=7\nX_LATIDO_PROGRESS=0.5\nX_LATIDO_STEP=b\nX_LATIDO_CHECKPOINT=200");
    wait_until("progress", || status(&attempt).sequence == 2);
    let progress = status(&attempt).progress.unwrap();
    assert_eq!(progress.fraction, Some(0.5), "the old epoch's word does not count");
    assert_eq!((progress.step.as_deref(), progress.checkpoint.as_deref()), (Some("b"), Some("200")));
    attempt.notify(b"STATUS=90%");
    attempt.notify(b"WATCHDOG=1");
    wait_until("the last", || status(&attempt).sequence == 3);
    assert_eq!(status(&attempt).progress.unwrap().fraction, Some(0.5), "a hint does not outrank what was said");
}

#[test]
fn a_barrier_is_let_go_when_all_before_it_is_on_the_disk() {
    let attempt = sleeper();
    for number in 1..=20 {
        attempt.notify(format!("X_LATIDO_CHECKPOINT={number}").as_bytes());
        wait_closed(&send_with_pipes(&attempt, b"BARRIER=1", 1));
        let checkpoint = attempt.status().progress.unwrap().checkpoint.unwrap();
        assert_eq!(checkpoint, number.to_string());
    }
    // Stray descriptors, and barriers against the rule, are closed and harm nothing.
    wait_closed(&send_with_pipes(&attempt, b"WATCHDOG=1", 3));
    wait_closed(&send_with_pipes(&attempt, b"BARRIER=1", 2));
    wait_closed(&send_with_pipes(&attempt, b"FDSTORE=1\nFDNAME=a", 16));
    assert_eq!(status(&attempt).sequence, 21);
}

#[test]
fn a_checkpoint_is_on_the_disk_before_its_beat_is_answered() {
    let attempt = sleeper();
    let mut client = attempt.connect();
    for number in 1..=20 {
        let checkpoint = Some(number.to_string());
        let beat =
            Beat { progress: Progress { checkpoint: checkpoint.clone(), ..Progress::default() }, ..Beat::default() };
        assert_eq!(client.beat(beat), Answer::Advice { advice: Advice::GoOn });
        assert_eq!(attempt.status().progress.unwrap().checkpoint, checkpoint);
    }
}

#[test]
fn large_and_rubbish_datagrams_harm_nothing() {
    let attempt = sleeper();
    let every: Vec<u8> = (0..=255).cycle().take(60_000).collect();
    for datagram in [&b""[..], b"=", b"\0\0\0", &every, b"X_LATIDO_PROGRESS=NaN", b"BARRIER=1"] {
        attempt.notify(datagram);
    }
    let long = [b"STATUS=".to_vec(), vec![b'x'; 50_000], b"\nWATCHDOG=1".to_vec()].concat();
    attempt.notify(&long);
    wait_until("the beat behind it", || status(&attempt).sequence == 1);
}

#[test]
fn a_beat_of_another_attempt_is_refused_or_superseded() {
    let attempt = Job::shell("echo $LATIDO_TOKEN > token; exec sleep 1000").start();
    let own = Beat { token: Some(attempt.said("token")), attempt: Some(1), epoch: Some(7), ..Beat::default() };
    let mut client = attempt.connect();
    let go_on = Answer::Advice { advice: Advice::GoOn };
    let superseded = Answer::Advice { advice: Advice::Superseded };
    assert_eq!(client.beat(own.clone()), go_on);
    assert_eq!(attempt.token(), attempt.said("token"), "an operator may read it");
    assert_eq!(client.beat(Beat { epoch: Some(6), token: Some("other".into()), ..Beat::default() }), superseded);
    for foreign in [
        Beat { token: None, ..own.clone() },
        Beat { token: Some(String::new()), ..own.clone() },
        Beat { token: Some("0".repeat(32)), ..own.clone() },
        Beat { epoch: Some(8), ..own.clone() },
        Beat { attempt: Some(2), ..own.clone() },
        Beat { progress: Progress { fraction: Some(1.5), ..Progress::default() }, ..own.clone() },
        Beat { progress: Progress { step: Some("x".repeat(5000)), ..Progress::default() }, ..own.clone() },
    ] {
        let answer = client.ask(&Request::Beat(foreign.clone()));
        assert!(matches!(answer, Answer::Error { .. }), "{foreign:?}: {answer:?}");
    }
    assert_eq!(status(&attempt).sequence, 1);
}

#[test]
fn the_progress_of_a_child_is_progress_and_no_beat_and_needs_the_token() {
    let attempt = sleeper();
    let mut client = attempt.connect();
    let moved = |token| Request::ChildMoved { token, child: "child".parse().unwrap(), step: "3/8".into() };
    for foreign in [None, Some("0".repeat(32))] {
        assert!(matches!(client.ask(&moved(foreign)), Answer::Error { .. }));
    }
    assert_eq!(status(&attempt).progress, None);
    assert_eq!(client.ask(&moved(Some(attempt.token()))), Answer::Advice { advice: Advice::GoOn });
    let told = status(&attempt);
    assert_eq!(told.progress.unwrap().step.as_deref(), Some("child: 3/8"));
    assert!(told.progress_changed.is_some() && told.sequence == 0, "no lease is renewed, and none begins");
}

/// Sends a datagram as another user, from outside the attempt or from inside it. `None` where this user cannot.
fn notify_script(attempt: &std::path::Path) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let path = attempt.join("sockets/notify");
    Some(format!(
        "import os, socket, sys\nos.setgid(65534); os.setuid(65534)\n\
         socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'WATCHDOG=1', '{}')\n",
        path.display()
    ))
}

#[test]
fn a_datagram_of_another_user_is_heard_from_inside_the_attempt_alone() {
    use std::os::unix::fs::PermissionsExt;

    let attempt = Job::shell("while [ ! -e go ]; do sleep 0.01; done; python3 script; exec sleep 1000").start();
    let Some(script) = notify_script(attempt.folder.path()) else { return };
    // Whoever owns the sockets may open their folder to others.
    for (path, mode) in [("", 0o711), ("sockets", 0o711), ("sockets/notify", 0o666)] {
        let path = attempt.folder.path().join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    std::fs::write(attempt.folder.path().join("script"), &script).unwrap();
    // Another attempt's process is a stranger here.
    let other = Job::of(&["python3", "-c", &script]).start();
    assert_eq!(other.end().outcome.code, Some(0), "{:?}", String::from_utf8_lossy(&other.output()));
    wait_until("the stranger", || status(&attempt).trouble.strangers == 1);
    assert_eq!(status(&attempt).sequence, 0);
    std::fs::write(attempt.folder.path().join("go"), "").unwrap();
    wait_until("the attempt's own", || status(&attempt).sequence == 1);
    attempt.notify(b"WATCHDOG=1");
    wait_until("the owner's", || status(&attempt).sequence == 2);
}

#[test]
fn sockets_that_are_cleared_away_are_bound_again() {
    let attempt = Job::shell("exec sleep 1000")
        .with(|settings| settings.presence_every = latido_protocol::Span(Duration::from_secs(1)))
        .start();
    let token = attempt.token();
    let mut before = attempt.connect();
    let folder = attempt.folder.path().join("sockets");
    for cleared in ["sockets/control", "sockets/notify", "sockets"] {
        let path = attempt.folder.path().join(cleared);
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
        wait_until(cleared, || std::os::unix::net::UnixStream::connect(folder.join("control")).is_ok());
        wait_until("the notify socket", || folder.join("notify").exists() && folder.join("token").exists());
        let sequence = status(&attempt).sequence;
        attempt.notify(b"WATCHDOG=1");
        wait_until("a beat", || status(&attempt).sequence == sequence + 1);
    }
    assert_eq!(attempt.token(), token, "the job knows no other");
    assert!(matches!(before.ask(&Request::Status), Answer::Status { .. }), "who was connected stays so");
    attempt.stop(Duration::ZERO);
    attempt.end();
    assert!(!folder.exists());
}

// reddb-io/red-skills#1959
#[test]
fn c120_a_status_that_cannot_be_written_is_counted_and_tried_again_and_everything_else_goes_on() {
    let attempt = sleeper();
    std::fs::remove_file(attempt.dir.status()).unwrap();
    std::fs::create_dir_all(attempt.dir.status().join("in the way")).unwrap();
    let mut client = attempt.connect();
    assert_eq!(client.beat(Beat::default()), Answer::Advice { advice: Advice::GoOn }, "a beat is heard all the same");
    wait_until("it is tried more than once", || status(&attempt).trouble.unwritten > 1);
    let because = status(&attempt).trouble.unwritten_because.unwrap();
    assert!(because.contains("status.json"), "{because}");
    let checkpoint = Progress { checkpoint: Some("5".into()), ..Progress::default() };
    let answer = client.beat(Beat { progress: checkpoint, ..Beat::default() });
    assert!(matches!(answer, Answer::Error { .. }), "a checkpoint that is not kept is not acknowledged: {answer:?}");
    std::fs::remove_dir_all(attempt.dir.status()).unwrap();
    wait_until("it is written", || attempt.dir.status().is_file());
    assert_eq!(attempt.status().progress.unwrap().checkpoint.as_deref(), Some("5"));
    let trouble = status(&attempt).trouble;
    assert!(trouble.unwritten_because.is_none() && trouble.unwritten > 1, "{trouble:?}");
}

#[test]
fn a_fence_holds_until_a_higher_epoch_is_wanted() {
    let attempt = sleeper();
    let mut client = attempt.connect();
    let token = attempt.token();
    assert!(matches!(client.ask(&Request::Fence { token: None, epoch: 7 }), Answer::Error { .. }));
    let mut fence = |epoch| client.ask(&Request::Fence { token: Some(token.clone()), epoch });
    assert_eq!(fence(7), Answer::Advice { advice: Advice::GoOn });
    assert_eq!(fence(6), Answer::Advice { advice: Advice::Superseded });
    assert!(matches!(fence(8), Answer::Error { .. }));
    let wanted = Wanted {
        version: FORMAT_VERSION,
        want: latido_protocol::files::Want::Run,
        epoch: 8,
        at: attempt.status().at,
        until: None,
        by: "a test".into(),
        budget: None,
    };
    disk::replace(&attempt.job_dir().wanted(), &wanted).unwrap();
    assert_eq!(fence(7), Answer::Advice { advice: Advice::Superseded });
}

#[test]
fn what_is_used_up_is_told_in_beats_and_notifications_and_never_falls() {
    let attempt = sleeper();
    let told = |turns, tokens, money| Spent { turns, tokens, money };
    let beat = Beat { spent: told(3, 500, 0), ..Beat::default() };
    assert_eq!(attempt.connect().beat(beat), Answer::Advice { advice: Advice::GoOn });
    attempt.notify(b"X_LATIDO_TURNS=2\nX_LATIDO_MONEY=0.25");
    wait_until("the second report", || status(&attempt).sequence == 2);
    assert_eq!(status(&attempt).spent, told(3, 500, 250_000));
    attempt.stop(Duration::ZERO);
    assert_eq!(attempt.end().spent, told(3, 500, 250_000));
}

#[test]
fn the_first_beat_is_kept_and_later_ones_are_sampled() {
    let attempt = sleeper();
    let mut client = attempt.connect();
    for number in 1..=50 {
        client.beat(Beat { state: Some("busy".into()), errors: Some(number), ..Beat::default() });
    }
    let lines = disk::read_lines::<Heartbeat>(&attempt.dir.heartbeats()).unwrap();
    assert_eq!((lines.records.len(), lines.records[0].sequence, lines.records[0].errors), (1, 1, 1));
    wait_until("the status is on the disk", || attempt.status().sequence == 50 && attempt.status().errors == 50);
}

#[test]
fn a_watcher_gets_the_first_status_at_once_and_the_latest_always() {
    let attempt = sleeper();
    let mut watcher = attempt.connect();
    let Answer::Status { status } = watcher.ask(&Request::Watch) else { panic!() };
    assert_eq!(status.sequence, 0);
    let mut client = attempt.connect();
    for number in 1..=300_u64 {
        client.beat(Beat { progress: Progress { done: Some(number), ..Progress::default() }, ..Beat::default() });
    }
    let mut pushed = 0;
    loop {
        let Some(Answer::Status { status }) = watcher.hear() else { panic!() };
        pushed += 1;
        if status.sequence == 300 {
            break;
        }
    }
    assert!(pushed < 300, "300 beats were pushed {pushed} times");
}

#[test]
fn a_stopped_supervisor_did_not_listen() {
    let every = latido_protocol::Span(Duration::from_secs(1));
    let attempt = Job::shell("exec sleep 1000").with(|settings| settings.presence_every = every).start();
    attempt.connect().beat(Beat::default());
    let supervisor = [attempt.start().supervisor.unwrap()];
    latido_process::tree::signal(&supervisor, latido_process::Signal::STOP);
    let before = attempt.status();
    // Time itself has to go by here: more than a planned sleep of 1 s and the second that a pass may be late.
    let (_never, pause) = std::sync::mpsc::channel::<()>();
    let _ = pause.recv_timeout(Duration::from_secs(5));
    latido_process::tree::signal(&supervisor, latido_process::Signal::CONT);
    let after = status(&attempt);
    let wall = after.at.as_millis() - before.at.as_millis();
    assert!(wall >= 5000 && after.silence_s.0 <= Duration::from_millis(3000), "{wall} ms, {:?}", after.silence_s);
}

#[test]
fn announced_silence_stands_in_the_status_with_its_words_until_progress_ends_it() {
    let attempt = sleeper();
    attempt.notify(b"EXTEND_TIMEOUT_USEC=60000000\nSTATUS=the provider asks for a pause");
    wait_until("the excuse", || status(&attempt).excuse.is_some());
    let excuse = status(&attempt).excuse.unwrap();
    assert_eq!(excuse.length_s.0, Duration::from_secs(60));
    assert_eq!(excuse.because.as_deref(), Some("the provider asks for a pause"));
    attempt.notify(b"EXTEND_TIMEOUT_USEC=90000000");
    let length = || status(&attempt).excuse.map(|excuse| excuse.length_s.0).unwrap_or_default();
    wait_until("the renewal", || length() > Duration::from_secs(60));
    let renewed = status(&attempt).excuse.unwrap();
    assert!(renewed.length_s.0 >= Duration::from_secs(90), "from its first word on: {renewed:?}");
    assert!(renewed.since_s >= excuse.since_s && renewed.since_s.0 < Duration::from_secs(60), "the same excuse");
    attempt.notify(b"X_LATIDO_PROGRESS=0.5");
    wait_until("its end", || status(&attempt).excuse.is_none());
}

#[test]
fn the_first_output_is_told_at_once_and_idleness_begins_anew_with_each() {
    let attempt = Job::shell("until test -e go; do sleep 0.02; done; echo hello; exec sleep 1000").start();
    let mut watcher = attempt.connect();
    let Answer::Status { status: first } = watcher.ask(&Request::Watch) else { panic!() };
    assert_eq!(first.output_bytes, 0);
    std::fs::write(attempt.folder.path().join("go"), "").unwrap();
    let Some(Answer::Status { status: told }) = watcher.hear() else { panic!() };
    assert_eq!(told.output_bytes, 6);
    assert!(told.idle_s.unwrap().0 < Duration::from_secs(5));
}
