//! What rules find and what the policy decides about it, with names put in.

use std::collections::BTreeSet;
use std::time::Duration;

use latido_policy::{
    About, AlertAction, AlertEvent, AlertKey, AlertRecord, AlertSettings, Condition, Confirm, Event, Moment, RuleName,
    Silence, SilenceEnd, SilenceId, Standing, Telling,
};
use latido_protocol::alerts::SilenceScope;
use latido_protocol::journal::{self, AlertState, AlertTold, Body};
use latido_protocol::{SubjectName, WallTime};
use latido_store::{AlertRow, SilenceRow, Store};

use crate::alert_texts::{AGENT, LIVENESS, MANY, Texts, condition, rule_name, severity, severity_of, to_policy, words};
use crate::fact::Finding;
use crate::translate::fingerprint;
use crate::{Driver, record};

/// Names that stand in an entry about many; the rest are counted.
const WHO_MAX: usize = 10;

impl<S: Store> Driver<S> {
    /// Takes over what the config says of alerts, of rules and of single ones. Told again without a change it changes
    /// nothing.
    pub fn set_alerts(&mut self, settings: AlertSettings, rules: &[String], confirms: &[(String, Confirm)]) {
        self.alerts.asked = rules.iter().map(|rule| rule_name(rule)).collect();
        self.tell(AlertEvent::SettingsChanged { settings });
        for (rule, confirm) in confirms {
            self.tell(AlertEvent::ConfirmChanged { rule: rule_name(rule), confirm: *confirm });
        }
    }

    pub(crate) fn rule_answered(&mut self, rule: &str, subjects: &[SubjectName], findings: Vec<Finding>) {
        let name = self.known_rule(rule);
        let about = |name: &SubjectName| match rule {
            AGENT => Some(About::Plugin(fingerprint(name.as_str()))),
            _ => self.about_subject(name),
        };
        let asked: Vec<(&str, About)> =
            subjects.iter().filter_map(|subject| Some((subject.as_str(), about(subject)?))).collect();
        for finding in findings {
            // A finding about a subject that was not asked about has no call that could end it.
            let Some(&(_, about)) = asked.iter().find(|(subject, _)| *subject == finding.subject) else { continue };
            let alert = AlertKey { rule: name, about, condition: condition(&finding.key) };
            let host = self.host_of(about);
            let texts = self.alerts.texts.entry(alert);
            let texts = texts.or_insert_with(|| Texts::new(rule, &finding.key, &finding.subject));
            texts.summary = finding.summary;
            texts.host.clone_from(&host);
            let host = host.map(fingerprint);
            self.tell(AlertEvent::Found { alert, severity: to_policy(finding.severity), host });
        }
        for about in asked.into_iter().map(|(_, about)| about).collect::<BTreeSet<_>>() {
            self.tell(AlertEvent::Swept { rule: name, about });
        }
        if name != RuleName::Agent {
            self.tell(AlertEvent::RuleAnswered { rule: name });
        }
    }

    /// Whom a rule means by a name.
    fn about_subject(&self, name: &SubjectName) -> Option<About> {
        let worker = || self.registrar.worker(name).map(About::Worker);
        self.book.id(name).map(About::Subject).or_else(worker)
    }

    pub(crate) fn rule_failed(&mut self, rule: &str, detail: &str) {
        let name = self.known_rule(rule);
        let broken = AlertKey { rule: RuleName::Agent, about: About::Rule(name), condition: Condition::RuleBroken };
        let texts = self.alerts.texts.entry(broken).or_insert_with(|| Texts::new(AGENT, "rule-broken", rule));
        texts.summary = format!("rule {rule} cannot answer: {detail}");
        self.tell(AlertEvent::RuleFailed { rule: name });
    }

    /// Ends what fires for a subject that is gone.
    pub(crate) fn forget_alerts(&mut self, about: About) {
        self.tell(AlertEvent::Removed { about });
    }

    /// Tells of a store that takes no records, once it does again too.
    pub(crate) fn store_answered(&mut self, is_away: bool) {
        if std::mem::replace(&mut self.alerts.store_is_away, is_away) == is_away {
            return;
        }
        let severity = is_away.then_some(latido_policy::Severity::Critical);
        self.tell(AlertEvent::Noted { condition: Condition::StoreAway, about: About::Agent, severity });
    }

