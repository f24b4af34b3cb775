//! The loop: one `poll` over everything that can happen, then one pass over what did.

use std::os::fd::AsFd;
use std::time::Duration;

use latido_process::cgroup::{self, OutOfMemory};
use latido_process::lock::Lock;
use latido_process::run::{self, Ending};
use latido_process::setup::User;
use latido_process::signals::Signals;
use latido_process::tree::Tree;
use latido_process::{Pidfd, Signal};
use latido_protocol::attempt::{Advice, Answer, Beat, Request, StopReason};
use latido_protocol::disk;
use latido_protocol::files::{End, Start, Wanted};
use latido_protocol::layout::{AttemptDir, JobDir};
use latido_protocol::{Limit, Unrecorded, chain};
use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;

use crate::beat::Book;
use crate::clock::{Clock, Now};
use crate::control::{Control, Said};
use crate::ending::{self, Facts};
use crate::hook::{Hook, Plan};
use crate::notify::NotifySocket;
use crate::output::{self, Drained, Output};
use crate::sockets;
use crate::stop::{self, Cleared, Order, Sequence};

/// After the job's end its pipe is read until no byte has come for this long, if somebody holds it open.
const QUIET_FOR: Duration = Duration::from_millis(200);

/// And for this long at most, however much comes: the ending is worth more than the output of a stranger.
const DRAIN_FOR: Duration = Duration::from_secs(2);

/// Between two tries to record the ending on a disk that is full or away.
const RECORD_EVERY: Duration = Duration::from_secs(1);

/// The longest sleep. Every pass is a tick of the clock that finds gaps.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// What a supervisor is made of.
pub(crate) struct Parts {
    pub(crate) attempt: AttemptDir,
    pub(crate) job_dir: JobDir,
    pub(crate) start: Start,
    pub(crate) grace: Duration,
    /// the grace of what the job leaves running
    pub(crate) linger: Duration,
    pub(crate) run_for: Limit,
    /// held by keeping it
    pub(crate) lock: Lock,
    pub(crate) signals: Signals,
    pub(crate) token: String,
    /// whom the job runs as, where it is somebody else
    pub(crate) user: Option<User>,
    pub(crate) control: Control,
    pub(crate) notify: NotifySocket,
    pub(crate) clock: Clock,
    pub(crate) book: Book,
    pub(crate) output: Output,
    pub(crate) child: Pidfd,
    /// what is run after the ending
    pub(crate) plan: Option<Box<Plan>>,
}

/// Where the attempt is.
enum Phase {
    Running,
    /// The first process has ended: its pipe is drained, what it left is ended.
    Ending {
        how: Ending,
        drain: Drain,
    },
    /// The record could not be written yet.
    Recording {
        end: Box<End>,
        try_at: Duration,
    },
    /// The ending is recorded, and what is to be run after it runs.
    Following(Box<Hook>),
    Done,
}

/// How long the pipe is still read.
struct Drain {
    closed: bool,
    quiet_at: Duration,
    until: Duration,
}

impl Drain {
    fn is_over(&self, now: Duration) -> bool {
        self.closed || now >= self.quiet_at.min(self.until)
    }
}

/// The supervisor of one attempt.
pub(crate) struct Supervisor {
    parts: Parts,
    phase: Phase,
    /// who ordered the end, before the first process had ended
    order: Option<Order>,
    sequence: Option<Sequence>,
    run_until: Option<Duration>,
}

/// What a `poll` found.
#[derive(Default)]
struct Ready {
    signals: bool,
    child: bool,
    output: bool,
    notify: bool,
    listener: bool,
    /// indexes into the clients, the newest first, so that an index stays true while others are dropped
    clients: Vec<usize>,
}

impl Supervisor {
    pub(crate) fn new(parts: Parts) -> Self {
        let now = parts.clock.now();
        let run_until = parts.run_for.duration().map(|limit| now.listening.saturating_add(limit));
        Self { parts, phase: Phase::Running, order: None, sequence: None, run_until }
    }

    /// The attempt, where there was one before it.
    pub(crate) fn resumed(&self) -> Option<&AttemptDir> {
        (self.parts.start.attempt > 1).then_some(&self.parts.attempt)
    }

