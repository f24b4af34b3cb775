//! Reads a batch entry by entry.

use crate::bindings::latido::plugin::journal::{Batch, ValueKind};

/// One entry of a batch.
pub struct Entry<'a> {
    /// Its number; with the batch's journal it names the entry for ever.
    pub sequence: u64,
    /// When it was written, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Its kind, such as `transition`.
    pub kind: &'a str,
    /// What it says, by name.
    pub fields: Vec<(&'a str, Value<'a>)>,
}

/// What a field of an entry says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A text.
    Text(&'a str),
    /// A number, a moment or a length of time, as the field's description says.
    Number(f64),
}

impl std::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text}"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// The entries of a batch, the oldest first.
pub fn of(batch: &Batch) -> impl Iterator<Item = Entry<'_>> {
    let (mut places, mut numbers) = (batch.field.iter(), batch.numbers.iter());
    let mut texts = batch.texts.split('\0');
    (0..batch.sequences.len()).map_while(move |at| {
        let mut fields = Vec::new();
        for _ in 0..*batch.fields_of.get(at)? {
            let field = batch.fields.get(usize::from(*places.next()?))?;
            let value = match field.holds {
                ValueKind::Text => Value::Text(texts.next()?),
                _ => Value::Number(*numbers.next()?),
            };
            fields.push((field.name.as_str(), value));
        }
        let kind = batch.kinds.get(usize::from(*batch.kind_of.get(at)?))?;
        Some(Entry { sequence: *batch.sequences.get(at)?, at: *batch.times.get(at)?, kind, fields })
    })
}
