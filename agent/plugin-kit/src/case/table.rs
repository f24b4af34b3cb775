//! TOML with the line of every key, and a word for each that is wrong.

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Below this likeness (Jaro-Winkler, 0 to 1) a suggestion confuses more than it helps.
const LIKENESS_MIN: f64 = 0.7;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl Wrong {
    pub(crate) fn at(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// A value with its line.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) line: usize,
    /// the key that it stands at, for messages
    key: String,
    held: Held,
}

#[derive(Clone, Debug)]
enum Held {
    Text(String),
    Whole(i64),
    Real(f64),
    Flag(bool),
    /// as it was written
    Time(String),
    List(Vec<Node>),
    Table(Table),
}

/// A table whose keys are taken out one by one; what is left is unknown.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) line: usize,
    entries: Vec<(String, usize, Node)>,
    known: Vec<String>,
}

impl Table {
    /// Reads a document.
    pub(crate) fn parse(text: &str) -> Result<Self, Wrong> {
        let line = |offset: usize| text.get(..offset).map_or(1, |before| before.matches('\n').count() + 1);
        let root = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(1, |span| line(span.start));
            Wrong::at(at, error.message().to_owned())
        })?;
        Ok(table(root.get_ref(), 1, &line))
    }

    /// Takes the value of a key. A hyphen in it is as good as an underscore.
    pub(crate) fn take(&mut self, key: &str) -> Option<Node> {
        self.known.push(key.to_owned());
        let index = self.entries.iter().position(|(name, ..)| same_key(name, key))?;
        Some(self.entries.remove(index).2)
    }

    /// Takes the value of a key that has to be there.
    pub(crate) fn need(&mut self, key: &str) -> Result<Node, Wrong> {
        let line = self.line;
        self.take(key).ok_or_else(|| Wrong::at(line, format!("`{key}` is missing here")))
    }

    pub(crate) fn text(&mut self, key: &str) -> Result<Option<String>, Wrong> {
        self.take(key).map(Node::text).transpose()
    }

    pub(crate) fn whole(&mut self, key: &str) -> Result<Option<u64>, Wrong> {
        self.take(key).map(Node::whole).transpose()
    }

    pub(crate) fn real(&mut self, key: &str) -> Result<Option<f64>, Wrong> {
        self.take(key).map(Node::real).transpose()
    }

    pub(crate) fn time(&mut self, key: &str) -> Result<Option<u64>, Wrong> {
        self.take(key).map(Node::time).transpose()
    }

    pub(crate) fn list(&mut self, key: &str) -> Result<Vec<Node>, Wrong> {
        self.take(key).map_or(Ok(Vec::new()), Node::list)
    }

    pub(crate) fn small(&mut self, key: &str) -> Result<Option<u32>, Wrong> {
        let Some(node) = self.take(key) else { return Ok(None) };
        let line = node.line;
        let number = node.whole()?;
        let number = u32::try_from(number).map_err(|_| Wrong::at(line, format!("`{key}` is larger than it can be")))?;
        Ok(Some(number))
    }

    /// Texts by name.
    pub(crate) fn texts(&mut self, key: &str) -> Result<Vec<(String, String)>, Wrong> {
        let Some(node) = self.take(key) else { return Ok(Vec::new()) };
        let table = node.table()?;
        table.entries.into_iter().map(|(name, _, node)| Ok((name, node.text()?))).collect()
    }

    /// What has not been taken: name, line and value.
    pub(crate) fn rest(self) -> Vec<(String, usize, Node)> {
        self.entries
    }

    /// Every key has to have been taken.
    pub(crate) fn done(self) -> Result<(), Wrong> {
        match self.entries.first() {
            None => Ok(()),
            Some((name, line, _)) => Err(unknown(name, *line, &self.known)),
        }
    }
}