    /// Tells the policy what the store remembers from before the agent's start.
    pub(crate) fn restore_alerts(&mut self, wall: WallTime) {
        let Some((alerts, silences)) = self.alerts.remembered.take() else { return };
        for row in alerts {
            self.restore_alert(row, wall);
        }
        // A rule that the config has no longer is asked about nobody.
        let is_gone =
            |key: &&AlertKey| matches!(key.rule, RuleName::Other(_)) && !self.alerts.asked.contains(&key.rule);
        for key in self.alerts.texts.keys().filter(is_gone).copied().collect::<Vec<_>>() {
            self.tell(AlertEvent::Swept { rule: key.rule, about: key.about });
        }
        for row in silences {
            self.tell_silence(row, wall);
        }
    }

    /// Silences end by the calendar, so their moments are told anew when time was cut out of the line.
    pub(crate) fn tell_silences(&mut self, wall: WallTime) {
        for row in self.alerts.silences.values().cloned().collect::<Vec<_>>() {
            self.tell_silence(row, wall);
        }
    }

    fn restore_alert(&mut self, row: AlertRow, wall: WallTime) {
        let (Some(standing), Some(about)) = (Standing::of(&row.standing), self.about_of(&row)) else {
            self.pending.alerts_over.push(row.fingerprint);
            return;
        };
        let alert = AlertKey { rule: self.known_rule(&row.rule), about, condition: condition(&row.key) };
        let record = AlertRecord {
            standing,
            severity: severity_of(&row.severity),
            told: severity_of(&row.told),
            acknowledged: row.acknowledged.as_deref().map(severity_of),
            comings: row.comings,
            subjects: row.subjects,
        };
        let host = row.host.clone();
        let texts = Texts {
            host: row.host,
            summary: row.summary,
            started: Some(WallTime::from_millis(row.started_ms)),
            told: WallTime::from_millis(row.told_ms),
            acknowledged_by: row.acknowledged_by,
            record: Some(record),
            ..Texts::new(&row.rule, &row.key, &row.subject)
        };
        self.alerts.texts.insert(alert, texts);
        let ago = |then_ms: u64| Duration::from_millis(wall.as_millis().saturating_sub(then_ms));
        let (held_for, told_ago) = (ago(row.started_ms), ago(row.told_ms));
        self.tell(AlertEvent::Restored { alert, record, held_for, told_ago, host: host.map(fingerprint) });
    }

    /// Whom a row is about; a subject that no folder stands for gets an id all the same, by which it is forgotten.
    fn about_of(&mut self, row: &AlertRow) -> Option<About> {
        let name = fingerprint(row.subject.as_str());
        Some(match row.about.as_str() {
            "agent" => About::Agent,
            "rule" => About::Rule(self.known_rule(&row.subject)),
            "plugin" => About::Plugin(name),
            "host" => About::Host(name),
            "group" => About::Group,
            // Whose row has gone meanwhile has nothing that could end the alert.
            "worker" => About::Worker(self.registrar.worker(&row.subject.parse().ok()?)?),
            "subject" => About::Subject(self.book.reserve(row.subject.parse().ok()?)),
            _ => return None,
        })
    }

    /// Tells a silence, or its end as it is by the calendar of this moment.
    pub(crate) fn tell_silence(&mut self, row: SilenceRow, wall: WallTime) {
        let id = SilenceId(row.number);
        let scope = serde_json::from_str::<SilenceScope>(&row.scope).ok();
        let Some(scope) = scope.and_then(|scope| self.scope(&scope, true)) else {
            self.pending.silences_over.push(row.number);
            return;
        };
        let left = Duration::from_millis(row.until_ms.saturating_sub(wall.as_millis()));
        let until = self.listening.now().after(left);
        let until_resolved = row.until_resolved;
        self.alerts.silences.insert(id, row);
        self.tell(AlertEvent::Silenced { silence: Silence { id, scope, until, until_resolved } });
    }

    /// What a silence covers; `None` where there is no such thing. With `reserves` a subject may be found later.
    pub(crate) fn scope(&mut self, scope: &SilenceScope, reserves: bool) -> Option<latido_policy::SilenceScope> {
        Some(match scope {
            SilenceScope::Subject(name) => {
                let known = self.about_subject(name);
                let reserved = || reserves.then(|| About::Subject(self.book.reserve(name.clone())));
                latido_policy::SilenceScope::About(known.or_else(reserved)?)
            }
            SilenceScope::Rule(rule) => latido_policy::SilenceScope::Rule(rule_name(rule)),
            SilenceScope::Alert(fingerprint) => {
                let known = self.alerts.find(fingerprint);
                let alert = known.or_else(|| reserves.then(|| self.alert_to_come(fingerprint))?)?;
                latido_policy::SilenceScope::Alert(alert)
            }
        })
    }

