//! A policy with one group, a clock that the test moves, and short words for what workers ask.

use core::num::NonZeroU32;

use latido_policy::{
    Action, Advice, BlackoutChange, ClaimList, Epoch, Event, Fingerprint, GroupId, GroupSettings, Moment, Policy,
    RegistryAction, RegistryAnswer, RegistryEvent, ReleasedClaim, Speaker, TargetId, Ticket, Verdict, WorkerId,
    WorkerLease, WorkerReport, WorkerStanding, WorkerView,
};

use crate::harness::seconds;

pub(crate) const GROUP: GroupId = GroupId(1);
pub(crate) const TICKET: Ticket = Ticket(9);

/// A verdict comes with the tick after its moment; this is more than one.
pub(crate) const TICK: core::time::Duration = core::time::Duration::from_millis(10);

pub(crate) fn worker(number: u32) -> WorkerId {
    WorkerId(number)
}

pub(crate) fn target(number: u32) -> TargetId {
    TargetId(number)
}

pub(crate) fn event(number: u64) -> Fingerprint {
    Fingerprint(number)
}

pub(crate) fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

/// A beat every 30 s, dead after three that are missed, 60 s for the first.
pub(crate) fn lease() -> WorkerLease {
    WorkerLease::after_missed(seconds(30), count(3), seconds(60)).unwrap()
}

/// Eight claims in all, two a worker; a target may lose a hundred holders.
pub(crate) fn settings() -> GroupSettings {
    GroupSettings { capacity: Some(count(8)), claims_max: count(2), max_pickups: count(100), lease: lease() }
}

/// A policy and the time.
pub(crate) struct Desk {
    pub(crate) policy: Policy,
    pub(crate) now: Moment,
    /// what the latest actions released
    pub(crate) released: Vec<ReleasedClaim>,
    /// when the agent began and ended to doubt itself
    pub(crate) doubts: Vec<BlackoutChange>,
}

impl Desk {
    /// One group that nobody has opened.
    pub(crate) fn new(settings: GroupSettings) -> Self {
        let (policy, now) = (Policy::new(), Moment::ORIGIN.after(seconds(1000)));
        let mut desk = Self { policy, now, released: Vec::new(), doubts: Vec::new() };
        desk.tell(RegistryEvent::GroupAdded { group: GROUP, settings, instance: Epoch(0) });
        desk
    }

    /// One group with workers 1 to `workers`, which have beaten once.
    pub(crate) fn with_workers(workers: u32) -> Self {
        let mut desk = Self::new(settings());
        for number in 1..=workers {
            desk.register(number);
            desk.beat(number);
        }
        desk
    }

    /// Tells an event and takes out what follows.
    pub(crate) fn tell(&mut self, event: RegistryEvent) -> Vec<RegistryAction> {
        self.policy.handle_event(Event::Registry(event), self.now);
        self.take()
    }

    fn take(&mut self) -> Vec<RegistryAction> {
        let mut taken = Vec::new();
        self.released.clear();
        while let Some(action) = self.policy.poll_action() {
            if let Action::RecordBlackout { change } = action {
                self.doubts.push(change);
                continue;
            }
            // The alert about the agent itself.
            if matches!(action, Action::Alert(_)) {
                continue;
            }
            let Action::Registry(action) = action else { panic!("no job is known: {action:?}") };
            if let Some(claims) = claims(&action) {
                self.released.extend(self.policy.registry().released(claims));
            }
            taken.push(action);
        }
        taken
    }

    /// Lets time pass, and does what is due at its own moment; asks twice each time.
    pub(crate) fn pass(&mut self, length: core::time::Duration) -> Vec<RegistryAction> {
        let end = self.now.after(length);
        let (mut actions, mut released) = (Vec::new(), Vec::new());
        while let Some(next) = self.policy.poll_timeout().filter(|&next| next <= end) {
            self.now = self.now.max(next);
            self.policy.handle_timeout(self.now);
            self.policy.handle_timeout(self.now);
            actions.extend(self.take());
            released.append(&mut self.released);
            assert!(self.policy.poll_timeout().is_none_or(|next| next > self.now), "nothing stays due");
        }
        self.now = end;
        self.policy.handle_timeout(end);
        actions.extend(self.take());
        released.append(&mut self.released);
        self.released = released;
        actions
    }

    /// What the last action of `event` answers.
    pub(crate) fn ask(&mut self, event: RegistryEvent) -> RegistryAnswer {
        match self.tell(event).last() {
            Some(&RegistryAction::Answer { ticket: TICKET, answer }) => answer,
            other => panic!("no answer: {other:?}"),
        }
    }

