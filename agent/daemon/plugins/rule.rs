//! A rule: asked about what changed at once, and about everything now and then.

use std::collections::BTreeSet;
use std::time::Duration;

use latido_driver::{Fact, Finding};
use latido_plugin_host::{self as guest, Kind, Rule};
use latido_protocol::SubjectName;
use latido_protocol::journal::Severity;
use latido_protocol::status::{Phase, SubjectStatus, Verdict};
use tokio::sync::broadcast;

use super::{Ground, subjects};
use crate::clock;
use crate::settings::PluginSettings;

/// A rule that looks at facts which change without a verdict (progress, errors) sees them within this time.
const EVERYTHING_EVERY: Duration = Duration::from_secs(60);

/// After a fault the rule is asked again after this long; the fixed minimum answers meanwhile.
const AFTER_FAULT: Duration = Duration::from_secs(10);

/// Changes that come together are asked about together.
const GATHER_FOR: Duration = Duration::from_millis(20);

/// The rule that has a fixed minimum behind it.
const LIVENESS: &str = "liveness";

/// What a rule is asked about next.
enum About {
    Everything,
    These(BTreeSet<SubjectName>),
}

/// Runs a rule until the agent ends.
pub(crate) async fn run(mut ground: Ground, settings: PluginSettings, mut changes: broadcast::Receiver<SubjectName>) {
    let load = async |host: &latido_plugin_host::Host, spec| host.load_rule(spec).await;
    let mut about = About::Everything;
    // Until it is loaded the minimum answers, so that nothing is missed by a plugin that cannot be loaded.
    let mut rule: Option<Rule> = None;
    loop {
        if rule.is_none() {
            rule = ground.load_once(&settings, Kind::Rule, load).await;
        }
        let wait = match ask(&ground, &settings.name, rule.as_mut(), about).await {
            Ok(()) => EVERYTHING_EVERY,
            Err(Ending) => return,
        };
        let wait = if rule.is_none() || !ground.is_active(&settings.name) { AFTER_FAULT } else { wait };
        let Some(next) = gather(&mut ground, &mut changes, wait).await else { return };
        about = next;
    }
}

/// The agent is ending.
struct Ending;

async fn ask(ground: &Ground, name: &str, rule: Option<&mut Rule>, about: About) -> Result<(), Ending> {
    let named: Vec<SubjectName> = match about {
        About::Everything => Vec::new(),
        About::These(subjects) => subjects.into_iter().collect(),
    };
    let statuses = ground.driver.ask(move |driver| driver.subjects(&named)).await.map_err(|_| Ending)?;
    if statuses.is_empty() {
        return Ok(());
    }
    let names: Vec<SubjectName> = statuses.iter().map(|status| status.name.clone()).collect();
    let answered = match rule {
        Some(rule) => {
            let subjects: Vec<_> = statuses.iter().cloned().map(subjects::to_guest).collect();
            match rule.evaluate(clock::wall().as_millis(), &subjects).await {
                Ok(findings) => {
                    ground.works(name).await;
                    Some(findings.into_iter().map(finding).collect())
                }
                Err(error) => {
                    ground.fault(name, &error).await;
                    None
                }
            }
        }
        None => None,
    };
    let findings = match answered {
        Some(findings) => findings,
        None if name == LIVENESS => statuses.iter().filter_map(minimum).collect(),
        None => return Ok(()),
    };
    let fact = Fact::RuleAnswered { rule: name.to_owned(), subjects: names, findings };
    ground.driver.tell(fact).await.map_err(|_| Ending)
}

/// Waits for changes, or until everything is due; `None` when the agent ends.
async fn gather(
    ground: &mut Ground,
    changes: &mut broadcast::Receiver<SubjectName>,
    everything_in: Duration,
) -> Option<About> {
    let first = tokio::select! {
        change = changes.recv() => change,
        wait = ground.wait(everything_in) => {
            return match wait {
                super::Wait::Over => Some(About::Everything),
                super::Wait::Ends => None,
            };
        }
    };
    let mut subjects = BTreeSet::new();
    match first {
        Ok(subject) => subjects.insert(subject),
        Err(broadcast::error::RecvError::Lagged(_)) => return Some(About::Everything),
        Err(broadcast::error::RecvError::Closed) => return None,
    };
    tokio::time::sleep(GATHER_FOR).await;
    loop {
        match changes.try_recv() {
            Ok(subject) => subjects.insert(subject),
            Err(broadcast::error::TryRecvError::Lagged(_)) => return Some(About::Everything),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => break,
        };
    }
    Some(About::These(subjects))
}

fn finding(finding: latido_plugin_host::Finding) -> Finding {
    Finding {
        key: finding.key,
        subject: finding.subject,
        severity: match finding.severity {
            guest::Severity::Info => Severity::Info,
            guest::Severity::Warning => Severity::Warning,
            guest::Severity::Critical => Severity::Critical,
        },
        summary: finding.summary,
    }
}

/// What is told while the rule `liveness` cannot run: the verdicts after which somebody has to act, and no more. Its
/// keys are those of the rule, so that an alert goes on when the rule works again.
fn minimum(status: &SubjectStatus) -> Option<Finding> {
    let key = match (status.verdict, status.phase) {
        (_, Phase::Stuck) => "stuck",
        (_, Phase::Held) => "held",
        (Verdict::Missing, _) => "missing",
        (Verdict::Stale, _) => "stale",
        (Verdict::Hung, _) => "hung",
        (Verdict::Failing, _) => "failing",
        (Verdict::Orphaned, _) => "orphaned",
        (Verdict::Dead, _) => "dead",
        (Verdict::Unknown, _) => "unknown",
        (Verdict::Waiting | Verdict::Alive | Verdict::Late | Verdict::Ended, _) => return None,
    };
    Some(Finding {
        key: key.to_owned(),
        subject: status.name.as_str().to_owned(),
        severity: Severity::Critical,
        summary: format!("{} is {key}: {}", status.name, status.reason),
    })
}
