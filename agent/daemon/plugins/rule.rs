//! A rule: asked about what changed at once, and about everything now and then.

use std::collections::BTreeSet;
use std::time::Duration;

use latido_driver::{Fact, Finding};
use latido_plugin_host::{self as guest, Host, Kind, LoadError, PluginSpec, Rule};
use latido_protocol::SubjectName;
use latido_protocol::journal::Severity;
use tokio::sync::broadcast;

use super::{Ground, Reload, Wait, subjects};
use crate::clock;
use crate::settings::PluginSettings;

/// A rule that looks at facts which change without a verdict (progress, errors) sees them within this time.
const EVERYTHING_EVERY: Duration = Duration::from_secs(60);

/// After a fault the rule is asked again after this long; for `liveness` the policy's fixed minimum answers meanwhile.
const AFTER_FAULT: Duration = Duration::from_secs(10);

/// Subjects in one call: what a rule may take up in memory does not grow with what is watched.
const SUBJECTS_MAX: usize = 1000;

/// Changes that come together are asked about together.
const GATHER_FOR: Duration = Duration::from_millis(20);

/// What a rule is asked about next.
enum About {
    Everything,
    These(BTreeSet<SubjectName>),
}

/// Runs a rule until the agent ends.
pub(crate) async fn run(mut ground: Ground, settings: PluginSettings, mut changes: broadcast::Receiver<SubjectName>) {
    let mut about = About::Everything;
    let mut rule: Option<Rule> = None;
    loop {
        if rule.is_none() {
            rule = ground.load_once(&settings, Kind::Rule, load).await;
        }
        let wait = match ask(&ground, &settings.name, rule.as_mut(), about).await {
            Ok(()) => EVERYTHING_EVERY,
            Err(Ending) => return,
        };
        if let Some(rule) = &rule {
            ground.costs(&settings.name, rule.costs());
        }
        let wait = if rule.is_none() || !ground.is_active(&settings.name) { AFTER_FAULT } else { wait };
        about = match gather(&mut ground, &mut changes, wait).await {
            Next::Ask(about) => about,
            Next::Ends => return,
            Next::Reload(told) => {
                ground.load_again(&settings, Kind::Rule, load, &mut rule, told).await;
                About::Everything
            }
        };
    }
}

pub(super) async fn load(host: &Host, spec: PluginSpec) -> Result<Rule, LoadError> {
    host.load_rule(spec).await
}

/// What comes after an answer.
enum Next {
    Ask(About),
    Ends,
    Reload(Reload),
}

/// The agent is ending.
struct Ending;

async fn ask(ground: &Ground, name: &str, rule: Option<&mut Rule>, about: About) -> Result<(), Ending> {
    let named: Vec<SubjectName> = match about {
        About::Everything => Vec::new(),
        About::These(subjects) => subjects.into_iter().collect(),
    };
    let statuses = ground.loader.driver.ask(move |driver| driver.subjects(&named)).await.map_err(|_| Ending)?;
    let Some(rule) = rule else { return Ok(()) };
    let mut statuses = statuses.into_iter().peekable();
    loop {
        let asked: Vec<_> = statuses.by_ref().take(SUBJECTS_MAX).collect();
        let names = asked.iter().map(|status| status.name.clone()).collect();
        let subjects: Vec<_> = asked.into_iter().map(subjects::to_guest).collect();
        let now = clock::wall().as_millis();
        let answer = rule.evaluate(now, &subjects).await;
        if let Some(recorder) = ground.loader.records.of(name) {
            recorder.evaluated((now, &subjects), &answer);
        }
        match answer {
            Ok(findings) => {
                ground.works(name).await;
                let findings = findings.into_iter().map(finding).collect();
                let fact = Fact::RuleAnswered { rule: name.to_owned(), subjects: names, findings };
                ground.loader.driver.tell(fact).await.map_err(|_| Ending)?;
            }
            Err(error) => {
                ground.fault(name, &error).await;
                return Ok(());
            }
        }
        // Asked about nobody it says that it works, which the policy wants to hear.
        if statuses.peek().is_none() {
            return Ok(());
        }
    }
}

/// Waits for changes, or until everything is due.
async fn gather(ground: &mut Ground, changes: &mut broadcast::Receiver<SubjectName>, everything_in: Duration) -> Next {
    let first = tokio::select! {
        change = changes.recv() => change,
        wait = ground.wait(everything_in) => {
            return match wait {
                Wait::Over => Next::Ask(About::Everything),
                Wait::Ends => Next::Ends,
                Wait::Reload(told) => Next::Reload(told),
            };
        }
    };
    let mut subjects = BTreeSet::new();
    match first {
        Ok(subject) => subjects.insert(subject),
        Err(broadcast::error::RecvError::Lagged(_)) => return Next::Ask(About::Everything),
        Err(broadcast::error::RecvError::Closed) => return Next::Ends,
    };
    tokio::time::sleep(GATHER_FOR).await;
    loop {
        match changes.try_recv() {
            Ok(subject) => subjects.insert(subject),
            Err(broadcast::error::TryRecvError::Lagged(_)) => return Next::Ask(About::Everything),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => break,
        };
    }
    Next::Ask(About::These(subjects))
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
