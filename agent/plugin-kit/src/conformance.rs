//! What every plugin of a kind has to bear: nothing at all, the most that there is, the same again, a new instance at any
//! moment, texts that mean harm, and capabilities that refuse.
//!
//! What is judged is what the agent relies on: a plugin never faults, it answers its own typed errors, and a sink never
//! acknowledges what it could not store.

pub(crate) mod inputs;

use std::collections::BTreeSet;

use latido_plugin_host::{Asked, CallError, FaultKind, Kind, LoadError, RefusalKind, Then};
use serde_json::{Value, json};

use crate::case::{Action, NOW_MS};
use crate::clock;
use crate::onlooker::{Rules, SeenCall};
use crate::plugin::Plugin;
use crate::stage::{Place, Running, Setting, StageError, Workshop};
use crate::told;
use crate::trial::Report;

/// Entries in the largest batch, subjects in the largest question.
const MOST: usize = 1_000;

/// Bytes in the largest batch.
const BYTES: usize = 4 << 20;

/// Lines and bytes of output that are looked at together.
const OUTPUT: (usize, usize) = (1_000, 64 << 10);

/// Calls of capabilities that are let fail one by one.
const CALLS: u64 = 40;

/// Calls that belong together.
struct Trial {
    name: &'static str,
    about: &'static str,
    actions: Vec<Action>,
}

/// Runs the suite, with the first of these settings that the plugin takes, or with none.
pub(crate) fn run(workshop: &Workshop, plugin: &Plugin, settings: &[Value]) -> Result<Vec<Report>, StageError> {
    let mut suite = Suite { workshop, plugin, settings: json!({}), reports: Vec::new() };
    suite.workshop.runtime.block_on(async {
        if !suite.finds_settings(settings).await? {
            return Ok(());
        }
        suite.odd_settings().await?;
        for trial in trials(plugin.kind) {
            suite.bears(trial).await?;
        }
        suite.refused().await
    })?;
    Ok(suite.reports)
}

struct Suite<'a> {
    workshop: &'a Workshop,
    plugin: &'a Plugin,
    settings: Value,
    reports: Vec<Report>,
}

/// What one run of calls did.
#[derive(Default)]
struct Played {
    seen: Vec<SeenCall>,
    faults: Vec<String>,
    /// whether it did not answer in time
    is_late: bool,
    /// entries of the batches that it took
    given: BTreeSet<u64>,
    /// those of them that it acknowledged and did not refuse
    acknowledged: BTreeSet<u64>,
    report: Report,
}

