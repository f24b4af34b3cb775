//! The stop sequence, and the clearing away of what an ended job left: terminate, grace, kill, scan.
//!
//! A table of deadlines and no waiting: the loop calls [`Sequence::handle_timeout`] when one is due.

use std::time::Duration;

use latido_process::identity::{self, Look};
use latido_process::told::Told;
use latido_process::tree::{self, Living, Tree};
use latido_process::{Signal, run, signals};
use latido_protocol::attempt::StopReason;
use latido_protocol::files::Identity;

/// Between two scans: a program that forks in its last moments is found by the next one. Scans cost a look at every
/// process of the machine, and run only while something is being ended.
const SCAN_EVERY: Duration = Duration::from_millis(50);

/// After SIGKILL a process ends as soon as the kernel lets it; one that waits in the kernel for a dead disk does not. Then
/// there are survivors, and the ending names them.
const KILL_FOR: Duration = Duration::from_secs(5);

/// The longest grace that is kept: beyond it additions could overflow, and nobody means it.
const GRACE_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Who ordered the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// a request, with its reason and who asks
    Request(StopReason, String),
    /// `run_for` is over
    RunFor(Duration),
    /// SIGTERM to the supervisor itself
    Outside,
}

impl Order {
    /// Why latido ended it, for the record; `None` where somebody else did.
    pub(crate) fn reason(&self) -> Option<StopReason> {
        match self {
            Self::Request(reason, _) => Some(*reason),
            Self::RunFor(_) => Some(StopReason::Limit),
            Self::Outside => None,
        }
    }

    /// A commanded stop outranks every other reason.
    fn outranks(&self, other: &Self) -> bool {
        let commanded = |order: &Self| matches!(order, Self::Request(StopReason::Commanded, _));
        commanded(self) && !commanded(other)
    }
}

/// What is known of an attempt's processes at its end, for the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cleared {
    /// Its first process was collected, and no other child has come to the supervisor, as orphans do.
    Childless,
    /// `/proc` was looked through, and this was left; mostly nothing.
    Scanned(Vec<Identity>),
    /// Every look at `/proc` failed: SIGKILL was sent to its group, and what became of it is not known.
    Unseen,
}

impl Cleared {
    /// Those that are known to be left.
    pub(crate) fn survivors(&self) -> &[Identity] {
        match self {
            Self::Scanned(left) => left,
            Self::Childless | Self::Unseen => &[],
        }
    }
}

/// What the last look saw.
enum Looked {
    Childless,
    Scanned(Living),
}

/// One sequence that has begun.
pub(crate) struct Sequence {
    tree: Tree,
    /// the job's first process, which has not been collected: its group cannot be another one
    leader: Identity,
    told: Told,
    kill_at: Duration,
    next_scan: Duration,
    killing: bool,
    last: Option<Looked>,
}

impl Sequence {
    /// Begins: SIGTERM to all, or SIGKILL at once without a grace.
    pub(crate) fn begin(tree: Tree, leader: Identity, grace: Duration, now: Duration) -> Self {
        let kill_at = now.saturating_add(grace.min(GRACE_MAX));
        let mut sequence =
            Self { tree, leader, told: Told::from_now(), kill_at, next_scan: now, killing: false, last: None };
        if !grace.is_zero() {
            sequence.signal_group(Signal::TERM);
            // A stopped process hears nothing until it is continued.
            sequence.signal_group(Signal::CONT);
        }
        sequence.handle_timeout(now);
        sequence
    }

    /// Brings the kill forward; never puts it off.
    pub(crate) fn hurry(&mut self, grace: Duration, now: Duration) {
        let kill_at = now.saturating_add(grace.min(GRACE_MAX));
        if kill_at < self.kill_at && !self.killing {
            self.kill_at = kill_at;
            self.next_scan = self.next_scan.min(kill_at);
            self.handle_timeout(now);
        }
    }

    /// When it wants to be called next.
    pub(crate) fn poll_timeout(&self) -> Duration {
        if self.killing { self.next_scan } else { self.next_scan.min(self.kill_at) }
    }

    /// A child has ended: the next scan may find that nothing is left.
    pub(crate) fn handle_child(&mut self, now: Duration) {
        self.next_scan = now;
    }