/// A key that nobody knows.
pub(crate) fn unknown(name: &str, line: usize, known: &[String]) -> Wrong {
    let near = known
        .iter()
        .map(|candidate| (strsim::jaro_winkler(&name.replace('-', "_"), &candidate.replace('-', "_")), candidate))
        .filter(|(likeness, _)| *likeness > LIKENESS_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    let hint = match near {
        Some((_, near)) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", known.join(", ")),
    };
    Wrong::at(line, format!("there is no key `{name}` here; {hint}"))
}

pub(crate) fn same_key(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.replace('-', "_") == other.replace('-', "_")
}

impl Node {
    fn wrong<T>(&self, expected: &str) -> Result<T, Wrong> {
        let found = match &self.held {
            Held::Text(text) => format!("{text:?}"),
            Held::Whole(number) => number.to_string(),
            Held::Real(number) => number.to_string(),
            Held::Flag(flag) => flag.to_string(),
            Held::Time(time) => time.clone(),
            Held::List(_) => "a list".to_owned(),
            Held::Table(_) => "a table".to_owned(),
        };
        Err(Wrong::at(self.line, format!("`{}` is {found}; it is {expected}", self.key)))
    }

    pub(crate) fn text(self) -> Result<String, Wrong> {
        if let Held::Text(text) = self.held { Ok(text) } else { self.wrong("a text in quotes") }
    }

    pub(crate) fn whole(self) -> Result<u64, Wrong> {
        match self.signed_or_nothing() {
            Some(number) if number >= 0 => Ok(number.unsigned_abs()),
            Some(_) | None => self.wrong("a whole number of at least 0"),
        }
    }

    pub(crate) fn signed(self) -> Result<i64, Wrong> {
        match self.signed_or_nothing() {
            Some(number) => Ok(number),
            None => self.wrong("a whole number"),
        }
    }

    fn signed_or_nothing(&self) -> Option<i64> {
        if let Held::Whole(number) = &self.held { Some(*number) } else { None }
    }

    #[expect(clippy::cast_precision_loss, reason = "what is written is read as the nearest double, as everywhere")]
    pub(crate) fn real(self) -> Result<f64, Wrong> {
        if let Held::Real(number) = self.held {
            return Ok(number);
        }
        match self.signed_or_nothing() {
            Some(number) => Ok(number as f64),
            None => self.wrong("a number"),
        }
    }

    pub(crate) fn flag(self) -> Result<bool, Wrong> {
        if let Held::Flag(flag) = self.held { Ok(flag) } else { self.wrong("true or false") }
    }

    /// A moment in milliseconds: a time of TOML, the same in quotes, or the number.
    pub(crate) fn time(self) -> Result<u64, Wrong> {
        if let Held::Time(text) | Held::Text(text) = &self.held {
            return match text.parse::<jiff::Timestamp>().map(|time| u64::try_from(time.as_millisecond())) {
                Ok(Ok(millis)) => Ok(millis),
                Ok(Err(_)) | Err(_) => self.wrong("a time such as 2026-01-02T03:04:05Z, not before 1970"),
            };
        }
        match self.signed_or_nothing() {
            Some(number) if number >= 0 => Ok(number.unsigned_abs()),
            Some(_) | None => self.wrong("a time such as 2026-01-02T03:04:05Z"),
        }
    }

    pub(crate) fn list(self) -> Result<Vec<Self>, Wrong> {
        if let Held::List(list) = self.held { Ok(list) } else { self.wrong("a list") }
    }

    pub(crate) fn table(self) -> Result<Table, Wrong> {
        if let Held::Table(table) = self.held { Ok(table) } else { self.wrong("a table") }
    }

    /// A table, or nothing where it is something else.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self.held, Held::Table(_))
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.held, Held::List(_))
    }

    /// The value as JSON; a time is a text.
    pub(crate) fn json(&self) -> Value {
        match &self.held {
            Held::Text(text) | Held::Time(text) => text.clone().into(),
            Held::Whole(number) => (*number).into(),
            Held::Real(number) => (*number).into(),
            Held::Flag(flag) => (*flag).into(),
            Held::List(list) => list.iter().map(Self::json).collect(),
            Held::Table(table) => {
                let pairs = table.entries.iter().map(|(name, _, node)| (name.clone(), node.json()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }
}

fn table(read: &DeTable<'_>, at: usize, line: &dyn Fn(usize) -> usize) -> Table {
    let mut entries: Vec<(String, usize, Node)> = read
        .iter()
        .map(|(key, value)| {
            let at = line(key.span().start);
            (key.get_ref().to_string(), at, node(key.get_ref(), value, line))
        })
        .collect();
    entries.sort_by_key(|(_, line, _)| *line); // what is told first is what stands first
    Table { line: at, entries, known: Vec::new() }
}

fn node(key: &str, read: &Spanned<DeValue<'_>>, line: &dyn Fn(usize) -> usize) -> Node {
    let at = line(read.span().start);
    let held = match read.get_ref() {
        DeValue::String(text) => Held::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Held::Whole(number),
            Err(_) => Held::Real(number.as_str().parse().unwrap_or(f64::MAX)),
        },
        DeValue::Float(number) => Held::Real(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Held::Flag(*flag),
        DeValue::Datetime(time) => Held::Time(time.to_string()),
        DeValue::Array(list) => Held::List(list.iter().map(|value| node(key, value, line)).collect()),
        DeValue::Table(read) => Held::Table(table(read, at, line)),
    };
    Node { line: at, key: key.to_owned(), held }
}
