//! Reads a batch entry by entry. Included by the plugins and copied by those of others: it needs `bindings` beside it.

use super::bindings::latido::plugin::journal::{Batch, ValueKind};

/// One entry of a batch.
pub(crate) struct Entry<'a> {
    /// Its number; with the batch's journal it names the entry for ever.
    pub(crate) sequence: u64,
    /// When it was written, in milliseconds since the Unix epoch.
    pub(crate) at: u64,
    /// Its kind, such as `transition`.
    pub(crate) kind: &'a str,
    /// What it says: the place of each field in the batch's `fields`, and its value.
    pub(crate) fields: Vec<(usize, Value<'a>)>,
}

/// What a field of an entry says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// A text.
    Text(&'a str),
    /// A number, a moment or a length of time, as the field's description says.
    Number(f64),
}

/// The entries of a batch, the oldest first.
pub(crate) struct Entries<'a> {
    batch: &'a Batch,
    next: usize,
    field: core::slice::Iter<'a, u16>,
    texts: core::str::Split<'a, char>,
    numbers: core::slice::Iter<'a, f64>,
}

/// Goes through a batch. An entry that the columns do not hold whole ends it; the host sends no such batch.
pub(crate) fn of(batch: &Batch) -> Entries<'_> {
    Entries { batch, next: 0, field: batch.field.iter(), texts: batch.texts.split('\0'), numbers: batch.numbers.iter() }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let at = self.next;
        self.next += 1;
        let count = usize::from(*self.batch.fields_of.get(at)?);
        let mut fields = Vec::with_capacity(count);
        for _ in 0..count {
            let place = usize::from(*self.field.next()?);
            let value = match self.batch.fields.get(place)?.holds {
                ValueKind::Text => Value::Text(self.texts.next()?),
                _ => Value::Number(*self.numbers.next()?),
            };
            fields.push((place, value));
        }
        Some(Entry {
            sequence: *self.batch.sequences.get(at)?,
            at: *self.batch.times.get(at)?,
            kind: self.batch.kinds.get(usize::from(*self.batch.kind_of.get(at)?))?,
            fields,
        })
    }
}