    /// Signals what is new, kills when the grace is over, and looks what is left.
    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        if now < self.poll_timeout() {
            return;
        }
        self.next_scan = now.saturating_add(SCAN_EVERY);
        if !self.killing && now >= self.kill_at {
            self.killing = true;
            self.kill_at = now;
        }
        if self.killing {
            self.signal_group(Signal::KILL);
        }
        // Orphans come to this process, so without another child there is nothing that could have been missed.
        if self.leader_has_ended() && !run::has_other_children(self.leader.pid) {
            self.last = Some(Looked::Childless);
            return;
        }
        // Without a look at /proc nobody is told, nothing is proven, and the bound of the sequence holds all the same.
        let Ok(living) = tree::find(&self.tree) else { return };
        if self.killing {
            tree::kill(&self.tree, &living);
        } else {
            self.tell_new(&living);
        }
        self.last = Some(Looked::Scanned(living));
    }

    /// What is left, once it is known that nothing is, or the kernel does not end the rest, or no look tells.
    pub(crate) fn result(&self, now: Duration) -> Option<Cleared> {
        let is_over = self.killing && now >= self.kill_at.saturating_add(KILL_FOR);
        match &self.last {
            Some(Looked::Childless) => Some(Cleared::Childless),
            Some(Looked::Scanned(living)) if living.processes.is_empty() => {
                Some(Cleared::Scanned(living.doubtful.clone()))
            }
            Some(Looked::Scanned(living)) if is_over => {
                Some(Cleared::Scanned(living.processes.iter().chain(&living.doubtful).cloned().collect()))
            }
            None if is_over => Some(Cleared::Unseen),
            Some(Looked::Scanned(_)) | None => None,
        }
    }

    /// Terminates those that the signal to the group did not reach: outside the group, or forked after it.
    fn tell_new(&mut self, living: &Living) {
        if self.last.is_none() {
            let group = self.leader.pid;
            self.told.note(living.processes.iter().filter(|process| is_in_group(process, group)));
        }
        self.told.tell(&living.processes);
    }

    fn leader_has_ended(&self) -> bool {
        matches!(identity::look(&self.leader), Look::Gone { .. })
    }

    fn signal_group(&self, signal: Signal) {
        let group = i32::try_from(self.leader.pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            // ESRCH: nobody is left in it. EPERM: all that are left are another user's, and are named as survivors.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

fn is_in_group(process: &Identity, group: u32) -> bool {
    i32::try_from(process.pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .and_then(|pid| rustix::process::getpgid(Some(pid)).ok())
        .is_some_and(|its| its.as_raw_nonzero().get().cast_unsigned() == group)
}

/// Processes in words, with their state in `/proc`, for a proof.
pub(crate) fn list(processes: &[Identity]) -> String {
    let word = |process: &Identity| match identity::look(process) {
        Look::Alive { state } => format!("{} (state {state})", process.pid),
        Look::Gone { .. } | Look::Unknown { .. } => process.pid.to_string(),
    };
    processes.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// The order that holds when another one comes.
pub(crate) fn stronger(first: Order, second: Order) -> Order {
    if second.outranks(&first) { second } else { first }
}

/// A signal in words.
pub(crate) fn signal_name(number: i32) -> String {
    signals::name(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn killed(last: Option<Looked>) -> Sequence {
        let own = identity::own().unwrap();
        let tree = Tree { attempt_dir: "/nowhere".into(), process: Some(own.clone()), supervisor: None, cgroup: None };
        Sequence { tree, leader: own, told: Told::from_now(), kill_at: SECOND, next_scan: SECOND, killing: true, last }
    }

    #[test]
    fn an_end_without_any_look_is_not_called_an_empty_scan() {
        let over = SECOND + KILL_FOR;
        assert_eq!(killed(None).result(SECOND), None);
        assert_eq!(killed(None).result(over), Some(Cleared::Unseen));
        assert_eq!(killed(Some(Looked::Childless)).result(SECOND), Some(Cleared::Childless));
        let nothing = Looked::Scanned(Living::default());
        assert_eq!(killed(Some(nothing)).result(SECOND), Some(Cleared::Scanned(Vec::new())));
        let own = identity::own().unwrap();
        let living = || Some(Looked::Scanned(Living { processes: vec![own.clone()], ..Living::default() }));
        assert_eq!(killed(living()).result(SECOND), None);
        assert_eq!(killed(living()).result(over), Some(Cleared::Scanned(vec![own.clone()])));
    }
}
