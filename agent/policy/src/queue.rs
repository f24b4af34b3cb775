//! Who may start, and in which order: by slots, and by the pace of resumes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::line::Line;
use crate::pacing::Pace;
use crate::slots::Slots;
use crate::{Limit, Moment, Reason, SlotId, SlotSet, SubjectId};

/// A job that wants to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) subject: SubjectId,
    pub(crate) slots: SlotSet,
    /// nobody ordered it by hand, so it keeps the pace
    pub(crate) is_paced: bool,
}

/// All that waits to start, in the order in which it came.
///
/// An event looks at whom it may let in, the first in line for a slot of whoever came or went, and at nobody behind.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) pace: Pace,
    slots: Slots,
    waiting: BTreeMap<u64, Request>,
    tickets: BTreeMap<SubjectId, u64>,
    next_ticket: u64,
    of_slot: BTreeMap<SlotId, SlotLine>,
    paced: Line,
    /// those that no slot keeps waiting
    ready: BTreeSet<u64>,
    /// those that no slot keeps waiting, and the pace may
    ready_paced: BTreeSet<u64>,
    #[cfg(test)]
    looked_at: core::cell::Cell<u64>,
}

/// Who waits for one slot.
#[derive(Debug, Default)]
struct SlotLine {
    all: Line,
    unpaced: Line,
}

impl Queue {
    /// Lets a job start, or puts it at the end and answers what it waits for. Whoever waits keeps its place.
    pub(crate) fn enter(&mut self, request: Request, now: Moment) -> Result<(), Reason> {
        let place = self.tickets.get(&request.subject).copied().unwrap_or(self.next_ticket);
        let awaits = self.awaits(&request, place);
        if awaits == Reason::PaceAwaited && (!request.is_paced || self.pace.ready_at() <= now) {
            self.start(request, now);
            return Ok(());
        }
        self.leave(request.subject);
        self.next_ticket = self.next_ticket.max(place + 1);
        self.wait(request, place);
        Err(awaits)
    }

    /// Answers the first in line that may start: it is let in when it enters again. To be asked until nobody may.
    pub(crate) fn first_free(&self, now: Moment) -> Option<SubjectId> {
        let paced = self.ready_paced.first().filter(|_| self.pace.ready_at() <= now);
        let first = self.ready.first().into_iter().chain(paced).min()?;
        self.waiting.get(first).map(|request| request.subject)
    }

    /// Takes a job out that does not want to start any more.
    pub(crate) fn leave(&mut self, subject: SubjectId) {
        let Some(ticket) = self.tickets.remove(&subject) else { return };
        let Some(request) = self.waiting.remove(&ticket) else { return };
        self.ready.remove(&ticket);
        self.ready_paced.remove(&ticket);
        self.paced.leave(ticket);
        for slot in request.slots.iter() {
            if let Some(line) = self.of_slot.get_mut(&slot) {
                line.all.leave(ticket);
                line.unpaced.leave(ticket);
            }
        }
        self.look_at_first(&request.slots);
    }

    /// Gives a subject its slots, whether there is room or not: what runs holds them.
    pub(crate) fn hold(&mut self, subject: SubjectId, slots: SlotSet) {
        let before = self.slots.held_by(subject);
        if before != slots {
            self.slots.hold(subject, slots);
            self.look_at_first(&before);
            self.look_at_first(&slots);
        }
    }

    /// Takes a subject's slots back.
    pub(crate) fn release(&mut self, subject: SubjectId) {
        self.hold(subject, SlotSet::default());
    }

    /// Changes how many may run at once. What runs above that runs on.
    pub(crate) fn limit(&mut self, slot: SlotId, running_max: Limit<u32>) {
        self.slots.set(slot, running_max);
        self.look_at_first(&SlotSet::of(&[slot]));
    }

    /// Says whether everybody who may hold a slot has been told of; until then no limited one has room.
    pub(crate) fn know_holders(&mut self, are_known: bool) {
        self.slots.are_known = are_known;
        let firsts: Vec<u64> = self.of_slot.values().filter_map(|line| line.all.first()).collect();
        firsts.into_iter().for_each(|ticket| self.look_at(ticket));
    }

    /// When somebody may start by the passing of time alone.
    pub(crate) fn poll_timeout(&self, now: Moment) -> Option<Moment> {
        let ready_at = self.pace.ready_at();
        (ready_at > now && !self.paced.is_empty()).then_some(ready_at)
    }

    /// A job's place in line, counted from 1 among those that wait for the same, and when its turn comes if it waits for
    /// the pace alone.
    pub(crate) fn place(&self, subject: SubjectId, now: Moment) -> Option<(u32, Option<Moment>)> {
        let ticket = *self.tickets.get(&subject)?;
        let request = self.waiting.get(&ticket)?;
        let ahead = u32::try_from(self.ahead(request, ticket)).unwrap_or(u32::MAX);
        let turn = (self.awaits(request, ticket) == Reason::PaceAwaited).then(|| self.pace.turn_at(ahead, now));
        Some((ahead.saturating_add(1), turn))
    }