    /// Runs until the ending is recorded.
    pub(crate) fn run(mut self) {
        while !matches!(self.phase, Phase::Done) {
            let rests = self.parts.output.take_rest() && matches!(self.phase, Phase::Running);
            let due = self.poll_timeout();
            let sleep = if rests { due.min(output::REST) } else { due };
            let ready = self.wait(sleep, rests);
            let now = self.parts.clock.pass(sleep);
            self.handle_ready(&ready, now);
            self.handle_timeout(now);
            self.parts.control.flush();
        }
    }

    /// How long nothing is due.
    fn poll_timeout(&self) -> Duration {
        let now = self.parts.clock.now();
        let mut at = vec![self.parts.book.write_at()];
        at.extend(self.parts.control.push_at(self.parts.book.revision()));
        let is_following = matches!(self.phase, Phase::Following(_));
        at.extend(self.sequence.as_ref().filter(|_| !is_following).map(Sequence::poll_timeout));
        // On the listening time line, seen from here: a gap only makes this pass an early one.
        let until = self.run_until.filter(|_| matches!(self.phase, Phase::Running) && self.order.is_none());
        at.extend(until.map(|until| now.monotonic + until.saturating_sub(now.listening).min(SLEEP_MAX)));
        match &self.phase {
            Phase::Running | Phase::Done => {}
            Phase::Ending { drain, .. } => at.extend((!drain.closed).then(|| drain.quiet_at.min(drain.until))),
            Phase::Recording { try_at, .. } => at.push(*try_at),
            Phase::Following(hook) => at.extend(hook.poll_timeout()),
        }
        let next = at.into_iter().min().unwrap_or(now.monotonic);
        next.saturating_sub(now.monotonic).min(SLEEP_MAX)
    }

