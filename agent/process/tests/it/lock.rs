use std::time::Duration;

use latido_process::lock::{Lock, LockError, holders};

use crate::support::{Kept, command, wait_until};

#[test]
fn of_two_takers_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || Lock::take(&path).unwrap())
        })
        .collect();
    let taken: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(taken.len(), 1);
    assert!(Lock::is_held(&path).unwrap());
    assert_eq!(holders(&path), [std::process::id()]);
    drop(taken);
    // A child that another thread is just starting holds a copy until it executes its program.
    wait_until("the lock is free", || !Lock::is_held(&path).unwrap());
    assert!(Lock::take(&path).unwrap().is_some());
}

#[test]
fn probes_never_keep_a_taker_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    assert!(!Lock::is_held(&path).unwrap(), "an absent file is not held");
    std::fs::write(&path, "").unwrap();
    std::thread::scope(|scope| {
        let (began, begun) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let path = &path;
        scope.spawn(move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                Lock::is_held(path).unwrap();
                let _ = began.send(());
            }
        });
        begun.recv().unwrap();
        for _ in 0..200 {
            assert!(Lock::take(path).unwrap().is_some());
        }
        drop(stop);
    });
}

#[test]
fn a_child_that_inherited_the_lock_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let lock = Lock::take(&path).unwrap().unwrap();
    let child = Kept(command("sleep").arg("1000").stdin(lock.into_fd()).spawn().unwrap());
    assert!(Lock::is_held(&path).unwrap());
    assert!(Lock::take(&path).unwrap().is_none());
    assert_eq!(holders(&path), [child.pid()]);
    drop(child);
    wait_until("the kernel frees the lock", || !Lock::is_held(&path).unwrap());
}

#[test]
fn a_lock_on_a_file_that_was_removed_keeps_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let old = Lock::take(&path).unwrap().unwrap();
    std::fs::remove_file(&path).unwrap();
    let new = Lock::take(&path).unwrap().unwrap();
    assert!(Lock::inherited(old.into_fd(), &path).unwrap().is_none());
    assert!(Lock::inherited(new.into_fd(), &path).unwrap().is_some());
}

#[test]
fn a_short_lock_waits_and_gives_up_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let held = Lock::take_short(folder.path(), Duration::from_secs(5)).unwrap();
    let error = Lock::take_short(folder.path(), Duration::from_millis(20)).unwrap_err();
    assert!(matches!(error, LockError::Busy { .. }), "{error}");
    drop(held);
    // A child that a test beside this one has forked holds a copy until its program runs.
    wait_until("it is free", || Lock::take_short(folder.path(), Duration::ZERO).is_ok());
}
