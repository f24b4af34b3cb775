//! A short line of text, as programs give it and lists print it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Text without a line's end, of 1 to [`Line::LENGTH_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Line(String);

/// Why a text is no such line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Nothing was given.
    #[error("it is empty")]
    Empty,
    /// More than [`Line::LENGTH_MAX`] bytes.
    #[error("it has {0} bytes, and {max} are allowed", max = Line::LENGTH_MAX)]
    TooLong(usize),
    /// A character that would break the line it is printed on.
    #[error("it holds a control character")]
    Control,
}

impl Line {
    /// Room for an address with a path; a million of them still fit into memory.
    pub const LENGTH_MAX: usize = 256;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Line {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Self, LineError> {
        if text.is_empty() {
            return Err(LineError::Empty);
        }
        if text.len() > Self::LENGTH_MAX {
            return Err(LineError::TooLong(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(LineError::Control);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Line {
    type Error = LineError;

    fn try_from(text: String) -> Result<Self, LineError> {
        text.parse()
    }
}

impl From<Line> for String {
    fn from(line: Line) -> Self {
        line.0
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_from_1_to_256_bytes_and_no_end() {
        for (text, expected) in [
            ("x".repeat(256), Ok(())),
            (String::new(), Err(LineError::Empty)),
            ("x".repeat(257), Err(LineError::TooLong(257))),
            ("a\nb".to_owned(), Err(LineError::Control)),
            ("a\0".to_owned(), Err(LineError::Control)),
        ] {
            assert_eq!(text.parse::<Line>().map(drop), expected, "{} bytes", text.len());
        }
    }
}