impl Suite<'_> {
    /// The settings with which it can be tested: those of a case, or none.
    async fn finds_settings(&mut self, of_cases: &[Value]) -> Result<bool, StageError> {
        let mut why = String::new();
        for settings in of_cases.iter().chain([&json!({})]) {
            match self.load(settings, None).await? {
                Ok(_) => {
                    self.settings = settings.clone();
                    return Ok(true);
                }
                Err(CallError::Plugin { answer, .. }) => {
                    why = format!("it refuses its settings: {}", told::error(&answer))
                }
                Err(CallError::Fault(fault)) => why = fault.to_string(),
            }
        }
        let fault = format!("{why}; write a case with `settings` that it takes, so that the suite can run with them");
        self.report("it takes its settings", "without settings, or with those of a case", vec![fault]);
        Ok(false)
    }

    async fn load(
        &self,
        settings: &Value,
        rules: Option<Rules>,
    ) -> Result<Result<(Place, Running), CallError>, StageError> {
        let place = Place::new(self.plugin)?;
        place.onlooker.rule(rules);
        let setting = Setting::new(settings.clone(), NOW_MS, 0);
        match place.load(&self.workshop.host, self.plugin, &setting).await {
            Ok(running) => Ok(Ok((place, running))),
            Err(LoadError::Start { source, .. }) => Ok(Err(source)),
            Err(error) => Err(StageError::Load(error)),
        }
    }

    fn report(&mut self, name: &str, about: &str, faults: Vec<String>) {
        let report = Report { name: name.to_owned(), about: Some(about.to_owned()), faults, ..Report::default() };
        self.reports.push(report);
    }

    /// Settings that no plugin has asked for are refused in words, or taken; they end nothing.
    async fn odd_settings(&mut self) -> Result<(), StageError> {
        let deep = (0..50).fold(json!("deep"), |inner, _| json!([inner]));
        let mut faults = Vec::new();
        for settings in [
            json!({ "no-such-setting": true }),
            json!({ "": null, "a\"b": "\u{202e}", "deep": deep }),
            json!({ "long": "x".repeat(64 << 10) }),
        ] {
            if let Err(CallError::Fault(fault)) = self.load(&settings, None).await? {
                let shown: String = settings.to_string().chars().take(60).collect();
                faults.push(format!("with the settings {shown}: {fault}"));
            }
        }
        self.report("settings that mean nothing", "are refused in words, or taken", faults);
        Ok(())
    }

    async fn bears(&mut self, trial: Trial) -> Result<(), StageError> {
        let begun = clock::now();
        let played = self.play(&trial.actions, None).await?;
        let took = clock::now().saturating_duration_since(begun).as_millis();
        self.reports.push(Report {
            name: trial.name.to_owned(),
            about: Some(trial.about.to_owned()),
            faults: played.faults,
            took_ms: u64::try_from(took).unwrap_or(u64::MAX),
            ..played.report
        });
        Ok(())
    }

    /// Calls the plugin in a fresh place, and judges what every answer is judged by.
    async fn play(&self, actions: &[Action], rules: Option<Rules>) -> Result<Played, StageError> {
        let mut played = Played::default();
        let (place, mut running) = match self.load(&self.settings, rules).await? {
            Ok(loaded) => loaded,
            Err(CallError::Plugin { .. }) => return Ok(played),
            Err(CallError::Fault(fault)) => {
                played.faults.push(fault.to_string());
                return Ok(played);
            }
        };
        for action in actions {
            match running.call(action).await {
                Ok(answer) => {
                    if let Action::Write(entries) = action {
                        played.take_acknowledgement(&answer, entries.sequences());
                    }
                }
                Err(CallError::Plugin { .. }) => {}
                Err(CallError::Fault(fault)) => {
                    played.faults.push(fault.to_string());
                    // Who does not answer in time once does not the next time, and nobody waits for each.
                    played.is_late = matches!(fault.kind, FaultKind::CpuDeadline(_) | FaultKind::WallDeadline(_));
                    if played.is_late {
                        break;
                    }
                }
            }
        }
        played.seen = place.onlooker.take_calls();
        let costs = running.costs();
        (played.report.fuel, played.report.memory) = (costs.fuel, costs.memory_peak);
        (played.report.capabilities, played.report.logs) = (place.onlooker.count(), place.onlooker.take_logs());
        played.faults = played.faults.iter().map(|fault| place.without_folder(fault)).collect();
        Ok(played)
    }

    /// Lets capabilities refuse: all of them in each way, and each call alone.
    async fn refused(&mut self) -> Result<(), StageError> {
        let actions = ordinary(self.plugin.kind);
        let usual = self.play(&actions, None).await?;
        if usual.is_late {
            let fault = format!("not run, since it does not answer in time: {}", usual.faults.join("; "));
            self.report("capabilities that refuse", "all of them, and each call alone", vec![fault]);
            return Ok(());
        }
        let calls = u64::try_from(usual.seen.len()).unwrap_or(u64::MAX).min(CALLS);
        let stored = stored(&usual.seen);
        for refusal in RefusalKind::ALL {
            let refuse = move || Then::Refuse(refusal, "as the suite says".to_owned()).at_once();
            let all = self.play(&actions, Some(Box::new(move |_: &Asked| Some(refuse())))).await?;
            let mut faults = all.judged("every capability", &stored);
            for number in 1..=calls {
                let one = move |asked: &Asked| (asked.number == number).then(refuse);
                let played = self.play(&actions, Some(Box::new(one))).await?;
                faults.extend(played.judged(&format!("call {number}"), &stored));
            }
            let name = format!("capabilities that answer `{}`", refusal.name());
            self.report(&name, "all of them, and each call alone: no fault, and nothing false is acknowledged", faults);
        }
        self.odd_answers(&actions, &stored).await
    }

    /// Answers that are right in form and of no use.
    async fn odd_answers(&mut self, actions: &[Action], stored: &BTreeSet<u64>) -> Result<(), StageError> {
        let mut faults = Vec::new();
        for answer in [
            json!({ "ok": { "status": 500, "headers": [], "body": "\u{0}\u{202e}" } }),
            json!({ "ok": { "status": 429, "headers": [["retry-after", "-1"], ["retry-after", "soon"]], "body": "{" } }),
            json!({ "ok": { "base64": "/////w==" } }),
            json!({ "ok": "{\"half\": " }),
            json!({ "ok": [[]] }),
            json!({ "ok": [["text", null, 1.5], [{ "blob": "AAAA" }]] }),
            json!({ "ok": [] }),
        ] {
            let shown = answer.to_string();
            let rule = move |asked: &Asked| reads(asked).then(|| Then::Answer(answer.clone()).at_once());
            let played = self.play(actions, Some(Box::new(rule))).await?;
            faults.extend(played.judged(&format!("each answer {shown}"), stored));
        }
        self.report("answers of no use", "what was stored or a server says is damaged: no fault", faults);
        Ok(())
    }
}

