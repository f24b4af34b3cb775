//! What can be typed about a budget.

use clap::Args;
use latido::settings::{BudgetOverrides, MoneyLimit, parse_count_limit, parse_money_limit};
use latido_protocol::CountLimit;

/// What all attempts of a job may use up together, as the job tells it.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct BudgetArgs {
    /// Let all attempts together have so many turns of a conversation, or `none`
    #[arg(long, value_name = "N", value_parser = parse_count_limit)]
    budget_turns: Option<CountLimit>,
    /// Let all attempts together use so many tokens, or `none`
    #[arg(long, value_name = "N", value_parser = parse_count_limit)]
    budget_tokens: Option<CountLimit>,
    /// Let all attempts together cost so much money (4.50), or `none`
    #[arg(long, value_name = "AMOUNT", value_parser = parse_money_limit)]
    budget_money: Option<MoneyLimit>,
}

impl BudgetArgs {
    /// What is said in place of the budget that holds.
    pub(crate) fn overrides(self) -> BudgetOverrides {
        BudgetOverrides { turns: self.budget_turns, tokens: self.budget_tokens, money: self.budget_money }
    }
}
