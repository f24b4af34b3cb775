//! The status document as the files tell it: the policy's own judgement over what was found, for a host without an agent.

use latido_policy::{Existence, Facts};
use latido_protocol::files::{Budget, JobFile, Spent, Want};
use latido_protocol::layout::StateDir;
use latido_protocol::status::{Next, Phase, StatusDocument, SubjectKind, SubjectStatus, Verdict};
use latido_protocol::{Class, FORMAT_VERSION, Span, SubjectName, WallTime};

use super::inspect::{self, AttemptFacts, AttemptState, JobFacts};
use super::launch::host_name;
use super::records;

/// The document over these jobs, or over all; names that are no job's are returned beside it.
///
/// # Errors
/// When the folder of the jobs cannot be read.
pub fn document(
    state: &StateDir,
    subjects: &[SubjectName],
    at: WallTime,
) -> std::io::Result<(StatusDocument, Vec<SubjectName>)> {
    let names = if subjects.is_empty() { records::job_names(state)? } else { subjects.to_vec() };
    let mut unknown = Vec::new();
    let mut statuses = Vec::new();
    for name in names {
        match inspect::inspect(state, &name) {
            Some(facts) => statuses.push(subject_status(&facts, at)),
            // Without names given, the job was removed between two looks.
            None if subjects.is_empty() => {}
            None => unknown.push(name),
        }
    }
    statuses.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((StatusDocument { version: FORMAT_VERSION, agent: None, at, subjects: statuses }, unknown))
}

/// What the policy is told of a job.
pub fn policy_facts(facts: &JobFacts) -> Facts {
    let Some(latest) = &facts.latest else { return Facts::bare(Existence::NotStarted) };
    let existence = match &latest.state {
        AttemptState::Launching => Existence::Launching,
        AttemptState::Running if latest.doubt.is_some() => Existence::Unknown,
        AttemptState::Running => Existence::Present,
        AttemptState::Orphaned { .. } => Existence::Orphaned,
        AttemptState::Dead { .. } => Existence::Gone,
        AttemptState::Unknown { .. } => Existence::Unknown,
        AttemptState::Ended => {
            // An ending that cannot be read says no more than that it is over.
            let class = latest.records.end.as_ref().map_or(Class::Lost, |end| end.outcome.class);
            Existence::Ended(latido_driver::class(class))
        }
    };
    match (&latest.records.status, &facts.job) {
        (Some(status), Some(job)) => {
            let told = Facts::told(&latido_driver::heard(status), &latido_driver::lease(&job.settings));
            Facts { existence, ..told }
        }
        (None, _) | (_, None) => Facts::bare(existence),
    }
}

/// The status of one job, as its files and processes tell it.
pub fn subject_status(facts: &JobFacts, at: WallTime) -> SubjectStatus {
    let (verdict, reason) = judged(facts);
    let latest = facts.latest.as_ref();
    let status = latest.and_then(|latest| latest.records.status.as_ref());
    let end = latest.and_then(|latest| latest.records.end.as_ref());
    let start = latest.and_then(|latest| latest.records.start.as_ref());
    let lives = latest.is_some_and(|latest| {
        matches!(latest.state, AttemptState::Running | AttemptState::Orphaned { .. } | AttemptState::Launching)
    });
    SubjectStatus {
        name: facts.name.clone(),
        kind: SubjectKind::Job,
        verdict,
        reason,
        since: since(facts, at),
        phase: phase(facts),
        host: start.map_or_else(host_name, |start| start.host.clone()),
        policy: facts.job.as_ref().map(|job| job.settings.policy.clone()).unwrap_or_default(),
        last_beat: status.and_then(|status| status.last_beat),
        silence_s: status.filter(|_| lives).map(|status| status.silence_s),
        progress: end
            .and_then(|end| end.progress.clone())
            .or_else(|| status.and_then(|status| status.progress.clone())),
        progress_changed: status.and_then(|status| status.progress_changed),
        attempt: latest.map_or(0, |latest| latest.records.number),
        epoch: facts.epoch,
        pickups: facts.pickups,
        pid: start.filter(|_| lives).and_then(|start| start.process.as_ref()).map(|process| process.pid),
        state: status.and_then(|status| status.state.clone()),
        errors: status.map_or(0, |status| status.errors),
        outcome: end.map(|end| end.outcome.clone()),
        trouble: status.filter(|_| lives).and_then(|status| status.trouble_words()),
        next: next(facts),
        place: None,
        slots: facts.job.as_ref().map(|job| job.settings.slots.clone()).unwrap_or_default(),
        spent: spent(facts),
        budget: facts.job.as_ref().map(|job| job.settings.resume.budget).unwrap_or_default(),
    }
}

