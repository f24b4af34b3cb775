//! One alert, from the first finding until nobody needs to remember it.

use core::time::Duration;

use crate::alert_input::{Effect, Input, Terms};
use crate::{AlertRecord, Confirm, Fingerprint, Moment, Resolution, Severity, Standing, Telling};

/// One alert. What is told of it, and when, is decided here; [`crate::alerts`] knows of the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alert {
    /// how bad it is, as it was found last
    pub(crate) severity: Severity,
    /// where its subject is
    pub(crate) host: Option<Fingerprint>,
    /// since when it holds, or held last; what comes and goes began with its first coming that was told
    began: Moment,
    /// when it came last
    came_at: Moment,
    /// how often it came in this series; 0 before it is confirmed
    comings: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It holds and is not confirmed.
    Pending { since: Moment, sweeps: u32 },
    /// It is confirmed and nobody was told: until `tell_at` it waits for others of its kind, without it it is muted.
    Confirmed { sweeps: u32, tell_at: Option<Moment>, ended_at: Option<Moment> },
    /// It holds and was told as part of a group.
    Grouped,
    /// It was told that it holds.
    Firing(Told),
    /// It was told that it holds, and it has ended.
    Ending { told: Told, ended_at: Moment },
    /// It was told that it comes and goes.
    Flapping { told: Told, holds: bool, changed_at: Moment },
    /// It is over, and remembered in case it comes again.
    Quiet { until: Moment },
}

/// What people know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    severity: Severity,
    acknowledged: Option<Severity>,
    /// when it was told last, or would have been
    told_at: Moment,
}

impl Told {
    /// When it is told again, unless somebody said that it is known.
    fn remind_at(self, terms: &Terms<'_>) -> Option<Moment> {
        let every = terms.settings.remind_every.filter(|every| self.acknowledged.is_none() && !every.is_zero());
        every.map(|every| self.told_at.after(every))
    }

    fn acknowledged(self) -> Self {
        Self { acknowledged: Some(self.severity), ..self }
    }
}

impl Alert {
    /// An alert of which nothing is known but that it is to be found now.
    pub(crate) fn unknown(severity: Severity, host: Option<Fingerprint>, now: Moment) -> Self {
        Self { severity, host, began: now, came_at: now, comings: 0, state: State::Quiet { until: now } }
    }

    /// An alert as the store remembers it.
    pub(crate) fn restored(
        record: AlertRecord,
        host: Option<Fingerprint>,
        began: Moment,
        told_at: Moment,
        terms: &Terms<'_>,
    ) -> Self {
        let now = terms.now;
        let AlertRecord { standing, severity, told, acknowledged, comings, subjects: _ } = record;
        let told = Told { severity: told, acknowledged, told_at };
        let state = match standing {
            // Nobody was told, and what muted it may be over: it is told if it is found again.
            Standing::Muted => State::Pending { since: began, sweeps: 0 },
            Standing::Grouped => State::Grouped,
            Standing::Firing => State::Firing(told),
            Standing::Ending => State::Ending { told, ended_at: now },
            Standing::Flapping => State::Flapping { told, holds: true, changed_at: now },
        };
        Self { severity, host, began, came_at: told_at, comings, state }
    }

    /// Takes in what happened.
    pub(crate) fn handle(&mut self, input: Input, terms: &Terms<'_>) -> Effect {
        if let Input::Found(severity) = input {
            self.severity = severity;
        }
        match self.state {
            State::Quiet { until: _ } => self.when_quiet(input, terms),
            State::Pending { since, sweeps } => self.when_pending(since, sweeps, input, terms),
            State::Confirmed { sweeps, tell_at, ended_at } => {
                self.when_confirmed(sweeps, tell_at, ended_at, input, terms)
            }
            State::Grouped => self.when_grouped(input, terms),
            State::Firing(told) => self.when_firing(told, input, terms),
            State::Ending { told, ended_at } => self.when_ending(told, ended_at, input, terms),
            State::Flapping { told, holds, changed_at } => self.when_flapping(told, holds, changed_at, input, terms),
        }
    }

    fn when_quiet(&mut self, input: Input, terms: &Terms<'_>) -> Effect {
        match input {
            Input::Found(_) => {
                self.began = terms.now;
                self.pend(terms.now, 1, terms)
            }
            // The end of its quiet is all that it waits for.
            Input::TimeCame | Input::Removed => Effect::Over,
            Input::NotFound => Effect::Nothing,
            Input::Tell | Input::Join | Input::Acknowledged => Effect::Refused,
        }
    }