    pub(crate) fn register(&mut self, number: u32) -> Epoch {
        let answer = self.ask(RegistryEvent::WorkerRegistered {
            ticket: TICKET,
            worker: worker(number),
            group: GROUP,
            instance: None,
            lease: None,
        });
        let RegistryAnswer::Registered { epoch, .. } = answer else { panic!("not registered: {answer:?}") };
        epoch
    }

    pub(crate) fn beat(&mut self, number: u32) -> Advice {
        self.report(number, None, WorkerReport::default())
    }

    pub(crate) fn beat_as(&mut self, number: u32, epoch: Epoch) -> Advice {
        self.report(number, Some(epoch), WorkerReport::default())
    }

    pub(crate) fn report(&mut self, number: u32, epoch: Option<Epoch>, report: WorkerReport) -> Advice {
        let from = Speaker { worker: worker(number), epoch };
        let answer = self.ask(RegistryEvent::BeatHeard { ticket: TICKET, from, report });
        let RegistryAnswer::Advised(advice) = answer else { panic!("no advice: {answer:?}") };
        advice
    }

    pub(crate) fn claim(&mut self, number: u32, of: u32, because: u64) -> RegistryAnswer {
        let from = Speaker { worker: worker(number), epoch: None };
        self.ask(RegistryEvent::ClaimAsked { ticket: TICKET, from, target: target(of), event: event(because) })
    }

    /// The epoch of a claim that is granted.
    pub(crate) fn claimed(&mut self, number: u32, of: u32) -> Epoch {
        let answer = self.claim(number, of, 1);
        let RegistryAnswer::Claimed { holder, epoch } = answer else { panic!("not claimed: {answer:?}") };
        assert_eq!(holder, worker(number));
        epoch
    }

    pub(crate) fn assign(&mut self, of: u32) -> RegistryAnswer {
        self.ask(RegistryEvent::AssignAsked { ticket: TICKET, group: GROUP, target: target(of) })
    }

    pub(crate) fn release(&mut self, of: u32, epoch: Epoch) -> RegistryAnswer {
        self.ask(RegistryEvent::ReleaseAsked { ticket: TICKET, target: target(of), epoch })
    }

    pub(crate) fn revive_target(&mut self, of: u32) -> RegistryAnswer {
        self.ask(RegistryEvent::ReviveAsked { ticket: TICKET, target: target(of) })
    }

    pub(crate) fn drain(&mut self, number: u32) -> RegistryAnswer {
        self.ask(RegistryEvent::DrainAsked { ticket: TICKET, worker: worker(number) })
    }

    pub(crate) fn leave(&mut self, number: u32) -> RegistryAnswer {
        let from = Speaker { worker: worker(number), epoch: None };
        self.ask(RegistryEvent::WorkerLeft { ticket: TICKET, from })
    }

    /// Opens the group and takes its lock.
    pub(crate) fn open(&mut self) -> (Epoch, Vec<RegistryAction>) {
        let actions = self.tell(RegistryEvent::GroupLockTaken { ticket: TICKET, group: GROUP });
        match actions.last() {
            Some(&RegistryAction::Answer { answer: RegistryAnswer::Opened { instance }, .. }) => (instance, actions),
            other => panic!("not opened: {other:?}"),
        }
    }

    pub(crate) fn view(&self, number: u32) -> WorkerView {
        self.policy.registry().worker(worker(number)).unwrap()
    }

    pub(crate) fn verdict(&self, number: u32) -> Verdict {
        self.view(number).verdict
    }

    pub(crate) fn standing(&self, number: u32) -> WorkerStanding {
        self.view(number).standing
    }
}

fn claims(action: &RegistryAction) -> Option<ClaimList> {
    match *action {
        RegistryAction::ReapWorker { claims, .. }
        | RegistryAction::RecordLeft { claims, .. }
        | RegistryAction::FenceWorker { claims, .. }
        | RegistryAction::RemoveWorker { claims, .. } => Some(claims),
        RegistryAction::TakeGroupLock { .. }
        | RegistryAction::RecordInstance { .. }
        | RegistryAction::RecordWorker { .. }
        | RegistryAction::RecordVerdict { .. }
        | RegistryAction::RecordClaim { .. }
        | RegistryAction::RemoveTarget { .. }
        | RegistryAction::ReportSweep(_)
        | RegistryAction::Answer { .. } => None,
    }
}

/// The workers that were declared dead, in order.
pub(crate) fn reaped(actions: &[RegistryAction]) -> Vec<WorkerId> {
    let reaps = actions.iter().filter_map(|action| {
        let RegistryAction::ReapWorker { worker, .. } = action else { return None };
        Some(*worker)
    });
    reaps.collect()
}