/// The status of a check or a process that the config watches, on a host without an agent: nobody judges it.
pub fn unjudged(name: &SubjectName, kind: SubjectKind, at: WallTime) -> SubjectStatus {
    SubjectStatus {
        name: name.clone(),
        kind,
        verdict: Verdict::Unknown,
        reason: "no agent runs that would judge it".to_owned(),
        since: at,
        phase: Phase::Running,
        host: host_name(),
        policy: String::new(),
        last_beat: None,
        silence_s: None,
        progress: None,
        progress_changed: None,
        attempt: 0,
        epoch: 0,
        pickups: 0,
        pid: None,
        state: None,
        errors: 0,
        outcome: None,
        trouble: None,
        next: Some(Next { what: "an agent judges it: start one with `latido agent`".to_owned(), in_s: None }),
        place: None,
        slots: Vec::new(),
        spent: Spent::default(),
        budget: Budget::default(),
    }
}

/// What all attempts used up together: the endings tell it, and of an attempt without one its latest beat.
pub(crate) fn spent(facts: &JobFacts) -> Spent {
    let endings = records::endings(&facts.folder, &facts.attempts);
    let ended =
        endings.iter().filter_map(|(_, end)| end.as_ref()).fold(Spent::default(), |all, end| all.plus(end.spent));
    let open = facts.latest.as_ref().filter(|latest| latest.records.end.is_none());
    let open = open.and_then(|latest| latest.records.status.as_ref()).map(|status| status.spent);
    ended.plus(open.unwrap_or_default())
}

fn judged(facts: &JobFacts) -> (Verdict, String) {
    let Some(JobFile { settings, .. }) = &facts.job else {
        let why = facts.damaged.first().cloned().unwrap_or_else(|| "its job.json cannot be read".to_owned());
        return (Verdict::Unknown, why);
    };
    let judgement = latido_policy::judge(&latido_driver::lease(settings), &policy_facts(facts));
    let reason = match facts.latest.as_ref() {
        Some(AttemptFacts { state: AttemptState::Running, doubt: Some(why), .. }) => why.clone(),
        Some(AttemptFacts { state: AttemptState::Dead { proof }, .. }) => {
            format!("{}: {proof}", judgement.because)
        }
        Some(AttemptFacts { state: AttemptState::Unknown { why }, .. }) => format!("{}: {why}", judgement.because),
        Some(AttemptFacts { state: AttemptState::Orphaned { living }, .. }) => {
            format!("{}: {}", judgement.because, inspect::list(living))
        }
        Some(AttemptFacts { state: AttemptState::Ended, records, .. }) => match &records.end {
            Some(end) if end.outcome.class == Class::Completed => end.outcome.detail.clone(),
            Some(end) => format!("{}: {}", end.outcome.class, end.outcome.detail),
            None => judgement.because.to_string(),
        },
        Some(AttemptFacts { state: AttemptState::Launching | AttemptState::Running, .. }) | None => {
            judgement.because.to_string()
        }
    };
    let damage = if facts.damaged.is_empty() { String::new() } else { format!(" ({})", facts.damaged.join("; ")) };
    (latido_driver::verdict(judgement.verdict), format!("{reason}{damage}"))
}