    fn when_pending(&mut self, since: Moment, sweeps: u32, input: Input, terms: &Terms<'_>) -> Effect {
        match input {
            Input::Found(_) => self.pend(since, sweeps.saturating_add(1), terms),
            Input::TimeCame => self.pend(since, sweeps, terms),
            Input::NotFound if self.comings > 0 => self.rest(Effect::Nothing, terms),
            Input::NotFound | Input::Removed => Effect::Over,
            Input::Tell | Input::Join | Input::Acknowledged => Effect::Refused,
        }
    }

    fn when_confirmed(
        &mut self,
        sweeps: u32,
        tell_at: Option<Moment>,
        ended_at: Option<Moment>,
        input: Input,
        terms: &Terms<'_>,
    ) -> Effect {
        match (input, ended_at) {
            // Muted: nobody was told that it holds, so nobody is told of its end.
            (Input::NotFound, _) if tell_at.is_none() => self.rest(Effect::Nothing, terms),
            (Input::Found(_), None) | (Input::NotFound, Some(_)) => Effect::Nothing,
            (Input::Found(_), Some(_)) => {
                self.come(terms);
                self.turn(State::Confirmed { sweeps, tell_at, ended_at: None }, Effect::Nothing)
            }
            (Input::NotFound, None) => {
                self.turn(State::Confirmed { sweeps, tell_at, ended_at: Some(terms.now) }, Effect::Nothing)
            }
            (Input::TimeCame, _) if tell_at.is_some_and(|tell_at| terms.now < tell_at) => Effect::Nothing,
            (Input::TimeCame, _) if !terms.is_muted => Effect::Ready,
            (Input::TimeCame, None) => self.turn(State::Confirmed { sweeps, tell_at: None, ended_at }, Effect::Nothing),
            (Input::TimeCame, Some(_)) => self.rest(Effect::Nothing, terms),
            (Input::Tell, _) => self.tell(sweeps, ended_at, terms),
            (Input::Join, None) => self.turn(State::Grouped, Effect::Nothing),
            (Input::Join, Some(_)) => self.rest(Effect::Nothing, terms),
            (Input::Acknowledged, _) => Effect::Refused,
            (Input::Removed, _) => Effect::Over,
        }
    }

    fn when_grouped(&mut self, input: Input, terms: &Terms<'_>) -> Effect {
        match input {
            Input::NotFound | Input::Removed => self.rest(Effect::Left, terms),
            Input::Found(_) | Input::TimeCame => Effect::Nothing,
            Input::Tell | Input::Join | Input::Acknowledged => Effect::Refused,
        }
    }

    fn when_firing(&mut self, told: Told, input: Input, terms: &Terms<'_>) -> Effect {
        match input {
            Input::Found(severity) => self.rise(told, severity, terms),
            Input::NotFound => self.turn(State::Ending { told, ended_at: terms.now }, Effect::Nothing),
            Input::TimeCame => self.remind(told, terms),
            Input::Acknowledged => self.turn(State::Firing(told.acknowledged()), Effect::Nothing),
            Input::Removed => self.resolve(Resolution::Removed, terms),
            Input::Tell | Input::Join => Effect::Refused,
        }
    }

    fn when_ending(&mut self, told: Told, ended_at: Moment, input: Input, terms: &Terms<'_>) -> Effect {
        match input {
            Input::Found(_) => self.return_from_ending(told, terms),
            Input::TimeCame if terms.now >= ended_at.after(terms.settings.resolve_after) => {
                self.resolve(Resolution::NotFound, terms)
            }
            Input::NotFound | Input::TimeCame => Effect::Nothing,
            Input::Acknowledged => self.turn(State::Ending { told: told.acknowledged(), ended_at }, Effect::Nothing),
            Input::Removed => self.resolve(Resolution::Removed, terms),
            Input::Tell | Input::Join => Effect::Refused,
        }
    }

