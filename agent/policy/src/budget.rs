//! What the attempts of a job have used up together, and how much they may.

use core::fmt;

use crate::Limit;

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

/// A counter that has reached its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsedUp {
    pub(crate) counter: Counter,
    pub(crate) spent: u64,
    pub(crate) budget: u64,
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
    /// Answers the first counter that has reached its bound.
    pub(crate) fn used_up(self, spent: Spent) -> Option<UsedUp> {
        let Self { turns, tokens, money } = self;
        [
            (Counter::Turns, turns, spent.turns),
            (Counter::Tokens, tokens, spent.tokens),
            (Counter::Money, money, spent.money),
        ]
        .into_iter()
        .find_map(|(counter, limit, spent)| limit.reached(spent).map(|budget| UsedUp { counter, spent, budget }))
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Money => "millionths of money",
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
        let used_up = UsedUp { counter: Counter::Tokens, spent: 10, budget: 10 };
        assert_eq!(budget.used_up(Spent { turns: 0, tokens: 10, money: 9 }), Some(used_up));
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