    /// The key of an alert of a rule that is not there at the moment. Names hold no `/`, a rule's own word may.
    fn alert_to_come(&mut self, fingerprint: &str) -> Option<AlertKey> {
        let (rule, rest) = fingerprint.split_once('/')?;
        let (key, subject) = rest.rsplit_once('/')?;
        let rule = self.known_rule(rule);
        let about = match (rule, subject) {
            (RuleName::Agent, _) => return None,
            (RuleName::Liveness | RuleName::Other(_), MANY) => About::Group,
            (RuleName::Liveness | RuleName::Other(_), name) => {
                let name = name.parse().ok()?;
                self.about_subject(&name).unwrap_or_else(|| About::Subject(self.book.reserve(name)))
            }
        };
        Some(AlertKey { rule, about, condition: condition(key) })
    }

    pub(crate) fn carry_alert(&mut self, action: AlertAction, wall: WallTime) {
        match action {
            AlertAction::Tell { alert, severity, telling, held_for } => {
                self.tell_people(alert, severity, telling, held_for, wall);
            }
            AlertAction::Record { alert, record } => {
                let texts = self.texts(alert);
                texts.record = record;
                texts.started.get_or_insert(wall);
                if record.is_none_or(|record| record.acknowledged.is_none()) {
                    texts.acknowledged_by = None;
                }
                self.keep_alert(alert);
            }
            AlertAction::Forget { alert } => drop(self.alerts.texts.remove(&alert)),
            AlertAction::KeepSilence { silence } => self.keep_silence(silence, wall),
            AlertAction::EndSilence { silence, because } => self.end_silence(silence, because, wall),
        }
    }

    fn tell_people(
        &mut self,
        alert: AlertKey,
        level: latido_policy::Severity,
        telling: Telling,
        held_for: Duration,
        wall: WallTime,
    ) {
        let who = self.alerts.members(alert, WHO_MAX);
        let texts = self.texts(alert);
        if telling.opens() || texts.started.is_none() {
            let held_ms = u64::try_from(held_for.as_millis()).unwrap_or(u64::MAX);
            texts.started = Some(WallTime::from_millis(wall.as_millis().saturating_sub(held_ms)));
        }
        texts.told = wall;
        let (told, comings, subjects) = word(telling);
        let comings = comings.or(texts.record.map(|record| record.comings)).unwrap_or(1);
        let subjects = subjects.or(texts.record.map(|record| record.subjects)).unwrap_or(1);
        let is_over = told == journal::Telling::Ended;
        if alert.about == About::Group {
            texts.summary = many(&texts.key, subjects, &who);
        }
        let body = Body::Alert(Box::new(AlertTold {
            rule: texts.rule.clone(),
            fingerprint: texts.fingerprint(),
            subject: texts.subject.clone(),
            severity: severity(level),
            state: if is_over { AlertState::Resolved } else { AlertState::Firing },
            summary: texts.summary.clone(),
            started: texts.started.unwrap_or(wall),
            telling: told,
            reason: telling.to_string(),
            comings,
            subjects,
            who,
        }));
        // The last resort where no sink works: the agent's own log.
        tracing::warn!(fingerprint = texts.fingerprint(), severity = %level, %telling, summary = texts.summary, "alert");
        self.pending.entries.push(record::entry(wall, &body));
        self.keep_alert(alert);
    }

    /// Puts the alert's row into what is written next, or takes it out.
    fn keep_alert(&mut self, alert: AlertKey) {
        let texts = self.texts(alert);
        let fingerprint = texts.fingerprint();
        let row = texts.row(alert.about);
        if row.is_none() {
            texts.started = None;
        }
        self.pending.alerts.retain(|other| other.fingerprint != fingerprint);
        self.pending.alerts_over.retain(|other| *other != fingerprint);
        match row {
            Some(row) => self.pending.alerts.push(row),
            None => self.pending.alerts_over.push(fingerprint),
        }
    }