    fn when_flapping(
        &mut self,
        told: Told,
        holds: bool,
        changed_at: Moment,
        input: Input,
        terms: &Terms<'_>,
    ) -> Effect {
        match (input, holds) {
            (Input::Found(severity), true) => self.rise(told, severity, terms),
            (Input::Found(severity), false) => {
                self.come(terms);
                self.state = State::Flapping { told, holds: true, changed_at: terms.now };
                self.rise(told, severity, terms)
            }
            (Input::NotFound, true) => {
                self.turn(State::Flapping { told, holds: false, changed_at: terms.now }, Effect::Nothing)
            }
            (Input::TimeCame, _) if terms.now < changed_at.after(terms.settings.flap_for) => Effect::Nothing,
            (Input::TimeCame, true) => self.settle(told, terms),
            (Input::TimeCame, false) => self.resolve(Resolution::NotFound, terms),
            (Input::NotFound, false) => Effect::Nothing,
            (Input::Acknowledged, _) => {
                self.turn(State::Flapping { told: told.acknowledged(), holds, changed_at }, Effect::Nothing)
            }
            (Input::Removed, _) => self.resolve(Resolution::Removed, terms),
            (Input::Tell | Input::Join, _) => Effect::Refused,
        }
    }

    /// The next moment at which something happens by itself.
    pub(crate) fn deadline(&self, terms: &Terms<'_>) -> Option<Moment> {
        let settings = terms.settings;
        match self.state {
            State::Pending { since, sweeps } => {
                (sweeps >= terms.confirm.sweeps.get()).then(|| since.after(terms.confirm.held_for))
            }
            State::Confirmed { tell_at, .. } => tell_at,
            State::Grouped => None,
            State::Firing(told) => told.remind_at(terms),
            State::Ending { ended_at, .. } => Some(ended_at.after(settings.resolve_after)),
            State::Flapping { changed_at, .. } => Some(changed_at.after(settings.flap_for)),
            State::Quiet { until } => Some(until),
        }
    }

    /// Where it stands, as far as that outlives the agent.
    pub(crate) fn record(&self, subjects: u32) -> Option<AlertRecord> {
        let (standing, told) = match self.state {
            State::Pending { .. } | State::Confirmed { tell_at: Some(_), .. } | State::Quiet { .. } => return None,
            State::Confirmed { tell_at: None, .. } => (Standing::Muted, None),
            State::Grouped => (Standing::Grouped, None),
            State::Firing(told) => (Standing::Firing, Some(told)),
            State::Ending { told, .. } => (Standing::Ending, Some(told)),
            State::Flapping { told, .. } => (Standing::Flapping, Some(told)),
        };
        Some(AlertRecord {
            standing,
            severity: self.severity,
            told: told.map_or(self.severity, |told| told.severity),
            acknowledged: told.and_then(|told| told.acknowledged),
            comings: self.comings,
            subjects,
        })
    }

    /// How long it has held, or held last.
    pub(crate) fn held_for(&self, now: Moment) -> Duration {
        let until = match self.state {
            State::Ending { ended_at, .. }
            | State::Confirmed { ended_at: Some(ended_at), .. }
            | State::Flapping { holds: false, changed_at: ended_at, .. } => ended_at,
            State::Pending { .. }
            | State::Confirmed { ended_at: None, .. }
            | State::Grouped
            | State::Firing(_)
            | State::Flapping { holds: true, .. }
            | State::Quiet { .. } => now,
        };
        until.since(self.began)
    }

    /// It is confirmed and nobody was told.
    pub(crate) fn is_confirmed(&self) -> bool {
        matches!(self.state, State::Confirmed { .. })
    }

    /// It is part of a group.
    pub(crate) fn is_grouped(&self) -> bool {
        matches!(self.state, State::Grouped)
    }

    /// It is over, and only remembered.
    pub(crate) fn is_quiet(&self) -> bool {
        matches!(self.state, State::Quiet { .. })
    }

