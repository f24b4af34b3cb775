//! What calls are made with: subjects, situations, output, entries, each with defaults for what a case leaves out.

use latido_plugin_host::{
    Attribute, Budget, Command, Entries, EnvironmentValue, EnvironmentVariable, Field, Outcome, Output, PastAttempt,
    Progress, Situation, Subject, SubjectKind, Usage, ValueKind, Verdict,
};

use super::table::{Node, Table, Wrong, same_key, unknown};

/// The names of verdicts and kinds, as the package has them.
pub(crate) const VERDICTS: [(&str, Verdict); 12] = [
    ("waiting", Verdict::Waiting),
    ("missing", Verdict::Missing),
    ("alive", Verdict::Alive),
    ("late", Verdict::Late),
    ("stale", Verdict::Stale),
    ("hung", Verdict::Hung),
    ("failing", Verdict::Failing),
    ("orphaned", Verdict::Orphaned),
    ("dead", Verdict::Dead),
    ("unknown", Verdict::Unknown),
    ("ended", Verdict::Ended),
    ("other", Verdict::Other),
];

pub(crate) const KINDS: [(&str, SubjectKind); 5] = [
    ("job", SubjectKind::Job),
    ("worker", SubjectKind::Worker),
    ("check", SubjectKind::Check),
    ("process", SubjectKind::Process),
    ("other", SubjectKind::Other),
];

/// A word of a list.
fn word<T: Copy>(table: &mut Table, key: &str, known: &[(&str, T)], default: T) -> Result<T, Wrong> {
    let Some(node) = table.take(key) else { return Ok(default) };
    let line = node.line;
    let text = node.text()?;
    match known.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            Err(Wrong::at(line, format!("`{key}` is \"{text}\"; it is one of {}", names.join(", "))))
        }
    }
}

/// More seconds than any duration of the package has: no number of it reaches 2^53.
const SECONDS_MAX: f64 = 9e12;

/// Milliseconds from a number of seconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is not within bounds is refused")]
fn seconds(table: &mut Table, key: &str) -> Result<Option<u64>, Wrong> {
    let Some(node) = table.take(key) else { return Ok(None) };
    let line = node.line;
    let seconds = node.real()?;
    if (0.0..SECONDS_MAX).contains(&seconds) {
        Ok(Some((seconds * 1000.0).round() as u64))
    } else {
        Err(Wrong::at(line, format!("`{key}` is {seconds}; it is a number of seconds of at least 0")))
    }
}

fn attributes(table: &mut Table, key: &str) -> Result<Vec<Attribute>, Wrong> {
    Ok(table.texts(key)?.into_iter().map(|(key, value)| Attribute { key, value }).collect())
}

fn progress(table: &mut Table) -> Result<Option<Progress>, Wrong> {
    let Some(node) = table.take("progress") else { return Ok(None) };
    let mut table = node.table()?;
    let progress = Progress {
        fraction: table.real("fraction")?,
        done: table.whole("done")?,
        total: table.whole("total")?,
        step: table.text("step")?,
        checkpoint: table.text("checkpoint")?,
    };
    table.done()?;
    Ok(Some(progress))
}

fn usage(table: &mut Table) -> Result<Option<Usage>, Wrong> {
    let Some(node) = table.take("usage") else { return Ok(None) };
    let mut table = node.table()?;
    let usage =
        Usage { turns: table.whole("turns")?, tokens: table.whole("tokens")?, cost_usd: table.real("cost_usd")? };
    table.done()?;
    Ok(Some(usage))
}

/// A subject; all but its name has a default.
pub(crate) fn subject(node: Node, now: u64) -> Result<Subject, Wrong> {
    let mut table = node.table()?;
    let name = table.need("name")?.text()?;
    named_subject(table, name, now)
}

fn named_subject(mut table: Table, name: String, now: u64) -> Result<Subject, Wrong> {
    let subject = Subject {
        name,
        kind: word(&mut table, "kind", &KINDS, SubjectKind::Job)?,
        host: table.text("host")?.unwrap_or_else(|| "host".to_owned()),
        policy: table.text("policy")?.unwrap_or_else(|| "default".to_owned()),
        verdict: word(&mut table, "verdict", &VERDICTS, Verdict::Alive)?,
        since: table.time("since")?.unwrap_or(now),
        reason: table.text("reason")?.unwrap_or_default(),
        last_beat: table.time("last_beat")?,
        silence: seconds(&mut table, "silence_s")?,
        progress: progress(&mut table)?,
        progress_changed: table.time("progress_changed")?,
        usage: usage(&mut table)?,
        attempt: table.small("attempt")?.unwrap_or(1),
        epoch: table.whole("epoch")?.unwrap_or(1),
        errors: table.whole("errors")?.unwrap_or(0),
        attributes: attributes(&mut table, "attributes")?,
    };
    table.done()?;
    Ok(subject)
}