impl Played {
    fn take_acknowledgement(&mut self, answer: &Value, batch: &[u64]) {
        self.given.extend(batch);
        let durable = answer.get("durable").and_then(Value::as_u64).unwrap_or(0);
        let newest = self.given.last().copied().unwrap_or(0);
        if durable > newest {
            self.faults.push(format!("it acknowledged entry {durable}; the newest that it took is {newest}"));
        }
        let refused = answer.get("refused").and_then(Value::as_array).cloned().unwrap_or_default();
        let refused: BTreeSet<u64> = refused.iter().filter_map(|one| one.get("sequence")?.as_u64()).collect();
        self.acknowledged.extend(self.given.range(..=durable).filter(|sequence| !refused.contains(sequence)));
    }

    /// What is wrong where capabilities refused. `usual` are the entries that it stores when none does.
    fn judged(&self, what: &str, usual: &BTreeSet<u64>) -> Vec<String> {
        let mut faults: Vec<String> = self.faults.iter().map(|fault| format!("{what}: {fault}")).collect();
        let stored = stored(&self.seen);
        let lost: Vec<String> = self
            .acknowledged
            .iter()
            .filter(|sequence| usual.contains(sequence) && !stored.contains(sequence))
            .map(ToString::to_string)
            .collect();
        if !lost.is_empty() {
            faults.push(format!("{what}: it acknowledged entries that it could not store: {}", lost.join(", ")));
        }
        faults
    }
}

/// Whether a call reads, or asks somebody outside.
fn reads(asked: &Asked) -> bool {
    matches!(asked.function, "query" | "get" | "send" | "look" | "read" | "list")
}

/// The entries whose mark was in a call that stored something.
fn stored(seen: &[SeenCall]) -> BTreeSet<u64> {
    let stores = |call: &&SeenCall| {
        let name = call.name.as_str();
        let ok = call.answer.get("ok");
        let status = ok.and_then(|ok| ok.get("status")).and_then(Value::as_u64);
        matches!(name, "sql.execute" | "sql.execute-all" | "files.append" | "state.set" | "http.send")
            && ok.is_some()
            && status.is_none_or(|status| (200..300).contains(&status))
    };
    let said: Vec<String> = seen.iter().filter(stores).map(|call| call.arguments.to_string()).collect();
    (1..=ORDINARY_ENTRIES).filter(|sequence| said.iter().any(|text| text.contains(&inputs::mark(*sequence)))).collect()
}

/// Entries in the two batches of the ordinary calls.
const ORDINARY_ENTRIES: u64 = 18;

