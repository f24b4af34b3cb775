//! A strategy: asked how a job goes on after an attempt ended. It proposes; the policy decides.

use std::path::Path;
use std::time::Duration;

use latido_driver::{AttemptName, Fact};
use latido_plugin_host::{self as guest, CallError, Host, Kind, LoadError, PluginSpec, Strategy};
use latido_policy::Proposal;
use latido_protocol::files::{Budget, JobFile, Spent};
use latido_protocol::status::SubjectStatus;
use latido_protocol::{CountLimit, WallTime};
use tokio::sync::{mpsc, oneshot};

use super::{Ground, Wait, entries, subjects};
use crate::jobs::records::AttemptRecords;
use crate::settings::PluginSettings;
use crate::{clock, found};

/// The newest attempts that a strategy is told of.
const PAST_MAX: usize = 100;

/// The attribute of a situation by which a strategy learns that a person asks for another attempt.
const BY_HAND: &str = "by-hand";

/// The attribute of a budget that says how many tokens are left.
const TOKENS_LEFT: &str = "tokens-left";

/// One ended attempt to be asked about.
pub(crate) struct Question {
    pub(crate) attempt: AttemptName,
    pub(crate) by_hand: bool,
    pub(crate) answer: oneshot::Sender<Fact>,
}

/// Runs a strategy until the agent ends.
pub(crate) async fn run(mut ground: Ground, settings: PluginSettings, mut questions: mpsc::Receiver<Question>) {
    let mut strategy: Option<Strategy> = ground.load_once(&settings, Kind::Strategy, load).await;
    loop {
        let question = tokio::select! {
            question = questions.recv() => question,
            wait = ground.wait_for(std::future::pending()) => match wait {
                Wait::Over | Wait::Ends => return,
                Wait::Reload(told) => {
                    ground.load_again(&settings, Kind::Strategy, load, &mut strategy, told).await;
                    continue;
                }
            },
        };
        let Some(Question { attempt, by_hand, answer }) = question else { return };
        if strategy.is_none() {
            strategy = ground.load_once(&settings, Kind::Strategy, load).await;
        }
        let fact = decide(&ground, &settings.name, strategy.as_mut(), attempt, by_hand).await;
        if let Some(strategy) = &strategy {
            ground.costs(&settings.name, strategy.costs());
        }
        // Who asked may be gone: the agent is ending.
        let _unheard = answer.send(fact);
    }
}

pub(super) async fn load(host: &Host, spec: PluginSpec) -> Result<Strategy, LoadError> {
    host.load_strategy(spec).await
}

async fn decide(
    ground: &Ground,
    name: &str,
    strategy: Option<&mut Strategy>,
    attempt: AttemptName,
    by_hand: bool,
) -> Fact {
    let answered = |proposal, detail: String, command| Fact::StrategyAnswered {
        attempt: attempt.clone(),
        proposal,
        detail,
        command,
    };
    let failed = |detail: &str| answered(Proposal::Failed, format!("strategy {name}: {detail}"), None);
    let Some(strategy) = strategy else { return failed("it could not be loaded") };
    let job = attempt.job.clone();
    let known = ground.loader.driver.ask(move |driver| {
        let status = driver.subjects(std::slice::from_ref(&job)).pop();
        status.zip(driver.latest(&job).map(|latest| latest.job.clone()))
    });
    let Ok(Some((status, job))) = known.await else { return failed("the job is gone") };
    let state = ground.loader.state.clone();
    let name_of_job = job.name.clone();
    let past = tokio::task::spawn_blocking(move || found::past(&state, &name_of_job, PAST_MAX)).await;
    let Ok(past) = past else { return failed("the agent is ending") };
    let asked = command(&job);
    let mut situation = situation(status, &job, past, asked.clone());
    if by_hand {
        situation.attributes.push(guest::Attribute { key: BY_HAND.to_owned(), value: "true".to_owned() });
    }
    match ask(ground, name, strategy, (&situation, &job.directory)).await {
        Ok(guest::Decision::Launch(proposed)) => {
            ground.works(name).await;
            let mut words = vec![proposed.program.clone()];
            words.extend(proposed.arguments.iter().cloned());
            if let Some(refusal) = refusal(&asked, &proposed) {
                return answered(
                    Proposal::Hold,
                    format!("strategy {name} proposes what is not allowed: {refusal}"),
                    None,
                );
            }
            let command = (words != job.command).then_some(words);
            answered(Proposal::Launch, String::new(), command)
        }
        Ok(guest::Decision::Wait(guest::Pause { length, why })) => {
            answered(Proposal::Wait(Duration::from_millis(length)), format!("strategy {name}: {why}"), None)
        }
        Ok(guest::Decision::Hold(why)) => answered(Proposal::Hold, format!("strategy {name}: {why}"), None),
        Ok(guest::Decision::Other(unknown)) => {
            let detail = format!("strategy {name}: {}, which this agent does not know: {}", unknown.name, unknown.why);
            answered(Proposal::Hold, detail, None)
        }
        Ok(guest::Decision::GiveUp(why)) => answered(Proposal::GiveUp, format!("strategy {name}: {why}"), None),
        Err(error) => {
            ground.fault(name, &error).await;
            failed(&latido_protocol::chain(&error))
        }
    }
}