/// What a strategy decides from; all but the job's name and command has a default.
pub(crate) fn situation(node: Node, now: u64) -> Result<Situation, Wrong> {
    let mut table = node.table()?;
    let now = table.time("now")?.unwrap_or(now);
    let name = table.need("name")?.text()?;
    let subject = match table.take("subject") {
        Some(node) => {
            let mut table = node.table()?;
            let name = table.text("name")?.unwrap_or(name);
            named_subject(table, name, now)?
        }
        None => named_subject(Table::parse("verdict = \"dead\"")?, name, now)?,
    };
    let situation = Situation {
        now,
        subject,
        command: command(table.need("command")?)?,
        attempts: table.list("attempts")?.into_iter().map(|node| attempt(node, now)).collect::<Result<_, _>>()?,
        budget: budget(&mut table)?,
        attributes: attributes(&mut table, "attributes")?,
    };
    table.done()?;
    Ok(situation)
}

fn command(node: Node) -> Result<Command, Wrong> {
    let line = node.line;
    if node.is_list() {
        let mut words = texts(node)?.into_iter();
        let program =
            words.next().ok_or_else(|| Wrong::at(line, "`command` is empty; its first word is the program"))?;
        return Ok(Command { program, arguments: words.collect(), directory: None, environment: Vec::new() });
    }
    let mut table = node.table()?;
    let program = table.need("program")?.text()?;
    let arguments = table.take("arguments").map_or(Ok(Vec::new()), texts)?;
    let directory = table.text("directory")?;
    let environment = match table.take("environment") {
        None => Vec::new(),
        Some(node) => node.table()?.rest().into_iter().map(variable).collect::<Result<_, _>>()?,
    };
    table.done()?;
    Ok(Command { program, arguments, directory, environment })
}

/// `NAME = "value"`, `NAME = { secret = "name" }` or `NAME = { withheld = true }`.
fn variable((name, line, node): (String, usize, Node)) -> Result<EnvironmentVariable, Wrong> {
    let value = if node.is_table() {
        let mut table = node.table()?;
        let secret = table.text("secret")?;
        let is_withheld = table.take("withheld").map(Node::flag).transpose()?.unwrap_or(false);
        table.done()?;
        match (secret, is_withheld) {
            (Some(secret), false) => EnvironmentValue::Secret(secret),
            (None, true) => EnvironmentValue::Withheld,
            _ => return Err(Wrong::at(line, "a variable is a text, { secret = \"name\" } or { withheld = true }")),
        }
    } else {
        EnvironmentValue::Plain(node.text()?)
    };
    Ok(EnvironmentVariable { name, value })
}

pub(crate) fn texts(node: Node) -> Result<Vec<String>, Wrong> {
    node.list()?.into_iter().map(Node::text).collect()
}

fn attempt(node: Node, now: u64) -> Result<PastAttempt, Wrong> {
    let mut table = node.table()?;
    let attempt = PastAttempt {
        number: table.small("number")?.unwrap_or(1),
        started: table.time("started")?.unwrap_or(now),
        ended: table.time("ended")?,
        outcome: table.take("outcome").map(outcome).transpose()?,
        class: table.text("class")?,
        progress: progress(&mut table)?,
        usage: usage(&mut table)?,
        notes: attributes(&mut table, "notes")?,
        attributes: attributes(&mut table, "attributes")?,
    };
    table.done()?;
    Ok(attempt)
}

/// `{ exited = 1 }`, `{ signaled = 9 }`, `{ lost = "how" }`, …, or `"out-of-memory"`.
fn outcome(node: Node) -> Result<Outcome, Wrong> {
    let line = node.line;
    let known = "exited, signaled, lost, stopped, launch-failed, out-of-memory, limit-reached, other";
    let (name, value) = if node.is_table() {
        let mut rest = node.table()?.rest();
        match (rest.pop(), rest.is_empty()) {
            (Some((name, _, value)), true) => (name, Some(value)),
            _ => return Err(Wrong::at(line, format!("an outcome is one of {known}"))),
        }
    } else {
        (node.text()?, None)
    };
    let number = |value: Option<Node>| {
        let number = value.map_or(Ok(0), Node::signed)?;
        i32::try_from(number).map_err(|_| Wrong::at(line, format!("`{name}` is larger than it can be")))
    };
    let words = |value: Option<Node>| {
        value.map_or(Ok(String::new()), |value| if value.is_table() { Ok(String::new()) } else { value.text() })
    };
    Ok(match name.replace('_', "-").as_str() {
        "exited" => Outcome::Exited(number(value)?),
        "signaled" => Outcome::Signaled(number(value)?),
        "lost" => Outcome::Lost(words(value)?),
        "stopped" => Outcome::Stopped(words(value)?),
        "launch-failed" => Outcome::LaunchFailed(words(value)?),
        "out-of-memory" => Outcome::OutOfMemory,
        "limit-reached" => Outcome::LimitReached(words(value)?),
        "other" => Outcome::Other(words(value)?),
        _ => return Err(Wrong::at(line, format!("there is no outcome `{name}`; it is one of {known}"))),
    })
}

