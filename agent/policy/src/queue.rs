//! Who may start, and in which order: by slots, and by the pace of resumes.

use alloc::collections::BTreeMap;

use crate::pacing::Pace;
use crate::slots::Slots;
use crate::{Moment, Reason, SlotSet, SubjectId};

/// A job that wants to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) subject: SubjectId,
    pub(crate) slots: SlotSet,
    /// nobody ordered it by hand, so it keeps the pace
    pub(crate) is_paced: bool,
}

impl Request {
    /// Whether both wait for the same.
    fn meets(&self, other: &Self) -> bool {
        self.slots.shares(&other.slots) || self.is_paced && other.is_paced
    }
}

/// All that waits to start, in the order in which it came.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) slots: Slots,
    pub(crate) pace: Pace,
    waiting: BTreeMap<u64, Request>,
    tickets: BTreeMap<SubjectId, u64>,
    next_ticket: u64,
}

impl Queue {
    /// Lets a job start, or puts it at the end and answers what it waits for. Whoever waits keeps its place.
    pub(crate) fn enter(&mut self, request: Request, now: Moment) -> Result<(), Reason> {
        let place = self.tickets.get(&request.subject).copied().unwrap_or(self.next_ticket);
        if self.is_free(&request, place, now) {
            self.start(request, now);
            return Ok(());
        }
        let awaits = self.awaits(&request, place);
        if place == self.next_ticket {
            self.next_ticket += 1;
            self.tickets.insert(request.subject, place);
        }
        self.waiting.insert(place, request);
        Err(awaits)
    }

    /// Answers the first in line that may start: it is let in when it enters again. To be asked until nobody may.
    pub(crate) fn first_free(&self, now: Moment) -> Option<SubjectId> {
        let is_free = |(place, request): &(&u64, &Request)| self.is_free(request, **place, now);
        self.waiting.iter().find(is_free).map(|(_, request)| request.subject)
    }

    /// Takes a job out that does not want to start any more.
    pub(crate) fn leave(&mut self, subject: SubjectId) {
        if let Some(ticket) = self.tickets.remove(&subject) {
            self.waiting.remove(&ticket);
        }
    }

    /// When somebody may start by the passing of time alone.
    pub(crate) fn poll_timeout(&self, now: Moment) -> Option<Moment> {
        let ready_at = self.pace.ready_at();
        let is_awaited = ready_at > now && self.waiting.values().any(|request| request.is_paced);
        is_awaited.then_some(ready_at)
    }

    /// A job's place in line, counted from 1 among those that wait for the same, and when its turn comes if it waits for
    /// the pace alone.
    pub(crate) fn place(&self, subject: SubjectId, now: Moment) -> Option<(u32, Option<Moment>)> {
        let ticket = self.tickets.get(&subject)?;
        let request = self.waiting.get(ticket)?;
        let ahead = self.waiting.range(..ticket).filter(|(_, ahead)| ahead.meets(request)).count();
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        let turn = (self.awaits(request, *ticket) == Reason::PaceAwaited).then(|| self.pace.turn_at(ahead, now));
        Some((ahead.saturating_add(1), turn))
    }

    /// Whether it may start from this place in line.
    fn is_free(&self, request: &Request, place: u64, now: Moment) -> bool {
        self.awaits(request, place) == Reason::PaceAwaited && (!request.is_paced || self.pace.ready_at() <= now)
    }

    /// What it waits for at this place in line: nobody passes another one that waits for the same slot.
    fn awaits(&self, request: &Request, place: u64) -> Reason {
        let slot_is_awaited = self.waiting.range(..place).any(|(_, ahead)| ahead.slots.shares(&request.slots));
        let has_room = self.slots.have_room(&request.slots);
        match (slot_is_awaited || !has_room, self.slots.are_known) {
            (true, true) => Reason::SlotAwaited,
            (true, false) => Reason::RecoveryAwaited,
            (false, true | false) => Reason::PaceAwaited,
        }
    }

    fn start(&mut self, request: Request, now: Moment) {
        self.leave(request.subject);
        self.slots.hold(request.subject, request.slots);
        if request.is_paced {
            self.pace.start(now);
        }
    }
}