    /// Waits for what is to be heard; for output but where it rests.
    fn wait(&self, sleep: Duration, output_rests: bool) -> Ready {
        /// Entries before the clients: signals, notify, listener.
        const FIXED: usize = 3;

        let parts = &self.parts;
        let (child, pipe) = match &self.phase {
            Phase::Running => (Some(&parts.child), parts.output.pipe().filter(|_| !output_rests)),
            // An end is told once; after that the descriptor would be ready for ever.
            Phase::Ending { .. } | Phase::Recording { .. } | Phase::Done => (None, parts.output.pipe()),
            Phase::Following(hook) => (Some(hook.child()), hook.pipe()),
        };
        let mut fds = vec![
            PollFd::new(&parts.signals, PollFlags::IN),
            PollFd::new(&parts.notify, PollFlags::IN),
            PollFd::from_borrowed_fd(parts.control.listener(), PollFlags::IN),
        ];
        for client in parts.control.clients() {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, client.is_heard());
            events.set(PollFlags::OUT, client.has_unsent());
            fds.push(PollFd::from_borrowed_fd(client.as_fd(), events));
        }
        fds.extend(pipe.map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
        fds.extend(child.map(|child| PollFd::new(child, PollFlags::IN)));
        let timeout = Timespec {
            tv_sec: i64::try_from(sleep.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: sleep.subsec_nanos().into(),
        };
        // An error (EINTR, ENOMEM) is an early pass in which nothing is ready.
        if rustix::event::poll(&mut fds, Some(&timeout)).is_err() {
            return Ready::default();
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let count = parts.control.clients().len();
        Ready {
            signals: is_ready(&fds[0]),
            notify: is_ready(&fds[1]),
            listener: is_ready(&fds[2]),
            clients: (0..count).rev().filter(|index| is_ready(&fds[FIXED + index])).collect(),
            output: pipe.is_some() && fds.get(FIXED + count).is_some_and(is_ready),
            child: child.is_some() && fds.last().is_some_and(is_ready),
        }
    }

    fn handle_ready(&mut self, ready: &Ready, now: Now) {
        // Beats first: they are heard before anything is judged or pushed.
        if ready.notify {
            self.parts.notify.drain(&mut self.parts.book, now);
        }
        for index in &ready.clients {
            for said in self.parts.control.read(*index, now.monotonic) {
                self.handle_said(*index, said, now);
            }
        }
        if ready.listener {
            self.parts.control.accept(now.monotonic);
        }
        if ready.output {
            self.drain_output(now);
        }
        if ready.signals {
            self.handle_signals(now);
        }
        if ready.child {
            self.handle_child(now);
        }
    }

    /// What was waited for has ended: the job's first process, or what was run after it.
    fn handle_child(&mut self, now: Now) {
        match &mut self.phase {
            Phase::Running => {
                if let Some(how) = run::ending(&self.parts.child) {
                    self.handle_end(how, now);
                }
            }
            Phase::Following(hook) => {
                if hook.finish(&self.parts.attempt) {
                    self.phase = Phase::Done;
                    run::collect_orphans(None);
                }
            }
            Phase::Ending { .. } | Phase::Recording { .. } | Phase::Done => {}
        }
    }

    fn handle_said(&mut self, index: usize, said: Said, now: Now) {
        let answer = match said {
            Said::Rubbish(message) => Answer::Error { message },
            Said::Request(Request::Beat(beat)) => self.handle_beat(beat, now),
            Said::Request(Request::ChildMoved { token, child, step }) => {
                match self.refuse(token.as_deref(), None, None) {
                    Some(message) => Answer::Error { message },
                    None => {
                        self.parts.book.handle_child(&child, step, now);
                        Answer::Advice { advice: self.advice() }
                    }
                }
            }
            Said::Request(Request::Fence { token, epoch }) => self.handle_fence(token.as_deref(), epoch),
            Said::Request(Request::Stop { ground: Some(ground), .. }) if !self.parts.book.holds(ground, now) => {
                Answer::Error { message: "end it for want of beats or progress: there are some".to_owned() }
            }
            Said::Request(Request::Stop { grace, force, ground: _, because, by }) => {
                let grace = if force { Duration::ZERO } else { grace.map_or(self.parts.grace, |grace| grace.0) };
                self.stop(Order::Request(because, by), grace, now);
                Answer::Stopping
            }
            Said::Request(Request::Status) => self.status(now),
            Said::Request(Request::Watch) => {
                self.parts.control.watch(index);
                return;
            }
        };
        self.parts.control.answer(index, &answer);
    }

    fn handle_beat(&mut self, beat: Beat, now: Now) -> Answer {
        let (attempt, epoch) = (self.parts.start.attempt, self.parts.start.epoch);
        if beat.epoch.is_some_and(|of| of < epoch) || beat.attempt.is_some_and(|of| of < attempt) {
            return Answer::Advice { advice: Advice::Superseded };
        }
        if let Some(message) = self.refuse(beat.token.as_deref(), beat.epoch, beat.attempt) {
            return Answer::Error { message };
        }
        match self.parts.book.handle_beat(beat, now) {
            Ok(()) => Answer::Advice { advice: self.advice() },
            Err(message) => Answer::Error { message },
        }
    }

    fn handle_fence(&self, token: Option<&str>, epoch: u64) -> Answer {
        if epoch < self.parts.start.epoch {
            return Answer::Advice { advice: Advice::Superseded };
        }
        if let Some(message) = self.refuse(token, Some(epoch), None) {
            return Answer::Error { message };
        }
        match disk::read::<Wanted>(&self.parts.job_dir.wanted()) {
            Ok(Some(wanted)) if wanted.epoch > self.parts.start.epoch => Answer::Advice { advice: Advice::Superseded },
            // Without the file nobody has taken a higher epoch; with a damaged one the held lock still says so.
            Ok(_) | Err(_) => Answer::Advice { advice: self.advice() },
        }
    }

    /// Why a sender is not of this attempt.
    fn refuse(&self, token: Option<&str>, epoch: Option<u64>, attempt: Option<u32>) -> Option<String> {
        let start = &self.parts.start;
        if token.is_none() {
            Some("act for this attempt: the request carries no token (LATIDO_TOKEN)".to_owned())
        } else if token.is_some_and(|token| token != self.parts.token) {
            Some("act for this attempt: the token is another's".to_owned())
        } else if epoch.is_some_and(|epoch| epoch != start.epoch) || attempt.is_some_and(|of| of != start.attempt) {
            Some(format!("act for this attempt: it is attempt {}, epoch {}", start.attempt, start.epoch))
        } else {
            None
        }
    }

    fn advice(&self) -> Advice {
        match &self.order {
            None => Advice::GoOn,
            Some(Order::Request(StopReason::Superseded, _)) => Advice::Superseded,
            Some(Order::Request(
                StopReason::Commanded | StopReason::Stale | StopReason::Hung | StopReason::Limit,
                _,
            )) => Advice::Stop,
            Some(Order::RunFor(_) | Order::Outside) => Advice::Stop,
        }
    }

    fn status(&mut self, now: Now) -> Answer {
        let bytes = self.parts.output.bytes();
        Answer::Status { status: Box::new(self.parts.book.status(now, bytes).clone()) }
    }

    /// Begins the stop sequence, or hurries the one that runs.
    fn stop(&mut self, order: Order, grace: Duration, now: Now) {
        match self.phase {
            Phase::Running => {
                self.order = Some(match self.order.take() {
                    Some(first) => stop::stronger(first, order),
                    None => order,
                });
                self.parts.book.mark_stopping();
            }
            // It has ended by itself: only what it left is still to be ended.
            Phase::Ending { .. } => {}
            // What follows the ending has a time limit of its own.
            Phase::Recording { .. } | Phase::Following(_) | Phase::Done => return,
        }
        self.clear(grace, now);
    }

    fn clear(&mut self, grace: Duration, now: Now) {
        if let Some(sequence) = &mut self.sequence {
            sequence.hurry(grace, now.monotonic);
            return;
        }
        let tree = Tree {
            attempt_dir: self.parts.attempt.path().to_owned(),
            process: self.parts.start.process.clone(),
            supervisor: self.parts.start.supervisor.clone(),
            cgroup: self.parts.start.cgroup.clone(),
        };
        let leader = self.parts.child.identity().clone();
        self.sequence = Some(Sequence::begin(tree, leader, grace, now.monotonic));
    }

    fn handle_signals(&mut self, now: Now) {
        while let Some(signal) = self.parts.signals.next() {
            if signal == Signal::TERM {
                self.stop(Order::Outside, self.parts.grace, now);
            } else {
                // The first process stays uncollected until the end: its pid is the group's number.
                let kept = match &self.phase {
                    Phase::Following(hook) => hook.child(),
                    Phase::Running | Phase::Ending { .. } | Phase::Recording { .. } | Phase::Done => &self.parts.child,
                };
                run::collect_orphans(Some(kept.identity().pid));
                if let Some(is_suspended) = run::suspension(&self.parts.child) {
                    self.parts.book.mark_suspended(is_suspended);
                }
                if let Some(sequence) = &mut self.sequence {
                    sequence.handle_child(now.monotonic);
                }
            }
        }
    }

    fn drain_output(&mut self, now: Now) {
        if let Phase::Following(hook) = &mut self.phase {
            hook.drain();
            return;
        }
        let drained = self.parts.output.drain();
        if let Phase::Ending { drain, .. } = &mut self.phase {
            match drained {
                Drained::Some => drain.quiet_at = now.monotonic + QUIET_FOR,
                Drained::Nothing => {}
                Drained::Closed => drain.closed = true,
            }
        }
    }

    /// The first process has ended.
    fn handle_end(&mut self, how: Ending, now: Now) {
        let drain = Drain {
            closed: self.parts.output.pipe().is_none(),
            quiet_at: now.monotonic + QUIET_FOR,
            until: now.monotonic + DRAIN_FOR,
        };
        self.phase = Phase::Ending { how, drain };
        match &mut self.sequence {
            // A stop runs: its own grace holds for the rest as well.
            Some(sequence) => {
                sequence.handle_child(now.monotonic);
                sequence.handle_timeout(now.monotonic);
            }
            None => self.clear(self.parts.linger, now),
        }
        self.drain_output(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        let is_over = self.run_until.is_some_and(|until| now.listening >= until);
        if is_over && matches!(self.phase, Phase::Running) && self.order.is_none() {
            let limit = self.parts.run_for.duration().unwrap_or_default();
            self.stop(Order::RunFor(limit), self.parts.grace, now);
        }
        match (&mut self.phase, &mut self.sequence) {
            (Phase::Following(hook), _) => hook.handle_timeout(now.monotonic),
            (Phase::Running | Phase::Ending { .. } | Phase::Recording { .. }, Some(sequence)) => {
                sequence.handle_timeout(now.monotonic);
            }
            (Phase::Running | Phase::Ending { .. } | Phase::Recording { .. }, None) | (Phase::Done, _) => {}
        }
        self.advance(now);
        let bytes = self.parts.output.bytes();
        if self.parts.book.handle_timeout(now, bytes) {
            self.parts.output.look();
            self.look_for_sockets(now);
        }
        self.parts.notify.release(&mut self.parts.book, now);
        let revision = self.parts.book.revision();
        if self.parts.control.push_at(revision).is_some_and(|at| at <= now.monotonic) {
            let status = self.status(now);
            self.parts.control.push(now.monotonic, revision, &status);
        }
    }

    /// Binds again what was cleared away, under the same name: the job knows no other.
    fn look_for_sockets(&mut self, now: Now) {
        let parts = &mut self.parts;
        let folder = &parts.start.sockets;
        if sockets::are_there(folder, &parts.control, &parts.notify) {
            return;
        }
        // What cannot be made is tried again with the next status.
        if let Ok((control, notify)) = sockets::bind(folder, &parts.token, parts.user.as_ref()) {
            parts.notify.drain(&mut parts.book, now);
            parts.control.listen_at(control);
            parts.notify.hear_at(notify);
        }
    }

    /// Goes from the ending to its record.
    fn advance(&mut self, now: Now) {
        if matches!(self.phase, Phase::Running)
            && let Some(cleared) = self.sequence.as_ref().and_then(|sequence| sequence.result(now.monotonic))
        {
            // Nobody is told that it is over before it is: the lock stays held, so there is no second copy.
            self.parts.book.mark_survivors(cleared.survivors().to_vec());
        }
        if let Phase::Ending { how, drain } = &self.phase {
            let cleared = self.sequence.as_ref().and_then(|sequence| sequence.result(now.monotonic));
            let Some(cleared) = cleared.filter(|_| drain.is_over(now.monotonic)) else { return };
            let end = Box::new(self.compose(*how, cleared, now));
            self.phase = Phase::Recording { end, try_at: now.monotonic };
        }
        if let Phase::Recording { end, try_at } = &mut self.phase
            && now.monotonic >= *try_at
        {
            match ending::record(&self.parts.attempt, &self.parts.start, end) {
                Ok(()) => {
                    if self.parts.plan.is_none() {
                        // Who watches learns of the ending by this, and need not wait for what is still put in order.
                        self.parts.control.hang_up();
                    }
                    ending::clear_away(&self.parts.attempt, &self.parts.start);
                    // For those who look at an ended job; the ending itself has all that matters.
                    let _ = self.parts.book.write_last(now, self.parts.output.bytes());
                    let parts = &self.parts;
                    let hook = parts.plan.as_ref().and_then(|plan| {
                        Hook::begin(plan, &parts.attempt, &parts.start, end, &parts.lock, now.monotonic)
                    });
                    self.phase = hook.map_or(Phase::Done, |hook| Phase::Following(Box::new(hook)));
                }
                // What was to be told stays here, and the lock with it, until the disk takes it.
                Err(error) => {
                    *try_at = now.monotonic + RECORD_EVERY;
                    let outcome = end.outcome.clone();
                    self.parts.book.mark_unrecorded(Unrecorded { outcome, because: chain(&error) });
                }
            }
        }
    }

    fn out_of_memory(&self) -> Option<OutOfMemory> {
        self.parts.start.cgroup.as_ref().map(cgroup::out_of_memory).filter(|found| found.killed_count > 0)
    }

    fn compose(&mut self, how: Ending, cleared: Cleared, now: Now) -> End {
        self.parts.output.finish();
        // The last words: datagrams that were sent before the end are heard.
        self.parts.notify.drain(&mut self.parts.book, now);
        self.parts.book.status(now, self.parts.output.bytes());
        // The group is empty, so its number may go: nothing is signalled after this.
        run::collect_orphans(None);
        let facts = Facts {
            outcome: ending::judge(how, self.order.as_ref(), self.parts.book.errno(), self.out_of_memory()),
            progress: self.parts.book.progress(),
            spent: self.parts.book.spent(),
            stopped_for: self.order.as_ref().and_then(Order::reason),
            cleared,
            lost: self.parts.output.lost(),
            ran_for: Some(self.parts.book.ran(now)),
        };
        debug_assert!(rustix::fs::fstat(self.parts.lock.as_fd()).is_ok(), "the lock is held until the end");
        ending::compose(&self.parts.attempt, &self.parts.start, facts)
    }
}