    /// It was confirmed and is not over.
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self.state, State::Quiet { .. } | State::Pending { .. })
    }

    fn turn(&mut self, state: State, effect: Effect) -> Effect {
        self.state = state;
        effect
    }

    /// It is over; it is remembered for as long as a coming would continue its series.
    fn rest(&mut self, effect: Effect, terms: &Terms<'_>) -> Effect {
        self.turn(State::Quiet { until: terms.now.after(terms.settings.flap_for) }, effect)
    }

    /// Counts a coming, in a series of its own if the last one is long ago.
    fn come(&mut self, terms: &Terms<'_>) {
        let continues = terms.now.since(self.came_at) <= terms.settings.flap_for;
        self.comings = if continues { self.comings.saturating_add(1) } else { 1 };
        self.came_at = terms.now;
    }

    fn flaps(&self, terms: &Terms<'_>) -> bool {
        self.comings >= terms.settings.flap_min.get()
    }

    fn pend(&mut self, since: Moment, sweeps: u32, terms: &Terms<'_>) -> Effect {
        let Confirm { sweeps: needed, held_for } = terms.confirm;
        if sweeps < needed.get() || terms.now.since(since) < held_for {
            return self.turn(State::Pending { since, sweeps }, Effect::Nothing);
        }
        self.come(terms);
        let tell_at = Some(terms.now.after(terms.group_for));
        self.turn(State::Confirmed { sweeps, tell_at, ended_at: None }, Effect::Nothing)
    }

    /// It is told by itself, also when it ended while it waited: what was confirmed is not swallowed.
    fn tell(&mut self, sweeps: u32, ended_at: Option<Moment>, terms: &Terms<'_>) -> Effect {
        let told = self.told(terms);
        if self.flaps(terms) {
            let changed_at = ended_at.unwrap_or(terms.now);
            let state = State::Flapping { told, holds: ended_at.is_none(), changed_at };
            return self.turn(state, Effect::Tell(Telling::Flaps { comings: self.comings }));
        }
        let state = ended_at.map_or(State::Firing(told), |ended_at| State::Ending { told, ended_at });
        self.turn(state, Effect::Tell(Telling::Began { sweeps }))
    }

    /// What people know from this moment on.
    fn told(&self, terms: &Terms<'_>) -> Told {
        Told { severity: self.severity, acknowledged: None, told_at: terms.now }
    }

    fn set_told(&mut self, told: Told, effect: Effect) -> Effect {
        let state = match self.state {
            State::Firing(_) => State::Firing(told),
            State::Ending { ended_at, .. } => State::Ending { told, ended_at },
            State::Flapping { holds, changed_at, .. } => State::Flapping { told, holds, changed_at },
            State::Pending { .. } | State::Confirmed { .. } | State::Grouped | State::Quiet { .. } => self.state,
        };
        self.turn(state, effect)
    }

    /// What is worse than was told is told, and whoever knew of it did not know that. A fall is not: the worst that was
    /// told stands until it is resolved, so that a severity that swings is told once.
    fn rise(&mut self, told: Told, severity: Severity, terms: &Terms<'_>) -> Effect {
        if severity <= told.severity || terms.is_muted {
            return Effect::Nothing;
        }
        self.set_told(self.told(terms), Effect::Tell(Telling::Rose))
    }

    fn remind(&mut self, told: Told, terms: &Terms<'_>) -> Effect {
        if told.remind_at(terms).is_none_or(|remind_at| terms.now < remind_at) {
            return Effect::Nothing;
        }
        let effect = if terms.is_muted { Effect::Nothing } else { Effect::Tell(Telling::Reminder) };
        self.set_told(Told { told_at: terms.now, ..told }, effect)
    }

    /// It came again before its ending was told.
    fn return_from_ending(&mut self, told: Told, terms: &Terms<'_>) -> Effect {
        self.come(terms);
        if self.flaps(terms) && !terms.is_muted {
            let told = Told { severity: told.severity.max(self.severity), ..told };
            let state = State::Flapping { told, holds: true, changed_at: terms.now };
            return self.turn(state, Effect::Tell(Telling::Flaps { comings: self.comings }));
        }
        self.state = State::Firing(told);
        self.rise(told, self.severity, terms)
    }

    /// It came and went, and holds steadily: a series of its own begins.
    fn settle(&mut self, told: Told, terms: &Terms<'_>) -> Effect {
        let comings = core::mem::replace(&mut self.comings, 1);
        let effect = if terms.is_muted { Effect::Nothing } else { Effect::Tell(Telling::Settled { comings }) };
        self.turn(State::Firing(Told { told_at: terms.now, ..told }), effect)
    }

    /// What was told to hold is told to have ended, whatever mutes it: otherwise people would wait for ever.
    fn resolve(&mut self, because: Resolution, terms: &Terms<'_>) -> Effect {
        let comings = self.comings;
        self.rest(Effect::Tell(Telling::Resolved { comings, because }), terms)
    }
}
