//! The status document: what the policy judged, beside the latest whole records.

use std::collections::BTreeSet;

use latido_policy::{Moment, SubjectId, SubjectView};
use latido_protocol::registry::RegistryStatus;
use latido_protocol::status::{Next, Phase, SubjectKind, SubjectStatus};
use latido_protocol::{Span, SubjectName};
use latido_store::Store;

use crate::book::Latest;
use crate::doing::with_doing;
use crate::{Driver, translate};

impl<S: Store> Driver<S> {
    /// The status of all subjects, or of those named; unknown names are left out.
    pub fn subjects(&self, named: &[SubjectName]) -> Vec<SubjectStatus> {
        let now = self.listening.now();
        let at = self.moment_to_wall(now);
        let (ids, workers): (Vec<SubjectId>, _) = match named {
            // Among a million nobody looks for one by looking at all.
            [_, ..] => {
                let (named, registry) = (BTreeSet::from_iter(named), self.policy.registry());
                let ids = named.iter().filter_map(|name| self.book.id(name)).collect();
                (ids, named.iter().filter_map(|name| self.registrar.worker_named(name, registry)).collect())
            }
            [] => (self.book.ids().collect(), self.workers().workers),
        };
        let workers = workers.into_iter().map(|worker| crate::registry::subject(worker, at));
        let others = ids.into_iter().filter_map(|id| self.status(id, now));
        let mut subjects: Vec<SubjectStatus> = others.chain(workers).collect();
        subjects.sort_by(|one, other| one.name.cmp(&other.name));
        subjects
    }

    fn status(&self, id: SubjectId, now: Moment) -> Option<SubjectStatus> {
        match (self.book.latest(id), self.book.watched(id)) {
            (Some(latest), _) => Some(self.subject_status(&self.policy.subject(id)?, latest, now)),
            (None, Some(watched)) => self.watched_status(id, watched, now),
            (None, None) => None,
        }
    }

    /// All workers and targets, of one moment.
    pub fn workers(&self) -> RegistryStatus {
        self.registrar.status(self.policy.registry())
    }

    fn subject_status(&self, view: &SubjectView, latest: &Latest, now: Moment) -> SubjectStatus {
        let status = latest.status.as_ref().filter(|status| status.epoch == view.attempt.epoch.0);
        let end = latest.end.as_ref();
        let running = end.is_none() && latest.start.as_ref().is_some_and(|start| start.process.is_some());
        let progress = end.and_then(|end| end.progress.clone()).or_else(|| status.and_then(|s| s.progress.clone()));
        let mut reason = view.because.to_string();
        if let (Some(end), latido_policy::Verdict::Ended) = (end, view.verdict) {
            reason.clone_from(&end.outcome.detail);
        }
        if let (Some(words), latido_policy::Reason::CannotTell) = (&latest.remark, view.because) {
            reason = format!("{reason}: {words}");
        }
        if let Some(words) = status.and_then(|status| status.excuse.as_ref()?.because.as_ref())
            && matches!(view.because, latido_policy::Reason::Excused { .. })
        {
            reason = format!("{reason}: {words}");
        }
        let unkilled = running && status.is_some_and(|status| !status.survivors.is_empty());
        let mut reason = with_doing(reason, view.verdict, latest);
        if let Some(baseline) = view.baseline {
            let since = Span(now.since(baseline));
            reason = format!("{reason}; it counts since {since} ago, because the agent could not hear before");
        }
        SubjectStatus {
            name: latest.job.name.clone(),
            kind: SubjectKind::Job,
            verdict: translate::verdict(view.verdict),
            reason,
            since: self.moment_to_wall(view.since),
            // The policy waits for the end of its stop; for people a stop that waits for the kernel is no stop.
            phase: if unkilled { Phase::Held } else { translate::phase(view.phase) },
            host: latest.start.as_ref().map(|start| start.host.clone()).unwrap_or_default(),
            policy: latest.job.settings.policy.clone(),
            last_beat: status.and_then(|status| status.last_beat),
            silence_s: view.silence.filter(|_| running).map(Span),
            progress,
            progress_changed: status.and_then(|status| status.progress_changed),
            attempt: view.attempt.number.0,
            epoch: view.attempt.epoch.0,
            pickups: view.pickups,
            pid: latest.start.as_ref().filter(|_| running).and_then(|start| start.process.as_ref()).map(|p| p.pid),
            state: status.and_then(|status| status.state.clone()),
            errors: status.map_or(0, |status| status.errors),
            outcome: end.map(|end| end.outcome.clone()),
            trouble: status.filter(|_| running).and_then(|status| status.trouble_words()),
            next: next(view, latest, now),
            place: view.place,
            slots: latest.job.settings.slots.clone(),
            spent: translate::spent_of(view.spent),
            budget: latest.job.settings.resume.budget,
        }
    }
}

/// What comes next, with the last remark of a strategy, launch or look where the job waits for a person.
fn next(view: &SubjectView, latest: &Latest, now: Moment) -> Option<Next> {
    if let (Some(place), latido_policy::Phase::Queued) = (view.place, view.phase) {
        let slots = &latest.job.settings.slots;
        let of = if slots.is_empty() { String::new() } else { format!(" for {}", slots.join(", ")) };
        let what = format!("its launch is ordered when it is its turn: place {place} in line{of}");
        return Some(Next { what, in_s: view.next.map(|(_, at)| Span(at.since(now))) });
    }
    if let Some((step, at)) = view.next {
        return Some(Next { what: step.to_string(), in_s: Some(Span(at.since(now))) });
    }
    let waits = matches!(view.phase, latido_policy::Phase::Held | latido_policy::Phase::Stuck);
    waits.then(|| {
        let remark = latest.remark.as_ref().map(|remark| format!(" ({remark})")).unwrap_or_default();
        if view.verdict == latido_policy::Verdict::Unknown {
            let vouch =
                format!("if you know that nothing of it lives: `latido resume {} --presume-lost`", latest.job.name);
            return Next { what: format!("{}{remark}; {vouch}", view.phase_because), in_s: None };
        }
        let more = if let latido_policy::Reason::BudgetUsedUp { counter, .. } = view.phase_because {
            format!(" --budget-{counter} MORE")
        } else {
            String::new()
        };
        Next { what: format!("{}{remark}; `latido resume {}{more}`", view.phase_because, latest.job.name), in_s: None }
    })
}
