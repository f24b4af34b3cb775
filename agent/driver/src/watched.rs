//! What is only watched: checks, which signal from outside, and processes, which are looked at. Both come from the config.

use std::collections::BTreeMap;
use std::time::Duration;

use latido_policy::{
    self as policy, CheckEvent, CheckFound, CheckSchedule, CheckSettings, Event, Fingerprint, Moment, PauseFound,
    Phase, ProcessEvent, ProcessFound, ProcessSettings, Recorded, Sighting, SubjectId,
};
use latido_protocol::files::{Budget, Identity, Spent};
use latido_protocol::status::{Next, SubjectKind, SubjectStatus};
use latido_protocol::{Span, SubjectName, WallTime};
use latido_store::{Store, SubjectRow};

use crate::doing::with_doing;
use crate::memory::{self, CheckRow, ProcessRow};
use crate::watch_fact::{CheckDefinition, Look, ProcessDefinition, Signaled, Timing, WatchFact};
use crate::{Driver, record, translate};

/// How often the listening time of checks is written down. What a killed agent loses of it favours the check.
const SAVE_EVERY: Duration = Duration::from_secs(60);

/// The latest of one subject that is only watched.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub(crate) name: SubjectName,
    pub(crate) pause: Option<Paused>,
    pub(crate) of_kind: OfKind,
}

/// The pause of a subject that is only watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paused {
    /// when it ends; `None` is when it is told otherwise
    pub(crate) until: Option<WallTime>,
    /// when it began on the time line
    pub(crate) since: Moment,
}

impl Paused {
    fn is_over(self, at: WallTime) -> bool {
        self.until.is_some_and(|until| until <= at)
    }

    fn left(self, at: WallTime) -> Option<Duration> {
        self.until.map(|until| translate::between(at, until))
    }

