//! Packs rows of parameters for `sql`. Included by the plugins and copied by those of others: it needs `bindings` beside it.

use super::bindings::latido::plugin::sql::Rows;

/// What a value is, as `rows.kinds` has it; 0 is no value, 4 a blob.
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;

/// No rows yet, each to have so many values. Every row is `width` calls of the functions below.
pub(crate) fn of_width(width: u32) -> Rows {
    Rows {
        width,
        kinds: Vec::new(),
        integers: Vec::new(),
        reals: Vec::new(),
        texts: String::new(),
        blobs: Vec::new(),
        blob_lengths: Vec::new(),
    }
}

/// Adds a whole number.
pub(crate) fn integer(rows: &mut Rows, value: i64) {
    rows.kinds.push(INTEGER);
    rows.integers.push(value);
}

/// Adds a number that need not be whole.
pub(crate) fn real(rows: &mut Rows, value: f64) {
    rows.kinds.push(REAL);
    rows.reals.push(value);
}

/// Adds a text. A U+0000 in it would end it, so it is replaced.
pub(crate) fn text(rows: &mut Rows, value: &str) {
    rows.kinds.push(TEXT);
    if value.contains('\0') {
        rows.texts.push_str(&value.replace('\0', "\u{fffd}"));
    } else {
        rows.texts.push_str(value);
    }
    rows.texts.push('\0');
}
