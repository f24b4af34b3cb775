//! `latido alerts`.

use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::client::{self, AGENT_WITHIN, AskError};
use latido_protocol::alerts::{AlertRequest, AlertsDocument, SilenceScope, Standing};
use latido_protocol::control::{Answer, Request};
use latido_protocol::{Span, WallTime};
use latido_store::{SqliteStore, Store};

use crate::args::alerts::{AlertsArgs, AlertsCommand, SilenceArgs};
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::table::Table;
use crate::{print, subject};

/// The agent ends a silence after 30 days at the latest; one that waits for an end may last as long.
const LONGEST: Span = Span(Duration::from_secs(30 * 24 * 3600));

/// Carries the command out.
pub(crate) fn run(args: &AlertsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let asked = match args.command.as_ref().unwrap_or(&AlertsCommand::List) {
        AlertsCommand::List => return list(args, context),
        AlertsCommand::Silence(silence) => silence_request(silence),
        AlertsCommand::Unsilence { number } => AlertRequest::Unsilence { number: *number },
        AlertsCommand::Ack { fingerprint, by } => {
            AlertRequest::Acknowledge { fingerprint: fingerprint.clone(), by: who(by.as_ref()) }
        }
        AlertsCommand::Test => AlertRequest::Test { by: who(None) },
    };
    let silences = matches!(asked, AlertRequest::Silence { .. });
    let document = change(context, asked)?;
    if args.json {
        print::json(&document)?;
    } else if let Some(silence) = document.silences.last().filter(|_| silences) {
        print::out(&format!("silence {} keeps {} quiet until {}\n", silence.number, silence.scope, silence.until))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn silence_request(args: &SilenceArgs) -> AlertRequest {
    let scope = &args.scope;
    let scope = match (&scope.subject, &scope.rule, &scope.alert) {
        (Some(subject), _, _) => SilenceScope::Subject(subject.clone()),
        (None, Some(rule), _) => SilenceScope::Rule(rule.clone()),
        (None, None, alert) => SilenceScope::Alert(alert.clone().unwrap_or_default()),
    };
    AlertRequest::Silence {
        scope,
        length: args.length.unwrap_or(LONGEST),
        until_resolved: args.until_resolved,
        by: who(args.by.as_ref()),
        reason: args.reason.clone(),
    }
}

/// Who asks, for those who read it later.
fn who(given: Option<&String>) -> String {
    let user = || std::env::var("USER").ok().filter(|user| !user.is_empty());
    given.cloned().or_else(user).unwrap_or_else(|| format!("user {}", rustix::process::getuid().as_raw()))
}

fn ask(context: &Context, asked: AlertRequest) -> Result<Box<AlertsDocument>, AskError> {
    let answer = client::ask_agent(&context.state, Request::Alerts { ask: asked }, AGENT_WITHIN)?;
    let Answer::Alerts { document } = answer else { return Err(AskError::OtherAnswer) };
    Ok(document)
}

/// Changes how alerts are told.
fn change(context: &Context, asked: AlertRequest) -> Result<Box<AlertsDocument>, Failure> {
    let what = "cannot change how alerts are told";
    match ask(context, asked) {
        Ok(document) => Ok(document),
        Err(AskError::Refused { message } | AskError::Unknown { message }) => {
            let next = "`latido alerts list` shows the alerts and silences there are";
            Err(Failure::refused(what, format!("the agent cannot {message}"), next))
        }
        Err(error) => {
            let next = "start the agent with `latido agent`: without one nothing is told";
            Err(Failure::unreachable(what, chain(&error), next))
        }
    }
}

fn list(args: &AlertsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let document = match ask(context, AlertRequest::List) {
        Ok(document) => *document,
        Err(AskError::NobodyThere { .. }) => recorded(context)?,
        Err(error) => {
            print::warn(&format!("cannot {}; what is recorded is read instead", chain(&error)));
            recorded(context)?
        }
    };
    if args.json {
        print::json(&document)?;
    } else {
        print::out(&render(&document))?;
    }
    let fires = |state: Standing| matches!(state, Standing::Firing | Standing::Flapping);
    let is_quiet = !document.alerts.iter().any(|alert| fires(alert.state));
    Ok(if is_quiet { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Without an agent nothing is found or told; what stood at its end can be read.
fn recorded(context: &Context) -> Result<AlertsDocument, Failure> {
    let at: WallTime = subject::at();
    let path = context.state.database();
    if !path.exists() {
        return Ok(latido_driver::recorded_alerts(Vec::new(), &[], at));
    }
    let fail = |why: String| {
        Failure::itself(
            format!("cannot read the alerts in {}", path.display()),
            why,
            "start the agent with `latido agent`: it mends its store",
        )
    };
    let store = SqliteStore::open(&path).map_err(|error| fail(chain(&error)))?;
    let alerts = store.alerts().map_err(|error| fail(chain(&error)))?;
    let silences = store.silences().map_err(|error| fail(chain(&error)))?;
    Ok(latido_driver::recorded_alerts(alerts, &silences, at))
}

fn render(document: &AlertsDocument) -> String {
    let mut text = String::new();
    if !document.agent {
        text.push_str("no agent runs: this is what was recorded last\n");
    }
    if !document.alerts.is_empty() {
        let mut table = Table::new(&["ALERT", "SEVERITY", "STATE", "SINCE", "SUMMARY"]);
        for alert in &document.alerts {
            let mut state = alert.state.to_string();
            if let Some(by) = &alert.muted_by {
                state.push_str(&format!(", muted by {by}"));
            }
            if let Some(by) = &alert.acknowledged_by {
                state.push_str(&format!(", known to {by}"));
            }
            let severity = format!("{:?}", alert.severity).to_lowercase();
            let cells = [alert.fingerprint.clone(), severity, state, alert.started.to_string(), alert.summary.clone()];
            table.row(cells);
        }
        text.push_str(&table.to_string());
    }
    if !document.silences.is_empty() {
        let mut table = Table::new(&["SILENCE", "COVERS", "UNTIL", "BY", "REASON"]);
        for silence in &document.silences {
            let or_resolved = if silence.until_resolved { " or resolved" } else { "" };
            table.row([
                silence.number.to_string(),
                silence.scope.to_string(),
                format!("{}{or_resolved}", silence.until),
                silence.by.clone(),
                silence.reason.clone(),
            ]);
        }
        text.push_str(&table.to_string());
    }
    text
}