fn budget(table: &mut Table) -> Result<Budget, Wrong> {
    let mut table = match table.take("budget") {
        Some(node) => node.table()?,
        None => Table::parse("")?,
    };
    let budget = Budget {
        attempts_left: table.small("attempts_left")?,
        turns_left: table.whole("turns_left")?,
        cost_left_usd: table.real("cost_left_usd")?,
        time_left: seconds(&mut table, "time_left_s")?,
        attributes: attributes(&mut table, "attributes")?,
    };
    table.done()?;
    Ok(budget)
}

/// New output of a running attempt.
pub(crate) fn output(node: Node) -> Result<Output, Wrong> {
    let mut table = node.table()?;
    let output = Output {
        subject: table.text("subject")?.unwrap_or_else(|| "job".to_owned()),
        attempt: table.small("attempt")?.unwrap_or(1),
        epoch: table.whole("epoch")?.unwrap_or(1),
        offset: table.whole("offset")?.unwrap_or(0),
        lines: table.take("lines").map_or(Ok(Vec::new()), texts)?,
        attributes: attributes(&mut table, "attributes")?,
    };
    table.done()?;
    Ok(output)
}

/// A batch: `{ journal = "id", entries = [ { sequence = 1, at = …, kind = "transition", … } ] }`.
pub(crate) fn batch(node: Node, now: u64) -> Result<Entries, Wrong> {
    let mut table = node.table()?;
    let mut entries = Entries::new(table.text("journal")?.unwrap_or_else(|| "journal".to_owned()));
    let mut last = 0;
    for node in table.list("entries")? {
        let line = node.line;
        let mut table = node.table()?;
        let sequence = table.whole("sequence")?.unwrap_or(last + 1);
        if sequence <= last {
            return Err(Wrong::at(
                line,
                format!("`sequence` is {sequence} after {last}; it grows from entry to entry"),
            ));
        }
        last = sequence;
        entry(&mut entries, table, sequence, now)?;
    }
    table.done()?;
    Ok(entries)
}

/// The name that a field has in cases: an entry's own `kind` is not its subject's.
pub(crate) fn field_name(field: Field) -> &'static str {
    if field == Field::Kind {
        "subject-kind"
    } else if field == Field::Current {
        "verdict"
    } else {
        field.name()
    }
}

fn entry(entries: &mut Entries, mut table: Table, sequence: u64, now: u64) -> Result<(), Wrong> {
    let at = table.time("at")?.unwrap_or(now);
    let kind = table.text("kind")?.unwrap_or_else(|| "beat".to_owned());
    let mut given: Vec<(String, usize, Node)> = Vec::new();
    for (name, line, node) in table.rest() {
        if node.is_table() {
            for (inner, line, node) in node.table()?.rest() {
                given.push((format!("{name}.{inner}"), line, node));
            }
        } else {
            given.push((name, line, node));
        }
    }
    let mut says = entries.add(sequence, at, &kind);
    for field in Field::ALL {
        let is_it =
            |name: &str| same_key(name, field_name(field)) || (field != Field::Kind && same_key(name, field.name()));
        let Some(index) = given.iter().position(|(name, ..)| is_it(name)) else { continue };
        let (_, _, node) = given.remove(index);
        match field.holds() {
            ValueKind::Text => says.text(field, &node.text()?),
            ValueKind::Time => says.whole(field, node.time()?),
            ValueKind::Duration | ValueKind::Whole | ValueKind::Real | ValueKind::Flag => {
                says.real(field, node.real()?)
            }
        };
    }
    let mut known: Vec<String> = ["sequence", "at", "kind"].map(str::to_owned).to_vec();
    known.extend(Field::ALL.map(|field| field_name(field).to_owned()));
    match given.first() {
        None => Ok(()),
        Some((name, line, _)) => Err(unknown(name, *line, &known)),
    }
}