/// The newest time that the files tell of.
fn since(facts: &JobFacts, at: WallTime) -> WallTime {
    let made = facts.job.as_ref().map_or(at, |job| job.created_at);
    let Some(latest) = &facts.latest else { return made };
    let records = &latest.records;
    let ended = records.end.as_ref().map(|end| end.ended_at);
    let started = records.start.as_ref().map(|start| start.started_at.unwrap_or(start.launched_at));
    ended.or(started).unwrap_or(made)
}

fn phase(facts: &JobFacts) -> Phase {
    let wants_pause = facts.wanted.as_ref().is_some_and(|wanted| wanted.want == Want::Pause);
    let Some(latest) = &facts.latest else { return Phase::Pending };
    match &latest.state {
        AttemptState::Ended => Phase::Ended,
        // Without an agent nobody acts on these by himself.
        AttemptState::Dead { .. } | AttemptState::Orphaned { .. } | AttemptState::Unknown { .. } => Phase::Held,
        AttemptState::Launching | AttemptState::Running if wants_pause => Phase::Paused,
        AttemptState::Launching => Phase::Launching,
        AttemptState::Running if latest.unkilled().is_some() => Phase::Held,
        AttemptState::Running if latest.records.status.as_ref().is_some_and(|status| status.stopping) => {
            Phase::Draining
        }
        AttemptState::Running => Phase::Running,
    }
}

/// What comes next while no agent runs.
fn next(facts: &JobFacts) -> Option<Next> {
    let name = &facts.name;
    let by_hand = |what: String| Some(Next { what, in_s: None });
    let Some(latest) = &facts.latest else {
        return by_hand(format!("its first attempt: `latido resume {name}` launches it, or an agent does"));
    };
    match &latest.state {
        AttemptState::Ended => match latest.records.end.as_ref().map(|end| end.outcome.class) {
            Some(Class::Completed) => by_hand(format!("nothing; `latido remove {name}` frees its name")),
            Some(Class::Failed | Class::Lost | Class::Stopped | Class::Limit) | None => {
                by_hand(format!("nothing by itself while no agent runs; `latido resume {name}` runs it again"))
            }
        },
        AttemptState::Dead { .. } => by_hand(format!(
            "nothing by itself while no agent runs; `latido resume {name}` records the loss and runs it again"
        )),
        AttemptState::Orphaned { .. } => by_hand(format!(
            "nothing by itself while no agent runs; `latido resume {name}` ends what is left and runs it again"
        )),
        AttemptState::Unknown { .. } => by_hand(format!(
            "nothing, until it can be told; if you know that nothing of it lives: `latido resume {name} --presume-lost`"
        )),
        AttemptState::Launching => by_hand("its supervisor records that the job runs".to_owned()),
        AttemptState::Running if latest.doubt.is_some() => by_hand("nothing, until its supervisor tells".to_owned()),
        AttemptState::Running => {
            let settings = &facts.job.as_ref()?.settings;
            let in_s = latido_policy::next_change(&latido_driver::lease(settings), &policy_facts(facts)).map(Span)?;
            Some(Next { what: "another verdict, if nothing is heard until then".to_owned(), in_s: Some(in_s) })
        }
    }
}

/// True when a status is nothing that somebody has to look at: what `latido status` ends with 0 for.
pub fn is_well(status: &SubjectStatus) -> bool {
    match status.verdict {
        Verdict::Waiting | Verdict::Alive | Verdict::Late => status.trouble.is_none(),
        Verdict::Ended => {
            status.outcome.as_ref().is_some_and(|outcome| matches!(outcome.class, Class::Completed | Class::Stopped))
        }
        Verdict::Missing
        | Verdict::Stale
        | Verdict::Hung
        | Verdict::Failing
        | Verdict::Orphaned
        | Verdict::Dead
        | Verdict::Unknown => status.phase == Phase::Paused,
    }
}
