//! Lets things go wrong at capability calls, and says what was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use latido_plugin_host::{Asked, FaultKind, Host, RefusalKind, Ruling, Then};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;
use serde_json::{Value, json};

use crate::case::{Action, NOW_MS};
use crate::conformance::{inputs, ordinary};
use crate::delivery::{Delivered, deliver};
use crate::onlooker::{Rules, SeenCall};
use crate::plugin::Plugin;
use crate::stage::{Place, Running, Setting, StageError, Workshop};
use crate::told;

/// Entries that are delivered, and in one batch.
const ENTRIES: usize = 30;
const BATCH: usize = 10;

/// Calls at each of which everything goes wrong once, where nothing else is asked for.
const CALLS: u64 = 12;

/// Seeded rounds, where nothing else is asked for.
const ROUNDS: u64 = 20;

/// How often a rule or strategy is asked again: once more than anything goes wrong in a round.
const LOOKS: usize = 4;

/// How long a slow call takes.
const SLOW: Duration = Duration::from_millis(30);

/// What goes wrong at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mishap {
    /// The plugin traps before the call is carried out.
    Trap,
    /// It traps after it, and never hears of it.
    TrapAfter,
    /// Its time is over.
    Deadline,
    /// Its memory is used up.
    Memory,
    /// The call takes long.
    Slow,
    /// It is denied.
    Denied,
    /// The disk is full.
    Full,
    /// The network is gone, and who else holds the database does not let go of it.
    Network,
}

impl Mishap {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Trap,
        Self::TrapAfter,
        Self::Deadline,
        Self::Memory,
        Self::Slow,
        Self::Denied,
        Self::Full,
        Self::Network,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::TrapAfter => "trap-after",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::Slow => "slow",
            Self::Denied => "denied",
            Self::Full => "full",
            Self::Network => "network",
        }
    }

    fn ruling(self, asked: &Asked) -> Ruling {
        let end = |kind, carried_out| Then::End { kind, carried_out }.at_once();
        let refuse = |refusal| Then::Refuse(refusal, "as chaos has it".to_owned()).at_once();
        match self {
            Self::Trap => end(FaultKind::Trap("as chaos has it".to_owned()), false),
            // Nobody is there who could carry a request out; it counts as one that arrived.
            Self::TrapAfter => end(FaultKind::Trap("as chaos has it".to_owned()), asked.interface != "http"),
            Self::Deadline => end(FaultKind::WallDeadline(Duration::from_secs(10)), false),
            Self::Memory => end(FaultKind::Memory(64 << 20), false),
            Self::Slow if asked.interface == "http" => {
                let answer = json!({ "ok": { "status": 200, "headers": [], "body": "" } });
                Ruling { after: SLOW, then: Then::Answer(answer) }
            }
            Self::Slow => Ruling { after: SLOW, then: Then::CarryOut },
            Self::Denied => refuse(RefusalKind::Denied),
            Self::Full => refuse(RefusalKind::Full),
            Self::Network if asked.interface == "http" => refuse(RefusalKind::Unreachable),
            Self::Network => refuse(RefusalKind::Busy),
        }
    }
}

/// What is let go wrong.
#[derive(Clone, Debug, Default)]
pub struct ChaosPlan {
    /// only these; nothing: all of them
    pub what: Vec<Mishap>,
    /// only at these calls, counted from 1; nothing: at each of the first, and seeded rounds
    pub at: Vec<u64>,
    /// what the rounds are drawn from
    pub seed: u64,
    /// how many rounds, of one to three mishaps each; nothing: 20
    pub rounds: Option<u64>,
    /// the plugin's settings
    pub settings: Option<Value>,
}

