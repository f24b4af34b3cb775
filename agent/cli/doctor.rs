//! `latido doctor`.

use std::process::ExitCode;

use latido::settings::Settings;
use latido_protocol::FORMAT_VERSION;
use latido_protocol::layout::StateDir;
use serde::Serialize;

use crate::args::{DoctorArgs, GlobalArgs};
use crate::failure::{Failure, chain};
use crate::print;

mod host;
mod kernel;
mod login;
mod place;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Ok,
    Warn,
    Fail,
}

/// One check.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    outcome: Outcome,
    detail: String,
    /// what to do, where there is something
    next: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Ok, detail: detail.into(), next: None }
    }

    fn warn(name: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Warn, detail: detail.into(), next: Some(next.into()) }
    }

    fn fail(name: &'static str, detail: impl Into<String>, next: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Fail, detail: detail.into(), next: Some(next.into()) }
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    version: u32,
    checks: Vec<Check>,
}

/// Looks for what would keep latido from working here. One check that cannot be made keeps no other from being made.
pub(crate) fn run(args: &DoctorArgs, global: &GlobalArgs) -> Result<ExitCode, Failure> {
    let report = Report { version: FORMAT_VERSION, checks: checks(global) };
    if args.json {
        print::json(&report)?;
    } else {
        print::out(&render(&report.checks))?;
    }
    let failed = report.checks.iter().any(|check| check.outcome == Outcome::Fail);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn checks(global: &GlobalArgs) -> Vec<Check> {
    let (settings, config) = config(global);
    let mut checks = vec![config];
    match settings.state_dir(global.state_dir.as_deref()).map(StateDir::new) {
        Ok(state) => {
            checks.push(place::state_directory(&state));
            checks.push(place::disk_space(&state));
            checks.push(place::agent(&state));
            checks.push(place::supervisors(&state));
        }
        Err(error) => checks.push(Check::fail("state directory", chain(&error), error.next())),
    }
    checks.push(place::sockets());
    checks.push(host::supervisor());
    checks.push(host::identity());
    checks.push(host::pidfd());
    checks.push(host::subreaper());
    checks.push(host::descriptors());
    checks.push(kernel::cgroup());
    checks.push(kernel::inotify());
    checks.push(kernel::clocks());
    checks.push(login::session());
    checks.push(kernel::trust());
    checks
}

/// The settings in force; the defaults where the config does not check out, so that the other checks can be made.
fn config(global: &GlobalArgs) -> (Settings, Check) {
    let name = "config";
    match Settings::load(global.config.as_deref()) {
        Ok(settings) => {
            let check = match (&settings.file, settings.warnings.first()) {
                (_, Some(warning)) => Check::warn(name, warning.to_string(), "change one of the two values"),
                (Some(file), None) => Check::ok(name, file.display().to_string()),
                (None, None) => Check::ok(name, "no file; the defaults are in force"),
            };
            (settings, check)
        }
        Err(error) => (Settings::default(), Check::fail(name, error.causes().join("; "), error.next())),
    }
}

fn render(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let outcome = match check.outcome {
            Outcome::Ok => "ok  ",
            Outcome::Warn => "warn",
            Outcome::Fail => "fail",
        };
        text.push_str(&format!("{outcome}  {:width$}  {}\n", check.name, check.detail));
        if let Some(next) = &check.next {
            text.push_str(&format!("      {:width$}  next: {next}\n", ""));
        }
    }
    text
}
