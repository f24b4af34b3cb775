//! Rows as a guest packs them, on their way into a statement.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, ToSql};

use crate::bindings::v0_2::sink::latido::plugin::sql::{Rows, SqlError, Value};
use crate::probe::sql_value;

/// What a value is.
const NULL: u8 = 0;
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BLOB: u8 = 4;

/// Goes through packed rows, value by value.
pub(super) struct Packed<'a> {
    width: usize,
    kinds: &'a [u8],
    integers: std::slice::Iter<'a, i64>,
    reals: std::slice::Iter<'a, f64>,
    texts: std::str::SplitTerminator<'a, char>,
    blobs: &'a [u8],
    blob_lengths: std::slice::Iter<'a, u32>,
}

/// A value on its way into a statement.
struct Borrowed<'a>(ValueRef<'a>);

impl ToSql for Borrowed<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.0))
    }
}

impl<'a> Packed<'a> {
    pub(super) fn of(rows: &'a Rows) -> Self {
        Self {
            width: rows.width as usize,
            kinds: &rows.kinds,
            integers: rows.integers.iter(),
            reals: rows.reals.iter(),
            texts: rows.texts.split_terminator('\0'),
            blobs: &rows.blobs,
            blob_lengths: rows.blob_lengths.iter(),
        }
    }

    /// How many rows there are; one where rows have no values.
    pub(super) fn count(&self) -> Result<usize, SqlError> {
        let (whole, rest) = match self.kinds.len().checked_div(self.width) {
            Some(whole) => (whole, self.kinds.len() % self.width),
            None => (1, self.kinds.len()),
        };
        if rest == 0 {
            Ok(whole)
        } else {
            Err(SqlError::Failed(format!("{} values are no rows of {}", self.kinds.len(), self.width)))
        }
    }

    /// Gives the next row to a statement.
    pub(super) fn bind(
        &mut self,
        statement: &mut CachedStatement<'_>,
        refused: &dyn Fn(&rusqlite::Error) -> SqlError,
    ) -> Result<(), SqlError> {
        if self.width != statement.parameter_count() {
            let expected = statement.parameter_count();
            return Err(SqlError::Failed(format!("the statement has {expected} parameters, a row has {}", self.width)));
        }
        let (row, rest) = self.kinds.split_at_checked(self.width).unwrap_or((self.kinds, &[]));
        self.kinds = rest;
        for (index, kind) in row.iter().enumerate() {
            let Some(value) = self.next(*kind) else {
                return Err(SqlError::Failed(format!("the rows hold no value for one of kind {kind}")));
            };
            statement.raw_bind_parameter(index + 1, Borrowed(value)).map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    fn next(&mut self, kind: u8) -> Option<ValueRef<'a>> {
        match kind {
            NULL => Some(ValueRef::Null),
            INTEGER => self.integers.next().map(|value| ValueRef::Integer(*value)),
            REAL => self.reals.next().map(|value| ValueRef::Real(*value)),
            TEXT => self.texts.next().map(|value| ValueRef::Text(value.as_bytes())),
            BLOB => {
                let (blob, rest) = self.blobs.split_at_checked(*self.blob_lengths.next()? as usize)?;
                self.blobs = rest;
                Some(ValueRef::Blob(blob))
            }
            _ => None,
        }
    }
}

/// Packed rows as whoever looks on sees them. What is no row is shown as far as it goes.
pub(super) fn told(rows: &Rows) -> serde_json::Value {
    let mut packed = Packed::of(rows);
    let width = packed.width.max(1);
    let mut told = Vec::with_capacity(rows.kinds.len() / width);
    for row in rows.kinds.chunks(width) {
        let values = row.iter().map_while(|kind| packed.next(*kind).map(Value::from));
        told.push(values.map(|value| sql_value(&value)).collect::<serde_json::Value>());
    }
    told.into()
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(width: u32, kinds: &[u8]) -> Rows {
        Rows {
            width,
            kinds: kinds.to_vec(),
            integers: vec![1],
            reals: Vec::new(),
            texts: "a\0\0".to_owned(),
            blobs: vec![7, 8],
            blob_lengths: vec![2, 4_000_000_000],
        }
    }

    #[test]
    fn rows_that_lie_about_themselves_are_an_error() {
        assert_eq!(Packed::of(&rows(2, &[0, 0])).count().ok(), Some(1));
        assert_eq!(Packed::of(&rows(0, &[])).count().ok(), Some(1), "a row without values");
        assert_eq!(Packed::of(&rows(2, &[])).count().ok(), Some(0));
        assert!(Packed::of(&rows(2, &[0, 0, 0])).count().is_err());
        assert!(Packed::of(&rows(0, &[0])).count().is_err());
        let rows = rows(1, &[]);
        let mut packed = Packed::of(&rows);
        assert_eq!(packed.next(TEXT), Some(ValueRef::Text(b"a")));
        assert_eq!(packed.next(TEXT), Some(ValueRef::Text(b"")));
        assert_eq!(packed.next(TEXT), None);
        assert_eq!(packed.next(BLOB), Some(ValueRef::Blob(&[7, 8])));
        assert_eq!(packed.next(BLOB), None, "longer than what there is");
        assert_eq!(packed.next(REAL), None);
        assert_eq!(packed.next(9), None);
    }
}