/// One run in which something went wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// what went wrong, by the number of the call
    pub mishaps: BTreeMap<u64, Mishap>,
    /// entries that the sink acknowledged and that are nowhere
    pub lost: Vec<u64>,
    /// entries that are there more than once
    pub twice: Vec<u64>,
    /// entries that never arrived, although nothing went wrong any longer
    pub undelivered: Vec<u64>,
    /// entries that were set aside for good
    pub aside: Vec<u64>,
    /// answers of a rule or strategy that are others than without mishaps
    pub other_answers: Vec<String>,
    /// what the plugin answered and how it ended, in words
    pub failures: Vec<String>,
    /// how often the delivery stood until somebody acted
    pub stops: usize,
    /// whether nothing is lost and it went on
    pub recovers: bool,
}

/// Lets things go wrong.
///
/// # Errors
///
/// Fails where the plugin cannot be run at all.
pub fn chaos(workshop: &Workshop, plugin: &Plugin, plan: &ChaosPlan) -> Result<Vec<Round>, StageError> {
    let run = Run { host: &workshop.host, plugin, settings: plan.settings.clone().unwrap_or_else(|| json!({})) };
    workshop.runtime.block_on(async {
        let usual = run.play(&BTreeMap::new()).await?;
        if let Some(why) = usual.delivered.failures.first() {
            return Err(StageError::Unwell { why: why.clone() });
        }
        let mut rounds = Vec::new();
        for mishaps in drawn(plan, usual.calls) {
            let played = run.play(&mishaps).await?;
            rounds.push(played.compared(mishaps, &usual));
        }
        Ok(rounds)
    })
}

/// The mishaps of each round.
fn drawn(plan: &ChaosPlan, calls: u64) -> Vec<BTreeMap<u64, Mishap>> {
    let what = if plan.what.is_empty() { &Mishap::ALL[..] } else { plan.what.as_slice() };
    let each: Vec<u64> = if plan.at.is_empty() { (1..=calls.min(CALLS)).collect() } else { plan.at.clone() };
    let mut rounds: Vec<_> =
        what.iter().flat_map(|mishap| each.iter().map(move |at| BTreeMap::from([(*at, *mishap)]))).collect();
    let count = if calls == 0 { 0 } else { plan.rounds.unwrap_or(if plan.at.is_empty() { ROUNDS } else { 0 }) };
    let mut state = plan.seed;
    let mut draw = |below: u64| {
        // splitmix64, as everywhere where a seed names a run
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below.max(1)
    };
    for _ in 0..count {
        let several = 1 + draw(3);
        let mishaps = (0..several).filter_map(|_| {
            let at = 1 + draw(calls * 2); // a mishap makes more calls
            let index = usize::try_from(draw(what.len() as u64)).unwrap_or(0);
            Some((at, *what.get(index)?))
        });
        rounds.push(mishaps.collect());
    }
    rounds
}

struct Run<'a> {
    host: &'a Host,
    plugin: &'a Plugin,
    settings: Value,
}

/// What one run did.
#[derive(Default)]
struct Played {
    calls: u64,
    delivered: Delivered,
    /// how often each entry is there
    there: BTreeMap<u64, usize>,
    answers: Vec<Value>,
}