/// What a plugin of this kind does all day.
pub(crate) fn ordinary(kind: Kind) -> Vec<Action> {
    let now = NOW_MS;
    match kind {
        Kind::Sink => {
            vec![
                Action::Write(Box::new(inputs::entries(1, 9, now))),
                Action::Write(Box::new(inputs::entries(10, 9, now))),
                Action::Flush,
            ]
        }
        Kind::Rule => (0..3)
            .map(|step| {
                let now = now + step * 60_000;
                Action::Evaluate(now, inputs::subjects(12, "job-", now))
            })
            .collect(),
        Kind::Strategy => vec![
            Action::Observe(inputs::output(vec!["50%".to_owned()])),
            Action::Decide(Box::new(inputs::situation(0, "", now))),
            Action::Decide(Box::new(inputs::situation(3, "work", now))),
        ],
    }
}

fn trials(kind: Kind) -> Vec<Trial> {
    let trial = |name, about, actions| Trial { name, about, actions };
    let (nothing, most) = (none(kind), largest(kind));
    let restarted = ordinary(kind).into_iter().flat_map(|action| [action, Action::Restart]).collect();
    let twice: Vec<Action> = ordinary(kind).into_iter().flat_map(|action| [action.clone(), action]).collect();
    vec![
        trial("nothing", "empty batches, no subjects, no attempts, no lines", nothing),
        trial("the most", "batches, questions and output as large as they come", most),
        trial("the same again", "what comes twice, as after a crash", twice),
        trial("a new instance", "between any two calls", restarted),
        trial("hostile text", "in every text, and numbers at their bounds", hostile(kind)),
    ]
}

fn none(kind: Kind) -> Vec<Action> {
    match kind {
        Kind::Sink => {
            let empty = || Action::Write(Box::new(inputs::entries(1, 0, NOW_MS)));
            vec![empty(), Action::Flush, Action::Write(Box::new(inputs::entries(1, 3, NOW_MS))), empty()]
        }
        Kind::Rule => vec![Action::Evaluate(0, Vec::new()), Action::Evaluate(NOW_MS, Vec::new())],
        Kind::Strategy => vec![
            Action::Observe(inputs::output(Vec::new())),
            Action::Observe(inputs::output(vec![String::new()])),
            Action::Decide(Box::new(inputs::situation(0, "", 0))),
        ],
    }
}

fn largest(kind: Kind) -> Vec<Action> {
    match kind {
        Kind::Sink => vec![
            Action::Write(Box::new(inputs::entries(1, MOST, NOW_MS))),
            Action::Write(Box::new(inputs::heavy(BYTES - 1024, NOW_MS))),
            Action::Flush,
        ],
        Kind::Rule => (0..3).map(|_| Action::Evaluate(NOW_MS, inputs::subjects(MOST, "job-", NOW_MS))).collect(),
        Kind::Strategy => vec![
            Action::Observe(inputs::output(vec!["x".repeat(OUTPUT.1 / OUTPUT.0); OUTPUT.0])),
            Action::Observe(inputs::output(vec!["x".repeat(OUTPUT.1)])),
            Action::Decide(Box::new(inputs::situation(100, "work", NOW_MS))),
        ],
    }
}

fn hostile(kind: Kind) -> Vec<Action> {
    match kind {
        Kind::Sink => vec![Action::Write(Box::new(inputs::hostile_entries(NOW_MS))), Action::Flush],
        Kind::Rule => inputs::HOSTILE
            .iter()
            .flat_map(|words| [0, NOW_MS].map(|now| Action::Evaluate(now, inputs::subjects(60, words, now))))
            .collect(),
        Kind::Strategy => inputs::HOSTILE
            .iter()
            .flat_map(|words| {
                [
                    Action::Observe(inputs::output(vec![(*words).to_owned(), words.repeat(50)])),
                    Action::Decide(Box::new(inputs::situation(8, words, NOW_MS))),
                ]
            })
            .collect(),
    }
}
