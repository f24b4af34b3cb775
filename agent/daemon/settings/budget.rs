//! Budgets: what all attempts of a job may use up together.

use std::fmt;

use latido_protocol::CountLimit;
use latido_protocol::files::{Budget, Money};
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};

use super::text::{Text, Written};

/// `budget = { … }`
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct BudgetTable {
    /// Turns of a conversation, or `none`.
    turns: Option<Text<CountLimit>>,
    /// Tokens, or `none`.
    tokens: Option<Text<CountLimit>>,
    /// Money, in whatever unit the job tells it, or `none`.
    money: Option<Text<MoneyLimit>>,
}

/// What is said in place of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetOverrides {
    /// turns of a conversation
    pub turns: Option<CountLimit>,
    /// tokens
    pub tokens: Option<CountLimit>,
    /// money
    pub money: Option<MoneyLimit>,
}

impl BudgetOverrides {
    /// The same budget with what is said in place of it.
    #[must_use]
    pub fn over(self, budget: Budget) -> Budget {
        Budget {
            turns: self.turns.unwrap_or(budget.turns),
            tokens: self.tokens.unwrap_or(budget.tokens),
            money: self.money.map_or(budget.money, |money| money.0),
        }
    }

    pub(super) fn table(self) -> Option<BudgetTable> {
        let Self { turns, tokens, money } = self;
        let table = BudgetTable { turns: turns.map(Text), tokens: tokens.map(Text), money: money.map(Text) };
        (table != BudgetTable::default()).then_some(table)
    }
}

impl BudgetTable {
    /// Every counter written out.
    pub(super) fn of(budget: Budget) -> Self {
        let money = Some(Text(MoneyLimit(budget.money)));
        Self { turns: Some(Text(budget.turns)), tokens: Some(Text(budget.tokens)), money }
    }

    pub(super) fn overrides(self) -> BudgetOverrides {
        let count = |text: Option<Text<CountLimit>>| text.map(|text| text.0);
        BudgetOverrides { turns: count(self.turns), tokens: count(self.tokens), money: self.money.map(|text| text.0) }
    }
}

/// A limit of money, counted in millionths and written in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoneyLimit(pub CountLimit);

impl Written for MoneyLimit {
    const WHAT: &'static str = "an amount of money such as 4.50, or `none` for no limit";

    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "none" => Ok(Self(CountLimit::None)),
            amount => {
                let unreadable = |_| format!("{amount:?} is not {}", Self::WHAT);
                amount.parse::<Money>().map(|money| Self(CountLimit::At(money.0))).map_err(unreadable)
            }
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "number", "minimum": 0 },
                { "type": "string", "pattern": "^(none|[0-9]+(\\.[0-9]{1,6})?)$" }
            ],
            "examples": ["none", "4.50"]
        })
    }
}

impl fmt::Display for MoneyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            CountLimit::None => f.write_str("none"),
            CountLimit::At(millionths) => Money(millionths).fmt(f),
        }
    }
}

/// Reads a limit of money, or `none`.
///
/// # Errors
/// In words, when it is neither.
pub fn parse_money_limit(text: &str) -> Result<MoneyLimit, String> {
    MoneyLimit::read(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_goes_before_the_policy_and_the_rest_stays() {
        let policy = Budget { turns: CountLimit::At(3), tokens: CountLimit::At(4), money: CountLimit::None };
        let said = BudgetOverrides {
            tokens: Some(CountLimit::None),
            money: Some(parse_money_limit("0.5").unwrap()),
            ..BudgetOverrides::default()
        };
        let decided = Budget { turns: CountLimit::At(3), tokens: CountLimit::None, money: CountLimit::At(500_000) };
        assert_eq!(said.over(policy), decided);
    }

    #[test]
    fn no_limit_of_money_is_a_word() {
        for text in ["none", "0", "4.5"] {
            assert_eq!(parse_money_limit(text).unwrap().to_string(), text);
        }
        for bad in ["-1", "", "free", "1e9"] {
            assert!(parse_money_limit(bad).unwrap_err().contains("none"), "{bad}");
        }
    }
}
