use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::CountLimit;

/// What all attempts of a job may use up together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// turns of a conversation
    pub turns: CountLimit,
    /// tokens
    pub tokens: CountLimit,
    /// money, in millionths of its unit
    pub money: CountLimit,
}

impl Budget {
    /// True when nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What an attempt used up so far. A counter that nobody told of is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// turns of a conversation
    pub turns: u64,
    /// tokens
    pub tokens: u64,
    /// money, in millionths of its unit
    pub money: u64,
}

impl Spent {
    /// True when nothing was used up, or nobody told.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The sum of two attempts.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens: self.tokens.saturating_add(other.tokens),
            money: self.money.saturating_add(other.money),
        }
    }

    /// The higher of two reports about one attempt: what was used up once stays used up.
    #[must_use]
    pub fn highest(self, other: Self) -> Self {
        Self {
            turns: self.turns.max(other.turns),
            tokens: self.tokens.max(other.tokens),
            money: self.money.max(other.money),
        }
    }
}

/// Money in millionths of its unit, written as people write it: `4.5`. Which unit it is, a job and its budget agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money(pub u64);

/// Millionths in one unit.
const MILLIONTHS: u64 = 1_000_000;

/// Why a text is no amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an amount of money such as 4.50, with six decimals at most")]
pub struct MoneyError(String);

impl FromStr for Money {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let (whole, decimals) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let are_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_written = !whole.is_empty() && are_digits(whole) && decimals.len() <= 6 && are_digits(decimals);
        let millionths = format!("{decimals:0<6}").parse::<u64>().ok().filter(|_| is_written);
        let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(MILLIONTHS));
        let sum = whole.zip(millionths).and_then(|(whole, millionths)| whole.checked_add(millionths));
        sum.map(Self).ok_or_else(|| MoneyError(text.to_owned()))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!(".{:06}", self.0 % MILLIONTHS);
        write!(f, "{}{}", self.0 / MILLIONTHS, decimals.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_reads_back_as_it_is_written() {
        for (text, millionths) in [("0", 0), ("4", 4_000_000), ("4.5", 4_500_000), ("0.000001", 1)] {
            assert_eq!(text.parse(), Ok(Money(millionths)));
            assert_eq!(Money(millionths).to_string(), text);
        }
        assert_eq!(Money(u64::MAX).to_string().parse(), Ok(Money(u64::MAX)));
        assert_eq!("4.50".parse(), Ok(Money(4_500_000)));
        for bad in ["", ".5", "-1", "+1", "1e3", "1.0000001", "1,5", "$1", "99999999999999999999", "1.+5", "none"] {
            assert!(bad.parse::<Money>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_report_that_says_less_gives_nothing_back() {
        let told = |turns, tokens| Spent { turns, tokens, money: 0 };
        assert_eq!(told(3, 9).highest(told(4, 0)), told(4, 9));
        assert_eq!(told(3, u64::MAX).plus(told(4, 1)), told(7, u64::MAX));
    }
}