    /// What the policy is told of it where it was found.
    fn found(self, now: Moment, at: WallTime) -> PauseFound {
        PauseFound { left: self.left(at), lasted: now.since(self.since) }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum OfKind {
    Check(CheckLatest),
    Process(ProcessLatest),
}

#[derive(Clone, Debug)]
pub(crate) struct CheckLatest {
    pub(crate) timing: Timing,
    /// the ids of the runs that the policy knows by their fingerprints
    pub(crate) run_ids: BTreeMap<Fingerprint, String>,
    pub(crate) last_signal: Option<WallTime>,
    pub(crate) signals: u64,
    pub(crate) state: Option<String>,
    /// the id of the last signal that was kept while no agent ran and is taken in
    pub(crate) last_kept: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct ProcessLatest {
    pub(crate) definition: String,
    /// the process that was seen last
    pub(crate) identity: Option<Identity>,
    /// what the last look that failed said
    pub(crate) detail: Option<String>,
}

impl Watched {
    pub(crate) fn kind(&self) -> SubjectKind {
        match self.of_kind {
            OfKind::Check(_) => SubjectKind::Check,
            OfKind::Process(_) => SubjectKind::Process,
        }
    }
}

impl<S: Store> Driver<S> {
    /// The kind of a subject that is only watched; `None` for any other name.
    pub fn watched_kind(&self, name: &SubjectName) -> Option<SubjectKind> {
        self.book.id(name).and_then(|id| self.book.watched(id)).map(Watched::kind)
    }

    /// The id of the last signal of a check that was kept while no agent ran and is taken in.
    pub fn last_kept_signal(&self, check: &SubjectName) -> Option<String> {
        match &self.book.watched(self.book.id(check)?)?.of_kind {
            OfKind::Check(latest) => latest.last_kept.clone(),
            OfKind::Process(_) => None,
        }
    }

    /// The process that was seen last of a watched process.
    pub fn process_seen(&self, name: &SubjectName) -> Option<Identity> {
        match &self.book.watched(self.book.id(name)?)?.of_kind {
            OfKind::Process(latest) => latest.identity.clone(),
            OfKind::Check(_) => None,
        }
    }

    pub(crate) fn apply_watched(&mut self, fact: WatchFact, now: Moment, wall: WallTime) {
        match fact {
            WatchFact::CheckDefined(definition) => self.check_defined(*definition, now, wall),
            WatchFact::ProcessDefined(definition) => self.process_defined(definition, now, wall),
            WatchFact::Signaled(signaled) => self.signaled(signaled, now, wall),
            WatchFact::Looked { process, look } => self.looked(&process, look, now),
            WatchFact::PauseWanted { subject, until } => self.pause_changed(&subject, Some(until), now, wall),
            WatchFact::UnpauseWanted { subject } => self.pause_changed(&subject, None, now, wall),
        }
    }

    fn check_defined(&mut self, definition: CheckDefinition, now: Moment, wall: WallTime) {
        let CheckDefinition { name, timing, grace, run_for } = definition;
        let Some((row, recorded)) = self.recall::<CheckRow>(&name, SubjectKind::Check) else { return };
        let row = row.filter(|row| row.definition == timing.definition());
        let mut found = CheckFound { memory: None, pause: None, recorded };
        let mut latest = CheckLatest {
            timing: timing.clone(),
            run_ids: BTreeMap::new(),
            last_signal: None,
            signals: 0,
            state: None,
            last_kept: None,
        };
        let mut pending = None;
        let mut pause = None;
        if let Some(row) = row {
            pending = row.pending();
            pause = row.pause(now);
            latest.run_ids = row.run_ids();
            (latest.last_signal, latest.signals, latest.state) = (row.last_signal, row.signals, row.state.clone());
            latest.last_kept.clone_from(&row.last_kept);
            let pause = pause.map(|pause: Paused| pause.found(now, wall));
            found = CheckFound { memory: Some(row.recall(now)), pause, ..found };
        }
        let schedule = match &timing {
            Timing::Every(length) => CheckSchedule::Every(*length),
            Timing::Calendar(_) => CheckSchedule::Calendar,
        };
        let pause = pause.filter(|pause| !pause.is_over(wall));
        let id = self.book.add_watched(Watched { name, pause, of_kind: OfKind::Check(latest) });
        let settings = CheckSettings { schedule, grace, run_for };
        self.policy.handle_event(Event::Check(CheckEvent::Added { subject: id, settings, found }), now);
        if let Timing::Calendar(schedule) = timing {
            self.calendar.add(id, schedule, pending, wall);
        }
        self.ask_rules(id);
        self.touch(id);
    }

    fn process_defined(&mut self, process: ProcessDefinition, now: Moment, wall: WallTime) {
        let ProcessDefinition { name, definition, start_within } = process;
        let Some((row, recorded)) = self.recall::<ProcessRow>(&name, SubjectKind::Process) else { return };
        let row = row.filter(|row| row.definition == definition);
        // What was recorded of another definition says nothing of this one, but its verdict is what changes.
        let identity = row.as_ref().and_then(|row| row.identity.clone());
        let pause = row.as_ref().and_then(|row| row.pause(now)).filter(|pause| !pause.is_over(wall));
        let seen = identity.as_ref().map(translate::process);
        let found = ProcessFound { seen, pause: pause.map(|pause| pause.found(now, wall)), recorded };
        let of_kind = OfKind::Process(ProcessLatest { definition, identity, detail: None });
        let id = self.book.add_watched(Watched { name, pause, of_kind });
        let settings = ProcessSettings { start_within };
        self.policy.handle_event(Event::Process(ProcessEvent::Added { subject: id, settings, found }), now);
        self.ask_rules(id);
        self.touch(id);
    }

    /// What the store holds of a subject of this name and kind. `None` where the name is taken by another subject.
    fn recall<R: serde::de::DeserializeOwned>(
        &mut self,
        name: &SubjectName,
        kind: SubjectKind,
    ) -> Option<(Option<R>, Option<Recorded>)> {
        if self.book.id(name).is_some() {
            tracing::warn!(%name, "the name is taken by another subject; it is not watched");
            return None;
        }
        let Some(stored) = self.stored.remove(name) else { return Some((None, None)) };
        if stored.kind != translate::kind(kind) {
            return Some((None, None));
        }
        Some((serde_json::from_str(&stored.text).ok(), stored.recorded))
    }

    fn signaled(&mut self, signaled: Signaled, now: Moment, wall: WallTime) {
        let Signaled { check, signal, run_id, state, kept } = signaled;
        let Some(id) = self.book.id(&check) else { return };
        let Some(Watched { of_kind: OfKind::Check(latest), .. }) = self.book.watched_mut(id) else { return };
        let run = run_id.as_ref().map(translate::fingerprint);
        latest.run_ids.extend(run.zip(run_id));
        latest.last_signal = Some(kept.as_ref().map_or(wall, |kept| kept.at));
        if let Some(kept) = kept {
            let detail = format!("check {check}: what it signalled at {} while no agent ran was taken in", kept.at);
            self.pending.entries.push(record::entry(wall, &record::noted("signal-kept", detail)));
            latest.last_kept = Some(kept.id);
        }
        latest.signals += 1;
        latest.state = state.or(latest.state.take());
        self.policy.handle_event(Event::Check(CheckEvent::Signaled { subject: id, signal, run }), now);
        let known: Vec<Fingerprint> = self.policy.check_memory(id).map_or_else(Vec::new, |memory| {
            memory.runs.ended().chain(memory.runs.open().filter_map(|run| run.id)).collect()
        });
        if let Some(Watched { of_kind: OfKind::Check(latest), .. }) = self.book.watched_mut(id) {
            latest.run_ids.retain(|run, _| known.contains(run));
        }
        self.touch(id);
    }

    fn looked(&mut self, process: &SubjectName, look: Look, now: Moment) {
        let Some(subject) = self.book.id(process) else { return };
        let mut seen = None;
        let mut detail = None;
        let event = match look {
            Look::Seen { identity, age, naming } => {
                let process = translate::process(&identity);
                seen = Some(identity);
                ProcessEvent::Seen { subject, sighting: Sighting { process, age, naming } }
            }
            Look::Absent(absence) => ProcessEvent::Absent { subject, absence },
            Look::Ended { identity, exit } => {
                ProcessEvent::Ended { subject, process: translate::process(&identity), exit }
            }
            Look::Failed { detail: why } => {
                detail = Some(why);
                ProcessEvent::LookFailed { subject }
            }
        };
        self.policy.handle_event(Event::Process(event), now);
        let believed = self.policy.process_seen(subject);
        let Some(Watched { of_kind: OfKind::Process(latest), .. }) = self.book.watched_mut(subject) else { return };
        latest.detail = detail;
        let news = seen.filter(|identity| Some(translate::process(identity)) == believed);
        if news.is_some() && news != latest.identity {
            latest.identity = news;
            self.touch(subject);
        }
    }

    fn pause_changed(&mut self, name: &SubjectName, until: Option<Option<WallTime>>, now: Moment, wall: WallTime) {
        let Some(subject) = self.book.id(name) else { return };
        let Some(watched) = self.book.watched_mut(subject) else { return };
        let since = watched.pause.map_or(now, |pause| pause.since);
        watched.pause = until.map(|until| Paused { until, since });
        let event = match (&watched.of_kind, watched.pause.map(|pause| pause.left(wall))) {
            (OfKind::Check(_), Some(length)) => Event::Check(CheckEvent::PauseWanted { subject, length }),
            (OfKind::Check(_), None) => Event::Check(CheckEvent::UnpauseWanted { subject }),
            (OfKind::Process(_), Some(length)) => Event::Process(ProcessEvent::PauseWanted { subject, length }),
            (OfKind::Process(_), None) => Event::Process(ProcessEvent::UnpauseWanted { subject }),
        };
        self.policy.handle_event(event, now);
        self.touch(subject);
    }

    /// Takes note that a pause is over, so that no restart finds it.
    pub(crate) fn note_unpaused(&mut self, subject: SubjectId, phase: Phase) {
        if let Some(watched) = self.book.watched_mut(subject).filter(|_| phase != Phase::Paused) {
            watched.pause = None;
        }
    }

    /// Hands the calendar's moments to the policy.
    pub(crate) fn tell_calendar(&mut self, now: Moment, wall: WallTime, gap: Option<Duration>) {
        for (subject, expectation) in self.calendar.advance(now, wall, gap) {
            self.policy.handle_event(Event::Check(CheckEvent::Expected { subject, expectation }), now);
            self.touch(subject);
        }
    }

    /// Writes down now and then how long checks were listened to.
    pub(crate) fn save_checks(&mut self, now: Moment) {
        if self.checks_saved_at.is_some_and(|saved_at| now.since(saved_at) < SAVE_EVERY) {
            return;
        }
        self.checks_saved_at = Some(now);
        for id in self.book.checks() {
            self.touch(id);
        }
    }

    /// Why a subject has its verdict, in words. What is the matter with a job may lie in what it waits in, and with a check
    /// in a run that never told its end.
    pub(crate) fn reason(&self, id: SubjectId, verdict: policy::Verdict, because: policy::Reason) -> String {
        let reason = because.to_string();
        if let Some(latest) = self.book.latest(id) {
            return with_doing(reason, verdict, latest);
        }
        let is_bad = matches!(verdict, policy::Verdict::Stale | policy::Verdict::Hung | policy::Verdict::Failing);
        let oldest = self.policy.check_memory(id).filter(|_| is_bad).and_then(|memory| memory.runs.open().next());
        let Some((run, Some(Watched { of_kind: OfKind::Check(latest), .. }))) =
            oldest.map(|run| (run, self.book.watched(id)))
        else {
            return reason;
        };
        let name =
            run.id.and_then(|id| latest.run_ids.get(&id)).map_or_else(|| "a run".to_owned(), |id| format!("run {id}"));
        format!("{reason}; {name} has been open since {}", self.moment_to_wall(run.began))
    }

    /// The row of a subject that is only watched.
    pub(crate) fn watched_row(&self, id: SubjectId, watched: &Watched) -> Option<SubjectRow> {
        let view = self.policy.subject(id)?;
        let now = self.listening.now();
        let (last_beat, sequence, state) = match &watched.of_kind {
            OfKind::Check(latest) => {
                let memory = self.policy.check_memory(id)?;
                let row = CheckRow::of(latest, watched.pause, &memory, self.calendar.pending(id), now);
                (latest.last_signal, latest.signals, memory::text(&row))
            }
            OfKind::Process(latest) => (None, 0, memory::text(&ProcessRow::of(latest, watched.pause, now))),
        };
        Some(SubjectRow {
            name: record::text(&watched.name),
            kind: translate::kind(watched.kind()).to_owned(),
            verdict: translate::verdict(view.verdict).to_string(),
            phase: translate::phase(view.phase).to_string(),
            reason: self.reason(id, view.verdict, view.because),
            since_ms: self.moment_to_wall(view.since).as_millis(),
            last_beat_ms: last_beat.map(WallTime::as_millis),
            sequence,
            state,
            ..SubjectRow::default()
        })
    }

    /// The status of a subject that is only watched.
    pub(crate) fn watched_status(&self, id: SubjectId, watched: &Watched, now: Moment) -> Option<SubjectStatus> {
        let view = self.policy.subject(id)?;
        let mut reason = self.reason(id, view.verdict, view.because);
        let (mut last_beat, mut state, mut pid, mut host) = (None, None, None, String::new());
        let policy;
        match &watched.of_kind {
            OfKind::Check(latest) => {
                (last_beat, state) = (latest.last_signal, latest.state.clone());
                policy = latest.timing.definition();
            }
            OfKind::Process(latest) => {
                let lives = view.verdict == policy::Verdict::Alive;
                pid = latest.identity.as_ref().filter(|_| lives).map(|identity| identity.pid);
                host = latest.identity.as_ref().map(|identity| identity.machine_id.clone()).unwrap_or_default();
                policy = latest.definition.clone();
                if let (Some(detail), policy::Verdict::Unknown) = (&latest.detail, view.verdict) {
                    reason = format!("{reason}: {detail}");
                }
            }
        }
        Some(SubjectStatus {
            name: watched.name.clone(),
            kind: watched.kind(),
            verdict: translate::verdict(view.verdict),
            reason,
            since: self.moment_to_wall(view.since),
            phase: translate::phase(view.phase),
            place: None,
            slots: Vec::new(),
            spent: Spent::default(),
            budget: Budget::default(),
            host,
            policy,
            last_beat,
            silence_s: view.silence.map(Span),
            progress: None,
            progress_changed: None,
            attempt: 0,
            epoch: 0,
            pickups: 0,
            pid,
            state,
            errors: 0,
            outcome: None,
            trouble: None,
            next: view.next.map(|(step, at)| Next { what: step.to_string(), in_s: Some(Span(at.since(now))) }),
        })
    }
}
