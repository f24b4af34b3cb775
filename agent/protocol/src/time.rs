use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// Calendar time for records and people, in milliseconds since the Unix epoch; RFC 3339 in UTC when written.
///
/// No decision is taken on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WallTime(u64);

impl WallTime {
    /// The last moment that RFC 3339 can write: the end of the year 9999.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// From milliseconds since the Unix epoch; what lies beyond the year 9999 is cut to it.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis.min(Self::MAX.0))
    }

    /// Milliseconds since the Unix epoch.
    pub fn as_millis(self) -> u64 {
        self.0
    }
}

impl From<SystemTime> for WallTime {
    /// A time before 1970 becomes 1970.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(self.0);
        write!(f, "{}", humantime::format_rfc3339_millis(time))
    }
}

impl From<WallTime> for String {
    fn from(time: WallTime) -> Self {
        time.to_string()
    }
}

impl TryFrom<String> for WallTime {
    type Error = humantime::TimestampError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        humantime::parse_rfc3339(&text).map(Self::from)
    }
}

/// A duration: `1h30m` in config and on the command line, seconds as a number in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpanError {
    /// `30` could be seconds, minutes or milliseconds.
    #[error("{0:?} has no unit; write {0}s, {0}m or {0}h")]
    NoUnit(String),
    /// Anything else that cannot be read.
    #[error("{text:?} is not a duration such as 30s, 5m or 1h30m")]
    Unreadable {
        /// what was given
        text: String,
        /// what the reader said
        source: humantime::DurationError,
    },
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let trimmed = text.trim();
        if !trimmed.is_empty() && trimmed.parse::<f64>().is_ok() {
            return Err(SpanError::NoUnit(trimmed.to_owned()));
        }
        humantime::parse_duration(trimmed)
            .map(Self)
            .map_err(|source| SpanError::Unreadable { text: trimmed.to_owned(), source })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nobody reads microseconds; what is shorter than a millisecond stays as it is.
        let whole = Duration::from_secs(self.0.as_secs()) + Duration::from_millis(self.0.subsec_millis().into());
        let shown = if whole.is_zero() { self.0 } else { whole };
        let text = humantime::format_duration(shown).to_string();
        f.write_str(&text.replace(' ', ""))
    }
}

impl Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.subsec_nanos() {
            0 => serializer.serialize_u64(self.0.as_secs()),
            _ => serializer.serialize_f64(self.0.as_secs_f64()),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A duration that may be absent on purpose: `none` says that there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    #[default]
    None,
    /// Ends after this long.
    After(Duration),
}

/// Why a text is neither a duration nor `none`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}, or `none` for no limit")]
pub struct LimitError(pub SpanError);

impl Limit {
    /// The duration, where there is one.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::After(duration) => Some(duration),
        }
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        if text.trim() == "none" {
            return Ok(Self::None);
        }
        text.parse::<Span>().map(|span| Self::After(span.0)).map_err(LimitError)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::After(duration) => Span(*duration).fmt(f),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_str("none"),
            Self::After(duration) => Span(*duration).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if value.as_str() == Some("none") {
            return Ok(Self::None);
        }
        let seconds = value
            .as_f64()
            .ok_or_else(|| serde::de::Error::custom(format!("{value} is neither seconds nor \"none\"")))?;
        Duration::try_from_secs_f64(seconds).map(Self::After).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_refused_with_a_hint() {
        for text in ["30", "0", "1.5", "-1"] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains("no unit"), "{error}");
        }
        assert_eq!("1h30m".parse::<Span>().unwrap().0, Duration::from_secs(5400));
        assert_eq!(Span(Duration::from_secs(5400)).to_string(), "1h30m");
        assert!("".parse::<Span>().is_err());
        assert!("5 parsecs".parse::<Span>().is_err());
    }

    #[test]
    fn wall_time_is_rfc_3339_both_ways() {
        let time = WallTime::from_millis(1_700_000_000_123);
        let text = serde_json::to_string(&time).unwrap();
        assert_eq!(text, "\"2023-11-14T22:13:20.123Z\"");
        assert_eq!(serde_json::from_str::<WallTime>(&text).unwrap(), time);
        assert_eq!(WallTime::from_millis(u64::MAX), WallTime::MAX);
        assert!(WallTime::MAX.to_string().starts_with("9999"));
        assert!(serde_json::from_str::<WallTime>("\"yesterday\"").is_err());
    }

    #[test]
    fn json_durations_are_seconds_and_no_limit_is_a_word() {
        assert_eq!(serde_json::to_string(&Span(Duration::from_secs(3))).unwrap(), "3");
        assert_eq!(serde_json::to_string(&Span(Duration::from_millis(1500))).unwrap(), "1.5");
        assert!(serde_json::from_str::<Span>("-1").is_err());
        let exact = Span(Duration::new(3, 400_001));
        let text = serde_json::to_string(&exact).unwrap();
        assert_eq!(serde_json::from_str::<Span>(&text).unwrap(), exact, "what is near a whole second is not one");
        for limit in [Limit::None, Limit::After(Duration::from_secs(90))] {
            let text = serde_json::to_string(&limit).unwrap();
            assert_eq!(serde_json::from_str::<Limit>(&text).unwrap(), limit);
            assert_eq!(limit.to_string().parse::<Limit>().unwrap(), limit);
        }
        assert!("-1".parse::<Limit>().is_err());
    }
}
