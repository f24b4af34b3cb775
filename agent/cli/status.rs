//! `latido status`.

use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::client::{self, AGENT_WITHIN, AskError};
use latido::jobs::clock::Deadline;
use latido::jobs::judge;
use latido_protocol::control::{Answer, Request};
use latido_protocol::status::{Phase, StatusDocument, SubjectKind, SubjectStatus};
use latido_protocol::{Progress, Span, SubjectName};

use crate::args::StatusArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::table::{Table, one_line};
use crate::{print, subject};

/// Between two looks of `--watch`.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Carries the command out.
pub(crate) fn run(args: &StatusArgs, context: &Context) -> Result<ExitCode, Failure> {
    let mut shown: Option<String> = None;
    loop {
        let document = document(context, &args.subjects, "show the status of")?;
        let text = render(&document, args)?;
        // What changes by itself, such as the time of the document, is no news.
        let news = if args.json { stable(&document) } else { text.clone() };
        if shown.as_ref() != Some(&news) {
            print::out(&text)?;
            shown = Some(news);
        }
        if !args.watch {
            if let Some(why) = document.agent.as_ref().and_then(|agent| agent.config_refused.as_ref()) {
                print::warn(&format!("the config as it is cannot be in force, what was read before is: {why}"));
            }
            if let Some(silence) = silent_agent(context, &document) {
                return Err(silence);
            }
            let is_well = document.subjects.iter().all(judge::is_well);
            return Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(1) });
        }
        Deadline::NEVER.rest(WATCH_EVERY);
    }
}

/// An agent that should be there and does not answer: nobody judges, resumes or alerts, however well the jobs look.
fn silent_agent(context: &Context, document: &StatusDocument) -> Option<Failure> {
    let looked_at = client::lost_agent(&context.state).filter(|_| document.agent.is_none())?;
    Some(Failure::unreachable(
        "cannot reach the agent: what is shown comes from the files",
        format!("it was started and did not end by order; it last looked around at {looked_at}"),
        "continue it if it is stopped, else start it again with `latido agent`",
    ))
}

/// The document of the agent where one answers, else that of the files.
pub(crate) fn document(context: &Context, subjects: &[SubjectName], doing: &str) -> Result<StatusDocument, Failure> {
    let asked = client::ask_agent(&context.state, Request::Status { subjects: subjects.to_vec() }, AGENT_WITHIN);
    match asked {
        Ok(Answer::Status { document }) => return with_untold(*document, context, subjects, doing),
        Err(AskError::NobodyThere { .. }) => {}
        Ok(_) => print::warn("the agent answers another question; the files are read instead"),
        Err(AskError::Refused { message }) => {
            print::warn(&format!("the agent cannot {message}; the files are read instead"));
        }
        Err(error) => {
            print::warn(&format!("cannot {}; the files are read instead", crate::failure::chain(&error)));
        }
    }
    let (mut document, mut unknown) = judge::document(&context.state, subjects, subject::at())
        .map_err(|error| subject::unreadable(&context.state, &error))?;
    for (name, kind) in configured(context) {
        let is_asked_for = subjects.is_empty() || unknown.contains(name);
        if is_asked_for && !document.subjects.iter().any(|status| status.name == *name) {
            document.subjects.push(judge::unjudged(name, kind, document.at));
            unknown.retain(|other| other != name);
        }
    }
    document.subjects.sort_by(|one, other| one.name.cmp(&other.name));
    match unknown.first() {
        Some(name) => Err(subject::unknown(&context.state, name, doing)),
        None => Ok(document),
    }
}