/// Asks, and has it taken down where the plugin is recorded.
async fn ask(
    ground: &Ground,
    name: &str,
    strategy: &mut Strategy,
    (situation, directory): (&guest::Situation, &Path),
) -> Result<guest::Decision, CallError> {
    let answer = strategy.decide(situation, directory).await;
    if let Some(recorder) = ground.loader.records.of(name) {
        recorder.decided(situation, &answer);
    }
    answer
}

/// A proposal may change arguments. Another program, directory or environment is not the same job.
fn refusal(asked: &guest::Command, proposed: &guest::Command) -> Option<String> {
    if proposed.program != asked.program {
        return Some(format!("the program {} in place of {}", proposed.program, asked.program));
    }
    if proposed.directory.as_ref().is_some_and(|directory| Some(directory) != asked.directory.as_ref()) {
        return Some("another directory".to_owned());
    }
    let names = |command: &guest::Command| -> Vec<String> {
        command.environment.iter().map(|variable| variable.name.clone()).collect()
    };
    let withheld = proposed.environment.iter().all(|v| matches!(v.value, guest::EnvironmentValue::Withheld));
    (!proposed.environment.is_empty() && (names(proposed) != names(asked) || !withheld))
        .then(|| "another environment".to_owned())
}

/// The job's command; the values of its environment are withheld.
fn command(job: &JobFile) -> guest::Command {
    let mut words = job.command.iter().cloned();
    guest::Command {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        directory: Some(job.directory.to_string_lossy().into_owned()),
        environment: job
            .environment
            .keys()
            .map(|name| guest::EnvironmentVariable { name: name.clone(), value: guest::EnvironmentValue::Withheld })
            .collect(),
    }
}

fn situation(
    status: SubjectStatus,
    job: &JobFile,
    past: Vec<AttemptRecords>,
    command: guest::Command,
) -> guest::Situation {
    let attempts_left = match job.settings.resume.max_attempts {
        CountLimit::None => None,
        CountLimit::At(max) => Some(u32::try_from(max).unwrap_or(u32::MAX).saturating_sub(status.attempt)),
    };
    let budget = budget(attempts_left, status.budget, status.spent);
    guest::Situation {
        now: clock::wall().as_millis(),
        subject: subjects::to_guest(status),
        command,
        attempts: past.into_iter().map(past_attempt).collect(),
        budget,
        attributes: Vec::new(),
    }
}

fn past_attempt(records: AttemptRecords) -> guest::PastAttempt {
    guest::PastAttempt {
        number: records.number,
        started: records.start.as_ref().map_or(0, |start| start.launched_at.as_millis()),
        ended: records.end.as_ref().map(|end| end.ended_at).map(WallTime::as_millis),
        outcome: records.end.as_ref().map(|end| entries::outcome(&end.outcome)),
        class: records.end.as_ref().map(|end| end.outcome.class.to_string()),
        usage: records.end.as_ref().and_then(|end| entries::usage(end.spent)),
        progress: records
            .end
            .and_then(|end| end.progress)
            .or_else(|| records.status.and_then(|status| status.progress))
            .map(entries::progress),
        notes: Vec::new(),
        attributes: Vec::new(),
    }
}

/// What is left of a budget after all attempts so far. The package has no field for tokens, so they stand beside it.
fn budget(attempts_left: Option<u32>, budget: Budget, spent: Spent) -> guest::Budget {
    let left = |limit: CountLimit, spent: u64| match limit {
        CountLimit::None => None,
        CountLimit::At(count) => Some(count.saturating_sub(spent)),
    };
    let tokens = left(budget.tokens, spent.tokens);
    let attribute = |tokens: u64| guest::Attribute { key: TOKENS_LEFT.to_owned(), value: tokens.to_string() };
    guest::Budget {
        attempts_left,
        turns_left: left(budget.turns, spent.turns),
        cost_left_usd: left(budget.money, spent.money).map(entries::units),
        time_left: None,
        attributes: tokens.map(attribute).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field case C296 (seed 003 with paperclipai/paperclip#390): a resumed attempt is told what is left.
    #[test]
    fn c296_a_strategy_is_told_what_all_attempts_left_of_the_budget() {
        let allowed = Budget { turns: CountLimit::At(10), tokens: CountLimit::At(5), money: CountLimit::At(2_500_000) };
        let left = budget(Some(1), allowed, Spent { turns: 6, tokens: 9, money: 500_000 });
        assert_eq!((left.attempts_left, left.turns_left, left.cost_left_usd), (Some(1), Some(4), Some(2.0)));
        let tokens: Vec<_> = left.attributes.iter().map(|left| (left.key.as_str(), left.value.as_str())).collect();
        assert_eq!(tokens, [("tokens-left", "0")], "more than all is nothing left");
        let none = budget(Some(1), Budget::default(), Spent { turns: 6, tokens: 9, money: 1 });
        assert_eq!((none.turns_left, none.cost_left_usd, none.attributes.len()), (None, None, 0));
    }
}
