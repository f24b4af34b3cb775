use latido_process::Pidfd;
use latido_process::identity::{Look, look, of, own};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::support::{shell, wait_until};

#[test]
fn a_live_process_is_alive_and_its_pidfd_tells_its_end() {
    let mut child = shell("exec sleep 1000");
    let identity = of(child.pid()).unwrap().unwrap();
    assert!(matches!(look(&identity), Look::Alive { .. }));
    let pidfd = Pidfd::open(&identity).unwrap().unwrap();
    assert!(!pidfd.has_ended().unwrap());
    assert!(pidfd.signal(latido_process::Signal::KILL).unwrap());
    child.0.wait().unwrap();
    assert!(pidfd.has_ended().unwrap());
    assert!(!pidfd.signal(latido_process::Signal::KILL).unwrap());
    assert!(matches!(look(&identity), Look::Gone { .. }));
    assert!(Pidfd::open(&identity).unwrap().is_none());
}

// contember/okena PR #166, topcheer/ggcode PR #1976
#[test]
fn c144_a_zombie_counts_as_ended() {
    let child = shell("exit 0");
    let pid = rustix::process::Pid::from_child(&child.0);
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    assert!(rustix::process::test_kill_process(pid).is_ok(), "a zombie still answers signal 0");
    assert_eq!(of(child.pid()).unwrap(), None);
}

// inverse-inc/packetfence#3291, eminence/procfs PR #3
#[test]
fn c140_c146_a_recycled_pid_is_another_process_and_gets_no_signal() {
    let child = shell("exec sleep 1000");
    let mut identity = of(child.pid()).unwrap().unwrap();
    identity.start_time -= 1;
    let Look::Gone { proof } = look(&identity) else { panic!("a recycled pid was taken for the process") };
    assert!(proof.contains("another process"), "{proof}");
    assert!(Pidfd::open(&identity).unwrap().is_none());
    assert_eq!(latido_process::tree::signal(&[identity], latido_process::Signal::KILL), 0);
    assert!(of(child.pid()).unwrap().is_some());
}

#[test]
fn another_boot_is_gone_and_another_machine_or_namespace_is_unknown() {
    let mut boot = own().unwrap();
    boot.boot_id = "00000000-0000-0000-0000-000000000000".into();
    assert!(matches!(look(&boot), Look::Gone { .. }));
    assert!(Pidfd::open(&boot).unwrap().is_none());

    let mut machine = own().unwrap();
    machine.machine_id = "another".into();
    machine.boot_id = "another".into();
    let mut namespace = own().unwrap();
    namespace.pid_namespace += 1;
    for elsewhere in [machine, namespace] {
        assert!(matches!(look(&elsewhere), Look::Unknown { .. }), "{elsewhere:?}");
        assert!(Pidfd::open(&elsewhere).is_err());
    }
}

#[test]
fn pids_that_mean_groups_are_no_processes() {
    for pid in [0, u32::MAX, i32::MAX.cast_unsigned() + 1] {
        assert_eq!(of(pid).unwrap(), None);
    }
}

#[test]
fn a_process_of_another_user_exists() {
    // Process 1 answers a signal of ours with EPERM, or is ours.
    wait_until("process 1 is seen", || matches!(of(1), Ok(Some(_))));
}