/// The agent's document with those beside it of whom the agent has not been told yet, and whose files are there already.
fn with_untold(
    mut document: StatusDocument,
    context: &Context,
    subjects: &[SubjectName],
    doing: &str,
) -> Result<StatusDocument, Failure> {
    let is_told = |name: &&SubjectName| document.subjects.iter().any(|status| status.name == **name);
    let untold: Vec<SubjectName> = subjects.iter().filter(|name| !is_told(name)).cloned().collect();
    if untold.is_empty() {
        return Ok(document);
    }
    let (found, unknown) = judge::document(&context.state, &untold, document.at)
        .map_err(|error| subject::unreadable(&context.state, &error))?;
    document.subjects.extend(found.subjects);
    document.subjects.sort_by(|one, other| one.name.cmp(&other.name));
    unknown.first().map_or(Ok(document), |name| Err(subject::unknown(&context.state, name, doing)))
}

/// What the config watches and no folder stands for: without an agent it is judged by nobody, which is not well.
fn configured(context: &Context) -> impl Iterator<Item = (&SubjectName, SubjectKind)> {
    let checks = context.settings.checks.keys().map(|name| (name, SubjectKind::Check));
    checks.chain(context.settings.processes.keys().map(|name| (name, SubjectKind::Process)))
}

fn render(document: &StatusDocument, args: &StatusArgs) -> Result<String, Failure> {
    if !args.json {
        return Ok(table(document));
    }
    let written = if args.watch { serde_json::to_string(document) } else { serde_json::to_string_pretty(document) };
    match written {
        Ok(text) => Ok(format!("{text}\n")),
        Err(error) => Err(Failure::itself(
            "cannot write the status as JSON",
            error.to_string(),
            "run it without --json, and report this",
        )),
    }
}

fn stable(document: &StatusDocument) -> String {
    document
        .subjects
        .iter()
        .map(|status| {
            format!("{} {} {} {} {:?}\n", status.name, status.verdict, status.phase, status.attempt, status.progress)
        })
        .collect()
}

fn table(document: &StatusDocument) -> String {
    let mut table = Table::new(&["NAME", "VERDICT", "PHASE", "ATTEMPT", "PROGRESS", "REASON"]);
    for status in &document.subjects {
        table.row([
            status.name.to_string(),
            status.verdict.to_string(),
            status.phase.to_string(),
            status.attempt.to_string(),
            status.progress.as_ref().map_or_else(|| "-".to_owned(), progress),
            reason(status),
        ]);
    }
    if table.len() == 0 {
        "nothing is watched yet; start a job with `latido run`\n".to_owned()
    } else {
        table.to_string()
    }
}

/// The reason, with what it does not say itself: for what a job waits in line, and what is wrong with its files.
fn reason(status: &SubjectStatus) -> String {
    let mut told = status.reason.clone();
    let place = status.next.as_ref().filter(|_| status.phase == Phase::Queued).map(|next| next.what.clone());
    for more in place.into_iter().chain(status.trouble.clone()) {
        if !told.contains(&more) {
            told = format!("{told}; {more}");
        }
    }
    told
}

/// Progress in one short text.
pub(crate) fn progress(progress: &Progress) -> String {
    let fraction = progress.fraction.map(|fraction| format!("{:.0}%", fraction * 100.0));
    let counted = match (progress.done, progress.total) {
        (Some(done), Some(total)) => Some(format!("{done}/{total}")),
        (Some(done), None) => Some(format!("{done} done")),
        (None, Some(total)) => Some(format!("of {total}")),
        (None, None) => None,
    };
    let texts: Vec<String> =
        [fraction, counted, progress.step.as_deref().map(one_line)].into_iter().flatten().collect();
    if texts.is_empty() { "-".to_owned() } else { texts.join(" ") }
}

/// A duration for people: whole seconds from one second on.
pub(crate) fn span(span: Span) -> String {
    let rounded = if span.0 >= Duration::from_secs(1) { Duration::from_secs(span.0.as_secs()) } else { span.0 };
    Span(Duration::from_millis(u64::try_from(rounded.as_millis()).unwrap_or(u64::MAX))).to_string()
}

/// True when a subject is nothing that somebody has to look at.
pub(crate) fn is_well(status: &SubjectStatus) -> bool {
    judge::is_well(status)
}
