//! What would be run, with every setting.

use std::path::PathBuf;
use std::process::ExitCode;

use latido::jobs::make::NewJob;
use latido::settings::{MoneyLimit, SizeLimit};
use latido_protocol::files::{
    Budget, CgroupPlace, Enforcement, EnvironmentFrom, GitLocks, JobSettings, LaunchSettings, Sigpipe,
};
use latido_protocol::{FORMAT_VERSION, Redaction, SubjectName};
use serde::Serialize;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::print;

/// What `--dry-run --json` prints.
#[derive(Serialize)]
struct Plan<'a> {
    version: u32,
    name: &'a SubjectName,
    /// without the values that are secrets by their names
    command: Vec<String>,
    directory: &'a PathBuf,
    /// names alone: a value may be a secret
    environment: Vec<&'a String>,
    settings: JobSettings,
}

/// Says what would be run, and runs nothing.
pub(super) fn dry_run(args: &RunArgs, new: &NewJob, redaction: &Redaction) -> Result<ExitCode, Failure> {
    let mut settings = new.settings.clone();
    if let Some(on_end) = &mut settings.on_end {
        on_end.command = redaction.command(&on_end.command);
    }
    let plan = Plan {
        version: FORMAT_VERSION,
        name: &new.name,
        command: redaction.command(&new.command),
        directory: &new.directory,
        environment: new.environment.keys().collect(),
        settings,
    };
    if args.json {
        return print::json(&plan).map(|()| ExitCode::SUCCESS);
    }
    let settings = &plan.settings;
    let on: Vec<String> = settings.resume.on.iter().map(|on| format!("{on:?}").to_lowercase()).collect();
    let rows = [
        ("name", new.name.to_string()),
        ("command", plan.command.join(" ")),
        ("directory", new.directory.display().to_string()),
        ("environment", plan.environment.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ")),
        ("policy", settings.policy.clone()),
        ("strategy", settings.strategy.clone()),
        ("beats", format!("{:?}", settings.beats).to_lowercase()),
        ("interval", settings.interval.to_string()),
        ("ttl", settings.ttl.to_string()),
        ("start within", settings.start_within.to_string()),
        ("hung after", settings.hung_after.to_string()),
        ("run for", settings.run_for.to_string()),
        ("looping after", settings.looping_after.to_string()),
        ("output within", settings.first_output_within.to_string()),
        ("slots", if settings.slots.is_empty() { "none".to_owned() } else { settings.slots.join(", ") }),
        ("resume on", on.join(", ")),
        ("attempts", format!("at most {}", settings.resume.max_attempts)),
        ("backoff", format!("{} to {}", settings.resume.backoff.first, settings.resume.backoff.longest)),
        ("budget", budget(&settings.resume.budget)),
        ("grace", settings.grace.to_string()),
        ("linger", settings.linger.to_string()),
        ("launch", launch_words(&settings.launch)),
        ("on end", settings.on_end.as_ref().map_or("nothing".to_owned(), |on_end| on_end.command.join(" "))),
    ];
    let text: String = rows.iter().map(|(key, value)| format!("{key:<15}{value}\n")).collect();
    print::out(&text).map(|()| ExitCode::SUCCESS)
}

/// The counters that are limited.
fn budget(budget: &Budget) -> String {
    let money = MoneyLimit(budget.money).to_string();
    let counters = [(budget.turns.to_string(), "turns"), (budget.tokens.to_string(), "tokens"), (money, "money")];
    let limited = counters.iter().filter(|(limit, _)| limit != "none");
    let text = limited.map(|(limit, counter)| format!("{limit} {counter}")).collect::<Vec<_>>().join(", ");
    if text.is_empty() { "none".to_owned() } else { text }
}

/// What of a launch is not as whoever launches has it.
fn launch_words(launch: &LaunchSettings) -> String {
    let environment = match &launch.environment {
        EnvironmentFrom::Inherit => None,
        EnvironmentFrom::Clean => Some("environment clean".to_owned()),
        EnvironmentFrom::List(names) => Some(format!("environment {}", names.join(","))),
    };
    let cgroup = match &launch.cgroup {
        CgroupPlace::Auto => None,
        CgroupPlace::None => Some("no cgroup".to_owned()),
        CgroupPlace::Under(folder) => Some(format!("cgroup under {}", folder.display())),
    };
    let limits = launch.rlimits.iter().map(|(name, limit)| {
        let hard = limit.hard.filter(|hard| *hard != limit.soft).map(|hard| format!("..{hard}")).unwrap_or_default();
        format!("{name} {}{hard}", limit.soft)
    });
    let words = [
        launch.user.as_ref().map(|user| format!("user {user}")),
        launch.group.as_ref().map(|group| format!("group {group}")),
        launch.umask.map(|umask| format!("umask {umask:03o}")),
        launch.nice.map(|nice| format!("nice {nice}")),
        environment,
        launch.memory_max.map(|max| format!("memory {}", SizeLimit(Some(max)))),
        launch.pids_max.map(|max| format!("{max} processes")),
        (launch.limits == Enforcement::BestEffort).then(|| "limits best-effort".to_owned()),
        (launch.sigpipe == Sigpipe::Ignore).then(|| "SIGPIPE ignored".to_owned()),
        cgroup,
        (launch.git_locks == GitLocks::Remove).then(|| "git locks removed".to_owned()),
        (launch.git_locks == GitLocks::Ignore).then(|| "git locks ignored".to_owned()),
    ];
    let text = words.into_iter().flatten().chain(limits).collect::<Vec<_>>().join(", ");
    if text.is_empty() { "as this command is".to_owned() } else { text }
}