    fn keep_silence(&mut self, silence: Silence, wall: WallTime) {
        let Some(row) = self.alerts.silences.get_mut(&silence.id) else { return };
        let left = silence.until.since(self.listening.now());
        row.until_ms = wall.as_millis().saturating_add(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let row = row.clone();
        self.pending.silences.retain(|other| other.number != row.number);
        self.pending.silences.push(row);
    }

    fn end_silence(&mut self, silence: SilenceId, because: SilenceEnd, wall: WallTime) {
        let Some(row) = self.alerts.silences.remove(&silence) else { return };
        self.pending.silences.retain(|other| other.number != row.number);
        self.pending.silences_over.push(row.number);
        let detail = format!("silence {} by {}: {because}", row.number, row.asked_by);
        self.pending.entries.push(record::entry(wall, &record::noted("silence-ended", detail)));
    }

    /// The texts of an alert; made here for what the policy found by itself.
    fn texts(&mut self, alert: AlertKey) -> &mut Texts {
        if !self.alerts.texts.contains_key(&alert) {
            let made = self.make_texts(alert);
            self.alerts.texts.insert(alert, made);
        }
        self.alerts.texts.entry(alert).or_insert_with(|| Texts::new(AGENT, "unknown", AGENT))
    }

    fn make_texts(&self, alert: AlertKey) -> Texts {
        let rule = self.rule_text(alert.rule);
        let siblings = |key: &&AlertKey| (key.rule, key.condition) == (alert.rule, alert.condition);
        let key = alert.condition.word().map(str::to_owned);
        // A rule's own word is known from the members of the group, which were found first.
        let key = key.or_else(|| {
            let sibling = self.alerts.texts.keys().find(siblings)?;
            self.alerts.texts.get(sibling).map(|texts| texts.key.clone())
        });
        let mut reason = words(alert.condition).to_owned();
        let subject = match alert.about {
            About::Agent | About::Plugin(_) | About::Host(_) => AGENT.to_owned(),
            About::Group => MANY.to_owned(),
            About::Rule(rule) => self.rule_text(rule),
            About::Subject(id) => {
                reason = self.policy.subject(id).map_or(reason, |view| view.because.to_string());
                self.book.name(id).map(ToString::to_string).unwrap_or_default()
            }
            About::Worker(id) => {
                reason = self.policy.registry().worker(id).map_or(reason, |view| view.because.to_string());
                self.registrar.name(id).map(ToString::to_string).unwrap_or_default()
            }
        };
        let key = key.unwrap_or_else(|| "found".to_owned());
        let host = self.host_of(alert.about);
        let summary = if subject == AGENT { reason } else { format!("{subject} is {key}: {reason}") };
        Texts { summary, host, ..Texts::new(&rule, &key, &subject) }
    }

    fn rule_text(&self, rule: RuleName) -> String {
        let own = match rule {
            RuleName::Agent => AGENT,
            RuleName::Liveness => LIVENESS,
            RuleName::Other(_) => "a rule",
        };
        self.alerts.rules.get(&rule).cloned().unwrap_or_else(|| own.to_owned())
    }

    fn known_rule(&mut self, rule: &str) -> RuleName {
        let name = rule_name(rule);
        self.alerts.rules.entry(name).or_insert_with(|| rule.to_owned());
        name
    }

    fn host_of(&self, about: About) -> Option<String> {
        match about {
            About::Subject(id) => self.book.latest(id)?.start.as_ref().map(|start| start.host.clone()),
            About::Worker(id) => self.registrar.host(id),
            About::Agent | About::Rule(_) | About::Plugin(_) | About::Host(_) | About::Group => None,
        }
    }

    pub(crate) fn tell(&mut self, event: AlertEvent) {
        let now: Moment = self.listening.now();
        self.policy.handle_event(Event::Alert(event), now);
    }
}

/// What is told, in the journal's word, with the numbers that it brings.
fn word(telling: Telling) -> (journal::Telling, Option<u32>, Option<u32>) {
    match telling {
        Telling::Began { .. } => (journal::Telling::Began, None, None),
        Telling::BeganForMany { subjects } => (journal::Telling::Began, None, Some(subjects)),
        Telling::Grew { subjects } => (journal::Telling::Grew, None, Some(subjects)),
        Telling::Flaps { comings } => (journal::Telling::Flaps, Some(comings), None),
        Telling::Settled { comings } => (journal::Telling::Settled, Some(comings), None),
        Telling::Rose => (journal::Telling::Rose, None, None),
        Telling::Reminder => (journal::Telling::Reminder, None, None),
        Telling::Resolved { comings, because: _ } => (journal::Telling::Ended, Some(comings), None),
    }
}

fn many(key: &str, subjects: u32, who: &[String]) -> String {
    let named = who.join(", ");
    match usize::try_from(subjects).unwrap_or(usize::MAX).saturating_sub(who.len()) {
        0 => format!("{subjects} subjects are {key}: {named}"),
        _ if who.is_empty() => format!("{subjects} subjects were {key}"),
        more => format!("{subjects} subjects are {key}: {named} and {more} more"),
    }
}
