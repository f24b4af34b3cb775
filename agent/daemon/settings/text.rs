//! Values as they are written in the config: durations, limits, sizes, words.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use latido_protocol::files::{Backoff, Beats, CarriageReturns, Enforcement, GitLocks, Orphans, ResumeOn, Sigpipe};
use latido_protocol::{CountLimit, Limit, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::entry_kind::EntryKind;
use super::model::{Reload, StartMode};
use super::nearest::nearest;
use super::parse_backoff;

/// A value that is written as a text.
pub(super) trait Written: Sized {
    /// What it is, for the schema and for messages.
    const WHAT: &'static str;

    /// Reads it, or says what is wrong with it.
    fn read(text: &str) -> Result<Self, String>;

    /// Writes it so that it reads back as the same.
    fn write(&self) -> String;

    /// What the schema says of it.
    fn schema() -> Schema;
}

/// A [`Written`] value in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text<T>(pub(super) T);

impl<T: Written> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.write())
    }
}

impl<'de, T: Written> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor(PhantomData)).map(Self)
    }
}

/// Takes numbers too, since what is wrong with a bare number is best said by the value itself.
struct TextVisitor<T>(PhantomData<T>);

impl<T: Written> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::read(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        T::read(&number.to_string()).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        T::read(&number.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        T::read(&number.to_string()).map_err(E::custom)
    }
}

impl<T: Written> JsonSchema for Text<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::WHAT.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::schema()
    }
}

/// One or more numbers with units, as humantime reads them.
const SPAN_PATTERN: &str = "^([0-9]+ ?[a-zA-Z]+ ?)+$";

impl Written for Span {
    const WHAT: &'static str = "a duration such as 30s, 5m or 1h30m";

    fn read(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(format!("{trimmed:?} is negative; write {}", Self::WHAT));
        }
        trimmed.parse().map_err(|error: latido_protocol::SpanError| error.to_string())
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": SPAN_PATTERN, "examples": ["30s", "5m", "1h30m"] })
    }
}

impl Written for Limit {
    const WHAT: &'static str = "a duration such as 15m, or `none` for no limit";

    fn read(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(format!("{trimmed:?} is no duration; write `none` for no limit"));
        }
        match trimmed.parse() {
            Ok(Self::After(duration)) if duration.is_zero() => {
                Err(format!("{trimmed:?} would end everything at once; write `none` for no limit"))
            }
            Ok(limit) => Ok(limit),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": format!("^none$|{SPAN_PATTERN}"),
            "examples": ["none", "15m"]
        })
    }
}

impl Written for CountLimit {
    const WHAT: &'static str = "a count such as 20, or `none` for no limit";

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: latido_protocol::CountLimitError| error.to_string())
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": "^(none|[0-9]+)$" }],
            "examples": ["none", 20]
        })
    }
}

/// Reads a limit of a count, or `none`.
///
/// # Errors
/// In words, when it is neither.
pub fn parse_count_limit(text: &str) -> Result<CountLimit, String> {
    CountLimit::read(text)
}

impl Written for Backoff {
    const WHAT: &'static str = "two durations such as 5s..5m";

    fn read(text: &str) -> Result<Self, String> {
        parse_backoff(text).map_err(|error| error.to_string())
    }

    fn write(&self) -> String {
        format!("{}..{}", self.first, self.longest)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^.+[a-z]\\.\\..+[a-z]$", "examples": ["5s..5m"] })
    }
}

/// Reads a limit: a duration, or `none`. Nothing else is no limit, and no limit is never a number.
///
/// # Errors
/// In words, when it is neither.
pub fn parse_limit(text: &str) -> Result<Limit, String> {
    Limit::read(text)
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

/// The units of [`Size`], the largest first.
const SIZE_UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

impl Written for Size {
    const WHAT: &'static str = "a size such as 64MiB";

    fn read(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let digits = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
        let unit = trimmed[digits.len()..].trim_start();
        let unreadable = || format!("{trimmed:?} is not {}", Self::WHAT);
        if unit.is_empty() && digits.parse::<f64>().is_ok() {
            return Err(format!("{trimmed:?} has no unit; write {trimmed}KiB, {trimmed}MiB or {trimmed}GiB"));
        }
        let number: u64 = digits.parse().map_err(|_| unreadable())?;
        let (_, factor) = SIZE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(unreadable)?;
        number.checked_mul(*factor).map(Self).ok_or_else(unreadable)
    }

    fn write(&self) -> String {
        let fits = |factor: u64| self.0 != 0 && self.0.is_multiple_of(factor);
        let (name, factor) = SIZE_UNITS.into_iter().find(|(_, factor)| fits(*factor)).unwrap_or(("B", 1));
        format!("{}{name}", self.0 / factor)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]+ ?(B|KiB|MiB|GiB)$", "examples": ["64MiB"] })
    }
}