    /// How many wait for the same before this place: for a slot of it, or as it does for the pace.
    fn ahead(&self, request: &Request, place: u64) -> usize {
        let line = |slot| self.of_slot.get(&slot).map(|line| if request.is_paced { &line.unpaced } else { &line.all });
        let lines: Vec<&Line> = request.slots.iter().filter_map(line).collect();
        let of_slots = match lines.as_slice() {
            [line] => line.before(place).len(),
            // Whoever waits for several of them counts once.
            lines => lines.iter().flat_map(|line| line.before(place)).collect::<BTreeSet<u64>>().len(),
        };
        of_slots + if request.is_paced { self.paced.before(place).len() } else { 0 }
    }

    /// What it waits for at this place in line: nobody passes another one that waits for the same slot.
    fn awaits(&self, request: &Request, place: u64) -> Reason {
        #[cfg(test)]
        self.looked_at.set(self.looked_at.get() + 1);
        let first = |slot| self.of_slot.get(&slot).and_then(|line| line.all.first());
        let slot_is_awaited = request.slots.iter().any(|slot| first(slot).is_some_and(|first| first < place));
        let has_room = self.slots.have_room(&request.slots);
        // Whose launch was refused has its slots, and passes who waits for them.
        let has_them = request.slots != SlotSet::default() && self.slots.held_by(request.subject) == request.slots;
        match (!has_them && (slot_is_awaited || !has_room), self.slots.are_known) {
            (true, true) => Reason::SlotAwaited,
            (true, false) => Reason::RecoveryAwaited,
            (false, true | false) => Reason::PaceAwaited,
        }
    }

    fn wait(&mut self, request: Request, ticket: u64) {
        let overtaken: Vec<u64> =
            request.slots.iter().filter_map(|slot| self.of_slot.get(&slot)?.all.first()).collect();
        self.tickets.insert(request.subject, ticket);
        self.waiting.insert(ticket, request);
        for slot in request.slots.iter() {
            let line = self.of_slot.entry(slot).or_default();
            line.all.enter(ticket);
            if !request.is_paced {
                line.unpaced.enter(ticket);
            }
        }
        if request.is_paced {
            self.paced.enter(ticket);
        }
        self.look_at(ticket);
        overtaken.into_iter().for_each(|ticket| self.look_at(ticket));
    }

    fn look_at_first(&mut self, slots: &SlotSet) {
        for slot in slots.iter() {
            let first = self.of_slot.get(&slot).and_then(|line| line.all.first());
            first.into_iter().for_each(|ticket| self.look_at(ticket));
        }
    }

    /// Brings what is known of who may start into line with one that waits.
    fn look_at(&mut self, ticket: u64) {
        let Some(request) = self.waiting.get(&ticket) else { return };
        let is_ready = self.awaits(request, ticket) == Reason::PaceAwaited;
        let ready = if request.is_paced { &mut self.ready_paced } else { &mut self.ready };
        if is_ready {
            ready.insert(ticket);
        } else {
            ready.remove(&ticket);
        }
    }

    fn start(&mut self, request: Request, now: Moment) {
        self.leave(request.subject);
        self.hold(request.subject, request.slots);
        if request.is_paced {
            self.pace.start(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    const WAITING: u32 = 10_000;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.after(Duration::from_secs(seconds))
    }

    /// Who starts when each that has started ends a second later, and how many were looked at for it.
    fn let_through(slots: impl Fn(u32) -> SlotSet, running_max: u32) -> (Vec<u32>, u64) {
        let mut queue = Queue::default();
        (0..4).for_each(|slot| queue.limit(SlotId(slot), Limit::At(running_max)));
        queue.know_holders(false);
        for number in 0..WAITING {
            let request = Request { subject: SubjectId(number), slots: slots(number), is_paced: number % 2 == 0 };
            assert_eq!(queue.enter(request, at(0)), Err(Reason::RecoveryAwaited));
        }
        queue.know_holders(true);
        let (mut started, mut running) = (Vec::new(), Vec::new());
        for second in 1..=u64::from(WAITING) {
            running.drain(..).for_each(|subject| queue.release(subject));
            while let Some(subject) = queue.first_free(at(second)) {
                let (slots, is_paced) = (slots(subject.0), subject.0 % 2 == 0);
                assert_eq!(queue.place(subject, at(second)).map(|(_, turn)| turn), Some(Some(at(second))));
                assert_eq!(queue.enter(Request { subject, slots, is_paced }, at(second)), Ok(()));
                started.push(subject.0);
                running.push(subject);
            }
        }
        (started, queue.looked_at.get())
    }

    #[test]
    fn an_event_looks_at_a_few_however_many_wait() {
        let (started, looked_at) = let_through(|_| SlotSet::of(&[SlotId(0)]), 1);
        assert_eq!(started, (0..WAITING).collect::<Vec<_>>());
        assert!(looked_at < 10 * u64::from(WAITING), "{looked_at} looks");
        let (started, looked_at) = let_through(|number| SlotSet::of(&[SlotId((number % 4) as u16), SlotId(0)]), 2);
        assert_eq!(started.len(), WAITING as usize);
        assert!(looked_at < 20 * u64::from(WAITING), "{looked_at} looks");
    }
}