impl Run<'_> {
    async fn play(&self, mishaps: &BTreeMap<u64, Mishap>) -> Result<Played, StageError> {
        let place = Place::new(self.plugin)?;
        let setting = Setting::new(self.settings.clone(), NOW_MS, 0);
        let mut running = place.load(self.host, self.plugin, &setting).await.map_err(StageError::Load)?;
        let before = place.onlooker.count();
        place.onlooker.take_calls();
        let (mishaps_of, mishaps) = (mishaps, mishaps.clone());
        let rules: Rules =
            Box::new(move |asked: &Asked| mishaps.get(&(asked.number - before)).map(|mishap| mishap.ruling(asked)));
        place.onlooker.rule(Some(rules));
        let mut played = Played::default();
        if let Running::Sink(sink) = &mut running {
            let batch = |skip: usize, count: usize| inputs::entries(skip as u64 + 1, count, NOW_MS);
            played.delivered = deliver(sink, ENTRIES, BATCH, &batch).await;
        } else {
            for action in ordinary(self.plugin.kind) {
                played.answers.push(self.answer(&mut running, &action, &mut played.delivered).await);
            }
        }
        played.calls = place.onlooker.count() - before;
        drop(running); // what it holds open is written
        let arrives = |call: &SeenCall| {
            let is_answered = call.answer.pointer("/ok/status").is_some();
            is_answered || mishaps_of.get(&(call.number - before)) == Some(&Mishap::TrapAfter)
        };
        let seen = place.onlooker.take_calls();
        let sent = seen.iter().filter(|call| call.name == "http.send" && arrives(call));
        played.there = self.there(&place, sent.map(|call| call.arguments.to_string()).collect());
        Ok(played)
    }

    /// Asks, and again where that fails, as the agent does with its next looks.
    async fn answer(&self, running: &mut Running, action: &Action, told: &mut Delivered) -> Value {
        let mut answer = running.call(action).await;
        for _ in 0..LOOKS {
            if answer.is_ok() {
                break;
            }
            told.failures.push(told::outcome(&answer).to_string());
            answer = running.call(action).await;
        }
        told::outcome(&answer)
    }

    /// How often each entry is in a database, in a file, or in a request that was accepted.
    fn there(&self, place: &Place, sent: Vec<String>) -> BTreeMap<u64, usize> {
        let asked = &self.plugin.manifest.requires;
        let mut pieces = sent;
        for name in &asked.sql {
            pieces.extend(rows(&place.database(name)).unwrap_or_default());
        }
        for name in &asked.files {
            let bytes = fs::read(place.file(name)).unwrap_or_default();
            pieces.extend(String::from_utf8_lossy(&bytes).lines().map(str::to_owned));
        }
        let count = |sequence: u64| {
            let mark = inputs::mark(sequence);
            pieces.iter().filter(|piece| piece.contains(&mark)).count()
        };
        (1..=ENTRIES as u64).map(|sequence| (sequence, count(sequence))).filter(|(_, count)| *count > 0).collect()
    }
}

impl Played {
    fn compared(self, mishaps: BTreeMap<u64, Mishap>, usual: &Self) -> Round {
        let Self { delivered, there, answers, .. } = self;
        let list = |set: BTreeSet<u64>| set.into_iter().collect::<Vec<u64>>();
        let is_kept = |sequence: &u64| usual.there.contains_key(sequence);
        let lost: Vec<u64> =
            delivered.acknowledged.iter().copied().filter(|it| is_kept(it) && !there.contains_key(it)).collect();
        let more = |sequence: &u64| usual.there.get(sequence).copied().unwrap_or(0);
        let twice: Vec<u64> = there.iter().filter(|(it, count)| **count > more(it).max(1)).map(|(it, _)| *it).collect();
        let others = answers.iter().zip(&usual.answers).filter(|(found, usual)| found != usual);
        let other_answers: Vec<String> = others.map(|(found, _)| found.to_string()).collect();
        let is_fault = |answer: &Value| answer.get("fault").is_some() || answer.get("error").is_some();
        let recovers = lost.is_empty()
            && delivered.undelivered == usual.delivered.undelivered
            && delivered.aside == usual.delivered.aside
            && !answers.iter().any(is_fault);
        Round {
            mishaps,
            lost,
            twice,
            undelivered: list(delivered.undelivered),
            aside: list(delivered.aside),
            other_answers,
            failures: delivered.failures,
            stops: delivered.stops,
            recovers,
        }
    }
}

/// Every row of every table, as one text.
fn rows(database: &std::path::Path) -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut names = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    let names: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut found = Vec::new();
    for name in names {
        let mut statement = connection.prepare(&format!("SELECT * FROM \"{}\"", name.replace('"', "\"\"")))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mut text = String::new();
            for column in 0..columns {
                if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(column)? {
                    text.push_str(&String::from_utf8_lossy(bytes));
                    text.push(' ');
                }
            }
            found.push(text);
        }
    }
    Ok(found)
}
