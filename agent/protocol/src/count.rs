use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A bound on a count that may be absent on purpose: `none` says that there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountLimit {
    /// No limit.
    #[default]
    None,
    /// Reached at this many.
    At(u64),
}

/// Why a text is neither a count nor `none`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a count such as 20, or `none` for no limit")]
pub struct CountLimitError(String);

impl FromStr for CountLimit {
    type Err = CountLimitError;

    fn from_str(text: &str) -> Result<Self, CountLimitError> {
        match text.trim() {
            "none" => Ok(Self::None),
            number => number.parse().map(Self::At).map_err(|_| CountLimitError(text.to_owned())),
        }
    }
}

impl fmt::Display for CountLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::At(count) => count.fmt(f),
        }
    }
}

impl Serialize for CountLimit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_str("none"),
            Self::At(count) => serializer.serialize_u64(*count),
        }
    }
}

impl<'de> Deserialize<'de> for CountLimit {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        match (value.as_str(), value.as_u64()) {
            (Some("none"), _) => Ok(Self::None),
            (_, Some(count)) => Ok(Self::At(count)),
            _ => Err(serde::de::Error::custom(format!("{value} is neither a count nor \"none\""))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_a_word_and_no_number() {
        for limit in [CountLimit::None, CountLimit::At(0), CountLimit::At(u64::MAX)] {
            let text = serde_json::to_string(&limit).unwrap();
            assert_eq!(serde_json::from_str::<CountLimit>(&text).unwrap(), limit);
            assert_eq!(limit.to_string().parse::<CountLimit>().unwrap(), limit);
        }
        for bad in ["-1", "", "1.5", "many"] {
            assert!(bad.parse::<CountLimit>().is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<CountLimit>("-1").is_err());
    }
}
