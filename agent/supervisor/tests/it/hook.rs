//! The command after the ending.

use std::time::Duration;

use latido_process::Signal;
use latido_process::lock::Lock;
use latido_process::tree::signal;
use latido_protocol::files::{OnEnd, OnEndRecord};
use latido_protocol::{Class, Span, disk};

use crate::support::{Attempt, Job, wait_until};

fn after(job: Job, hook: &str, run_for: Duration) -> Job {
    let command = vec!["sh".to_owned(), "-c".to_owned(), hook.to_owned()];
    job.with(|settings| settings.on_end = Some(OnEnd { command, run_for: Span(run_for) }))
}

fn record(attempt: &Attempt) -> Option<OnEndRecord> {
    disk::read(&attempt.dir.on_end()).unwrap()
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_hook_is_told_the_outcome_after_it_was_recorded_and_its_result_is_kept() {
    let hook = "test -e $LATIDO_DIR/end.json && echo recorded; echo $LATIDO_JOB $LATIDO_ATTEMPT $LATIDO_EPOCH; echo \"$LATIDO_OUTCOME:$LATIDO_CODE:$LATIDO_SIGNAL:$LATIDO_CLASS:$LATIDO_DETAIL:$LATIDO_CHECKPOINT\"; echo \"${LATIDO_TOKEN-none}${NOTIFY_SOCKET-none}\" >&2; exit 5";
    let attempt = after(Job::shell("exit 3"), hook, LONG).start();
    assert_eq!(attempt.end().outcome.class, Class::Failed, "the hook's own code is not the job's");
    let text = std::fs::read_to_string(attempt.dir.on_end_output()).unwrap();
    assert_eq!(text, "recorded\njob 1 7\nexited:3::failed:exit status 3:from before\nnonenone\n");
    let record = record(&attempt).unwrap();
    assert_eq!((record.code, record.detail.as_deref()), (Some(5), Some("exit status 5")));
    assert!(record.ended_at.is_some());
    assert_eq!(attempt.output(), b"");
}

#[test]
fn the_lock_is_held_until_the_hook_has_ended() {
    let attempt = after(Job::shell("exit 0"), "echo > hooked; while [ ! -e go ]; do sleep 0.01; done", LONG).start();
    attempt.said("hooked");
    assert!(attempt.dir.end().exists());
    assert!(Lock::is_held(&attempt.job_dir().lock()).unwrap());
    assert_eq!(record(&attempt).unwrap().ended_at, None, "it is said to run");
    std::fs::write(attempt.folder.path().join("go"), "").unwrap();
    attempt.end();
    assert!(!Lock::is_held(&attempt.job_dir().lock()).unwrap());
}

#[test]
fn a_hook_beyond_its_time_is_killed_with_what_it_started() {
    let hook = "sleep 1000 & echo $! > child; echo > hooked; exec sleep 1000";
    let attempt = after(Job::shell("exit 0"), hook, Duration::from_millis(300)).start();
    attempt.end();
    let record = record(&attempt).unwrap();
    assert_eq!((record.code, record.detail.as_deref()), (None, Some("killed after 300ms")));
    let child = attempt.said("child");
    assert!(!std::path::Path::new("/proc").join(child).join("exe").exists());
}

#[test]
fn a_hook_whose_supervisor_is_killed_is_known_to_have_started_and_keeps_the_lock() {
    let attempt = after(Job::shell("exit 0"), "echo $$ > hooked; exec sleep 1000", LONG).start();
    attempt.said("hooked");
    let hook = attempt.identity_in("hooked");
    attempt.kill_supervisor();
    let record = record(&attempt).unwrap();
    assert_eq!((record.ended_at, record.code, record.detail), (None, None, None));
    let end: latido_protocol::files::End = disk::read(&attempt.dir.end()).unwrap().unwrap();
    assert_eq!(end.outcome.class, Class::Completed, "the ending was recorded before");
    assert!(Lock::is_held(&attempt.job_dir().lock()).unwrap(), "no next attempt begins beside it");
    let tree = attempt.tree();
    assert!(latido_process::tree::find(&tree).unwrap().processes.contains(&hook));
    signal(&[hook], Signal::KILL);
    wait_until("the lock is free", || !Lock::is_held(&attempt.job_dir().lock()).unwrap());
}

#[test]
fn a_hook_that_was_begun_is_not_run_again_and_one_that_cannot_run_says_why() {
    let job = after(Job::shell("while [ ! -e go ]; do sleep 0.01; done"), "echo > hooked", LONG);
    let attempt = job.start();
    std::fs::write(attempt.dir.on_end(), "{}").unwrap();
    std::fs::write(attempt.folder.path().join("go"), "").unwrap();
    attempt.end();
    assert!(!attempt.folder.path().join("hooked").exists());
    let on_end = OnEnd { command: vec!["no-such-program".into()], run_for: Span(LONG) };
    let attempt = Job::shell("exit 0").with(|settings| settings.on_end = Some(on_end)).start();
    assert_eq!(attempt.end().outcome.class, Class::Completed);
    let detail = record(&attempt).unwrap().detail.unwrap();
    assert!(detail.starts_with("cannot find no-such-program in PATH"), "{detail}");
}