/// A value out of a closed list of words.
trait Word: Copy + PartialEq + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

fn read_word<T: Word>(text: &str) -> Result<T, String> {
    let words = || T::WORDS.iter().map(|(word, _)| *word);
    if let Some((_, value)) = T::WORDS.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let known = words().collect::<Vec<_>>().join(", ");
    Err(match nearest(text, words()) {
        Some(near) => format!("{text:?} is none of {known}; did you mean {near:?}?"),
        None => format!("{text:?} is none of {known}"),
    })
}

fn write_word<T: Word>(value: T) -> String {
    T::WORDS.iter().find(|(_, known)| *known == value).map_or_else(String::new, |(word, _)| (*word).to_owned())
}

fn word_schema<T: Word>() -> Schema {
    let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
    json_schema!({ "type": "string", "enum": words })
}

macro_rules! words {
    ($type:ty, $what:literal, $($word:literal => $value:expr),+ $(,)?) => {
        impl Word for $type {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $value)),+];
        }

        impl Written for $type {
            const WHAT: &'static str = $what;

            fn read(text: &str) -> Result<Self, String> {
                read_word(text)
            }

            fn write(&self) -> String {
                write_word(*self)
            }

            fn schema() -> Schema {
                word_schema::<Self>()
            }
        }
    };
}

words!(Beats, "a word such as auto", "auto" => Self::Auto, "own" => Self::Own, "presence" => Self::Presence);
words!(Orphans, "a word such as end", "end" => Self::End, "hold" => Self::Hold);
words!(Reload, "a word such as watch", "watch" => Self::Watch, "command" => Self::Command);
words!(StartMode, "a word such as auto", "auto" => Self::Auto, "manual" => Self::Manual);
words!(CarriageReturns, "a word such as last", "last" => Self::Last, "all" => Self::All);
words!(
    GitLocks, "a word such as report", "report" => Self::Report, "remove" => Self::Remove, "ignore" => Self::Ignore,
);
words!(Sigpipe, "a word such as default", "default" => Self::Default, "ignore" => Self::Ignore);
words!(
    Enforcement, "a word such as required", "required" => Self::Required, "best-effort" => Self::BestEffort,
);
words!(
    ResumeOn, "a word such as lost",
    "lost" => Self::Lost, "failed" => Self::Failed, "stale" => Self::Stale, "hung" => Self::Hung,
    "limit" => Self::Limit, "completed" => Self::Completed,
);
words!(
    EntryKind, "a kind of entry such as alert",
    "transition" => Self::Transition, "phase" => Self::Phase, "attempt-started" => Self::AttemptStarted,
    "attempt-ended" => Self::AttemptEnded, "lease-expired" => Self::LeaseExpired, "alert" => Self::Alert,
    "beat" => Self::Beat, "agent" => Self::Agent,
);

impl EntryKind {
    /// As it is written in the config, and as [`latido_protocol::journal::Body::kind`] has it.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Written + PartialEq + fmt::Debug>(text: &str) {
        let value = T::read(text).unwrap();
        assert_eq!(value.write(), text);
        assert_eq!(T::read(&value.write()).unwrap(), value);
    }

    #[test]
    fn what_is_written_reads_back() {
        round_trip::<Span>("1h30m");
        round_trip::<Limit>("none");
        round_trip::<Limit>("15m");
        round_trip::<Backoff>("5s..5m");
        for size in ["16MiB", "1GiB", "1B", "1536KiB", "0B"] {
            round_trip::<Size>(size);
        }
        for kind in EntryKind::ALL {
            round_trip::<EntryKind>(kind.as_str());
        }
        assert_eq!(EntryKind::WORDS.len(), EntryKind::ALL.len());
    }

    /// Field case C053 (riverqueue/river#1287): "no timeout" was a number, and was compared as one.
    #[test]
    fn c053_no_limit_is_one_word_and_never_a_number() {
        assert_eq!(Limit::read("none").unwrap(), Limit::None);
        for bad in ["-1", "0", "0s", "-1s", "infinite", "inf", "never", "None", ""] {
            let why = Limit::read(bad).unwrap_err();
            assert!(why.contains("`none`"), "{bad}: {why}");
        }
    }

    #[test]
    fn a_size_has_a_unit() {
        assert!(Size::read("64").unwrap_err().contains("no unit"));
        for bad in ["", "MiB", "64MB!", "64 parsecs", "-1MiB", "99999999999999999999GiB", "1.5MiB"] {
            assert!(Size::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wrong_word_is_told_with_the_nearest() {
        assert!(Beats::read("ouwn").unwrap_err().ends_with("did you mean \"own\"?"));
        assert!(Beats::read("zzz").unwrap_err().ends_with("auto, own, presence"));
    }
}
