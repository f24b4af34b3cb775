//! `latido why`.

use std::process::ExitCode;

use latido::jobs::inspect::{self, JobFacts};
use latido::jobs::records;
use latido::settings::MoneyLimit;
use latido_protocol::files::{Budget, End, Money, Spent};
use latido_protocol::status::SubjectStatus;
use latido_protocol::{Redaction, WallTime};

use crate::args::WhyArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::table::one_line;
use crate::{print, status, subject};

/// Carries the command out.
pub(crate) fn run(args: &WhyArgs, context: &Context) -> Result<ExitCode, Failure> {
    let document = status::document(context, std::slice::from_ref(&args.subject), "explain")?;
    let Some(found) = document.subjects.first() else {
        return Err(subject::unknown(&context.state, &args.subject, "explain"));
    };
    let told_by = match &document.agent {
        Some(agent) => format!("the agent, pid {}, which last looked {}", agent.identity.pid, agent.swept_at),
        None => "the files and processes: no agent runs".to_owned(),
    };
    let mut text = String::new();
    let mut say = |key: &str, value: String| text.push_str(&format!("{:<12}{}\n", key, one_line(&value)));
    say("subject", found.name.to_string());
    say("verdict", found.verdict.to_string());
    say("reason", found.reason.clone());
    say("since", found.since.to_string());
    say("phase", found.phase.to_string());
    say("told by", told_by);
    if let Some(trouble) = &found.trouble {
        say("trouble", trouble.clone());
    }
    if let Some(place) = found.place {
        say("place", format!("{place} in line"));
    }
    if !found.slots.is_empty() {
        say("slots", found.slots.join(", "));
    }
    facts(found, document.at, &mut say);
    if let Some(job) = inspect::inspect(&context.state, &args.subject) {
        launched(&job, &context.settings.agent.redaction, &mut say);
        lease(&job, &mut say);
        attempts(&job, &mut say);
    }
    match &found.next {
        Some(next) => match next.in_s {
            Some(in_s) => say("next", format!("{}, in {}", next.what, status::span(in_s))),
            None => say("next", next.what.clone()),
        },
        None => say("next", "nothing by itself".to_owned()),
    }
    print::out(&text)?;
    Ok(if status::is_well(found) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// How long before the document a time was, by the wall clock: for people, no decision is taken on it.
fn ago(then: WallTime, at: WallTime) -> String {
    let seconds = at.as_millis().saturating_sub(then.as_millis()) / 1000;
    format!("{} ago, {then}", status::span(latido_protocol::Span(std::time::Duration::from_secs(seconds))))
}

/// Two ages: of the last beat, and of the last change of progress.
fn facts(found: &SubjectStatus, at: WallTime, say: &mut impl FnMut(&str, String)) {
    say("last beat", found.last_beat.map_or_else(|| "none of its own yet".to_owned(), |then| ago(then, at)));
    say("changed", found.progress_changed.map_or_else(|| "no progress told yet".to_owned(), |then| ago(then, at)));
    if let Some(silence) = found.silence_s {
        say("silence", format!("{} of listening time", status::span(silence)));
    }
    if let Some(progress) = &found.progress {
        say("progress", status::progress(progress));
        if let Some(checkpoint) = &progress.checkpoint {
            say("checkpoint", checkpoint.clone());
        }
    }
    if let Some(state) = &found.state {
        say("state", state.clone());
    }
    if found.errors > 0 {
        say("errors", found.errors.to_string());
    }
    if !found.spent.is_nothing() || !found.budget.is_none() {
        say("used up", used_up(found.spent, found.budget));
    }
    if let Some(pid) = found.pid {
        say("pid", format!("{pid} on {}", found.host));
    }
}

/// What all attempts used up together, each counter with what it may come to.
fn used_up(spent: Spent, budget: Budget) -> String {
    let counters = [
        ("turns", spent.turns.to_string(), budget.turns.to_string(), spent.turns > 0),
        ("tokens", spent.tokens.to_string(), budget.tokens.to_string(), spent.tokens > 0),
        ("money", Money(spent.money).to_string(), MoneyLimit(budget.money).to_string(), spent.money > 0),
    ];
    let told = counters.into_iter().filter_map(|(counter, spent, budget, is_told)| match budget.as_str() {
        "none" => is_told.then(|| format!("{counter} {spent}")),
        budget => Some(format!("{counter} {spent} of {budget}")),
    });
    told.collect::<Vec<_>>().join(", ")
}

/// What its latest attempt runs, and what was noted when it was launched.
fn launched(job: &JobFacts, redaction: &Redaction, say: &mut impl FnMut(&str, String)) {
    let start = job.latest.as_ref().and_then(|latest| latest.records.start.as_ref());
    let command = start.map(|start| &start.command).or(job.job.as_ref().map(|job| &job.command));
    if let Some(command) = command {
        say("command", redaction.line(command));
    }
    for note in start.into_iter().flat_map(|start| &start.notes) {
        say("noted", note.clone());
    }
}

fn lease(job: &JobFacts, say: &mut impl FnMut(&str, String)) {
    let Some(file) = &job.job else { return };
    let settings = &file.settings;
    say(
        "lease",
        format!(
            "policy {}, beats {}: expected every {}, stale after {}, first within {}, hung after {}",
            settings.policy,
            format!("{:?}", settings.beats).to_lowercase(),
            settings.interval,
            settings.ttl,
            settings.start_within,
            settings.hung_after,
        ),
    );
    let on: Vec<String> = settings.resume.on.iter().map(|on| format!("{on:?}").to_lowercase()).collect();
    say(
        "resume",
        format!(
            "on {}, at most {} attempts and {} losses, backoff {} to {}",
            on.join(", "),
            settings.resume.max_attempts,
            settings.resume.max_pickups,
            settings.resume.backoff.first,
            settings.resume.backoff.longest,
        ),
    );
    if let Some(wanted) = &job.wanted {
        say("wanted", format!("{}, by {}, {}", format!("{:?}", wanted.want).to_lowercase(), wanted.by, wanted.at));
    }
    for message in &job.damaged {
        say("damaged", message.clone());
    }
}

fn attempts(job: &JobFacts, say: &mut impl FnMut(&str, String)) {
    for (number, end) in records::endings(&job.folder, &job.attempts) {
        let how = match &end {
            Some(End { outcome, proof, recorded_by, epoch, ended_at, .. }) => format!(
                "epoch {epoch}, ended {ended_at}: {}, {} (recorded by {recorded_by}; {proof})",
                outcome.class, outcome.detail
            ),
            None => "no ending recorded".to_owned(),
        };
        say(&format!("attempt {number}"), how);
    }
}
