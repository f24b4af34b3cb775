//! The nouns of 0.1 and what each of them is in 0.2, in the direction in which it is told.

use super::super::same::{Same, cases, record};
use super::super::v0_2::rule::exports::latido::plugin::rule as new_rule;
use super::super::v0_2::sink::latido::plugin::types as new;
use super::super::v0_2::strategy::exports::latido::plugin::strategy as new_strategy;
use super::rule::exports::latido::plugin::rule as old_rule;
use super::sink::latido::plugin::{journal as old_journal, types as old};
use super::strategy::exports::latido::plugin::strategy as old_strategy;

// What is told to plugins.
record!(new::Attribute => old::Attribute { key, value });
record!(new::Progress => old::Progress { fraction, done, total, step, checkpoint });
record!(new::Usage => old::Usage { turns, tokens, cost_usd });
cases!(new::Outcome => old::Outcome {
    Exited(status), Signaled(signal), Lost(how), Stopped(whose), LaunchFailed(why), OutOfMemory, LimitReached(which), Other(words)
});
record!(new::Subject => old::Subject {
    name, kind, host, policy, verdict, since, reason, last_beat, silence, progress, progress_changed, usage, attempt, epoch,
    errors, attributes,
});
cases!(new_strategy::EnvironmentValue => old_strategy::EnvironmentValue { Plain(text), Withheld, Secret(name) });
record!(new_strategy::EnvironmentVariable => old_strategy::EnvironmentVariable { name, value });
record!(new_strategy::Command => old_strategy::Command { program, arguments, directory, environment });
record!(new_strategy::Budget => old_strategy::Budget { attempts_left, turns_left, cost_left_usd, time_left, attributes });
record!(new_strategy::Situation => old_strategy::Situation { now, subject, command, attempts, budget, attributes });

// What plugins answer.
record!(old::Attribute => new::Attribute { key, value });
record!(old::Progress => new::Progress { fraction, done, total, step, checkpoint });
record!(old::Usage => new::Usage { turns, tokens, cost_usd });
cases!(old::PluginError => new::PluginError {
    InvalidConfig(why), RetryAfter(length), Retry(why), Permanent(why), Denied(what), Other(words)
});
cases!(old_journal::Severity => new::Severity { Info, Warning, Critical });
record!(old_rule::Finding => new_rule::Finding { key, subject, severity, summary, attributes });
cases!(old_strategy::EnvironmentValue => new_strategy::EnvironmentValue { Plain(text), Withheld, Secret(name) });
record!(old_strategy::EnvironmentVariable => new_strategy::EnvironmentVariable { name, value });
record!(old_strategy::Command => new_strategy::Command { program, arguments, directory, environment });
cases!(old_strategy::QuietKind => new_strategy::QuietKind { None, External, Human });

impl Same<old::SubjectKind> for new::SubjectKind {
    fn same(self) -> old::SubjectKind {
        match self {
            Self::Job => old::SubjectKind::Job,
            Self::Worker => old::SubjectKind::Worker,
            Self::Check => old::SubjectKind::Check,
            // The least that a kind can be which 0.1 does not know.
            Self::Process | Self::Other => old::SubjectKind::Process,
        }
    }
}

impl Same<old::Verdict> for new::Verdict {
    fn same(self) -> old::Verdict {
        match self {
            Self::Waiting => old::Verdict::Waiting,
            Self::Missing => old::Verdict::Missing,
            Self::Alive => old::Verdict::Alive,
            Self::Late => old::Verdict::Late,
            Self::Stale => old::Verdict::Stale,
            Self::Hung => old::Verdict::Hung,
            Self::Failing => old::Verdict::Failing,
            Self::Orphaned => old::Verdict::Orphaned,
            Self::Dead => old::Verdict::Dead,
            Self::Unknown | Self::Other => old::Verdict::Unknown,
            Self::Ended => old::Verdict::Ended,
        }
    }
}

impl Same<old_strategy::PastAttempt> for new_strategy::PastAttempt {
    fn same(self) -> old_strategy::PastAttempt {
        let Self { number, started, ended, outcome, class, progress, usage, mut notes, attributes } = self;
        notes.extend(attributes); // the only list that 0.1 has here
        old_strategy::PastAttempt {
            number,
            started,
            ended,
            outcome: outcome.same(),
            class,
            progress: progress.same(),
            usage: usage.same(),
            notes: notes.same(),
        }
    }
}

impl Same<new_strategy::Decision> for old_strategy::Decision {
    fn same(self) -> new_strategy::Decision {
        match self {
            Self::Launch(command) => new_strategy::Decision::Launch(command.same()),
            Self::Wait((length, why)) => new_strategy::Decision::Wait(new_strategy::Pause { length, why }),
            Self::Hold(why) => new_strategy::Decision::Hold(why),
            Self::GiveUp(why) => new_strategy::Decision::GiveUp(why),
        }
    }
}

impl Same<new_strategy::Observation> for old_strategy::Observation {
    fn same(self) -> new_strategy::Observation {
        let Self { progress, usage, notes, quiet, quiet_until, finished } = self;
        new_strategy::Observation {
            progress: progress.same(),
            usage: usage.same(),
            notes: notes.same(),
            quiet: quiet.same(),
            quiet_until,
            finished,
            attributes: Vec::new(),
        }
    }
}
