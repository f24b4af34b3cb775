//! What the attempts of a job have used up together, and how much they may.

use core::fmt;

use crate::{Limit, Reason};

/// What is counted. The policy adds and compares; what a unit is worth is the caller's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// turns of a conversation
    Turns,
    /// tokens
    Tokens,
    /// money, in millionths of its unit
    Money,
}

/// What was used up. It only grows within an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// turns of a conversation
    pub turns: u64,
    /// tokens
    pub tokens: u64,
    /// money, in millionths of its unit
    pub money: u64,
}

/// How much all attempts of a job may use up together. A resume by hand gives nothing back: the sum is carried over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// turns of a conversation
    pub turns: Limit<u64>,
    /// tokens
    pub tokens: Limit<u64>,
    /// money, in millionths of its unit
    pub money: Limit<u64>,
}

impl Spent {
    /// The sum of two attempts.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            turns: self.turns.saturating_add(other.turns),
            tokens: self.tokens.saturating_add(other.tokens),
            money: self.money.saturating_add(other.money),
        }
    }

    /// The higher of two reports about one attempt: what was used up once stays used up.
    pub(crate) fn highest(self, other: Self) -> Self {
        Self {
            turns: self.turns.max(other.turns),
            tokens: self.tokens.max(other.tokens),
            money: self.money.max(other.money),
        }
    }
}

impl Budget {
    /// Answers the first counter that has reached its bound, as the reason why nothing more is spent.
    #[must_use]
    pub fn used_up(self, spent: Spent) -> Option<Reason> {
        let Self { turns, tokens, money } = self;
        [
            (Counter::Turns, turns, spent.turns),
            (Counter::Tokens, tokens, spent.tokens),
            (Counter::Money, money, spent.money),
        ]
        .into_iter()
        .find_map(|(counter, limit, spent)| {
            limit.reached(spent).map(|budget| Reason::BudgetUsedUp { counter, spent, budget })
        })
    }
}

impl Counter {
    /// Writes that so much of a budget is used up.
    pub(crate) fn write_used_up(self, f: &mut fmt::Formatter<'_>, spent: u64, budget: u64) -> fmt::Result {
        write!(f, "budget used up: {} of {} {self}", Amount(self, spent), Amount(self, budget))
    }
}

/// An amount of what is counted, as people write it.
struct Amount(Counter, u64);

/// Millionths in one unit of money.
const MILLIONTHS: u64 = 1_000_000;

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(counter, amount) = *self;
        match counter {
            Counter::Money if !amount.is_multiple_of(MILLIONTHS) => {
                let (mut decimals, mut width) = (amount % MILLIONTHS, 6);
                while decimals.is_multiple_of(10) {
                    (decimals, width) = (decimals / 10, width - 1);
                }
                write!(f, "{}.{decimals:0width$}", amount / MILLIONTHS)
            }
            Counter::Money => write!(f, "{}", amount / MILLIONTHS),
            Counter::Turns | Counter::Tokens => write!(f, "{amount}"),
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Money => "money",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_up_at_its_bound_and_names_the_counter() {
        let budget = Budget { tokens: Limit::At(10), money: Limit::At(5), ..Budget::default() };
        assert_eq!(budget.used_up(Spent { turns: u64::MAX, tokens: 9, money: 4 }), None);
        let used_up = Reason::BudgetUsedUp { counter: Counter::Tokens, spent: 10, budget: 10 };
        assert_eq!(budget.used_up(Spent { turns: 0, tokens: 10, money: 9 }), Some(used_up));
    }

    #[test]
    fn a_used_up_budget_is_told_in_the_units_that_people_write() {
        let told = |counter, spent, budget| format!("{}", Reason::BudgetUsedUp { counter, spent, budget });
        assert_eq!(told(Counter::Turns, 6, 5), "budget used up: 6 of 5 turns");
        assert_eq!(told(Counter::Money, 4_500_000, 4_000_000), "budget used up: 4.5 of 4 money");
        assert_eq!(told(Counter::Money, 1_000_010, 50_000), "budget used up: 1.00001 of 0.05 money");
    }

    #[test]
    fn sums_stop_at_the_greatest_number() {
        let all = Spent { turns: u64::MAX, tokens: 1, money: 2 };
        assert_eq!(all.plus(all), Spent { turns: u64::MAX, tokens: 2, money: 4 });
        assert_eq!(
            all.highest(Spent { turns: 0, tokens: 5, money: 0 }),
            Spent { turns: u64::MAX, tokens: 5, money: 2 }
        );
    }
}
