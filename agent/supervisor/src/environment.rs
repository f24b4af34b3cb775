//! The variables of what a supervisor runs.

use std::ffi::OsString;

use latido_process::setup::User;
use latido_process::start::SUPERVISOR_ALONE;
use latido_protocol::files::{Beats, EnvironmentFrom, JobFile, Start};
use latido_protocol::layout::AttemptDir;

/// A list of variables in which each name stands once.
pub(crate) struct Environment(pub(crate) Vec<(OsString, OsString)>);

impl Environment {
    /// Those of the supervisor's own that are asked for, then the job's, its user's, and the attempt's name.
    pub(crate) fn new(job: &JobFile, start: &Start, attempt: &AttemptDir, user: Option<&User>) -> Self {
        let own: Vec<(OsString, OsString)> = match &job.settings.launch.environment {
            EnvironmentFrom::Inherit => std::env::vars_os().collect(),
            EnvironmentFrom::Clean => Vec::new(),
            EnvironmentFrom::List(names) => {
                names.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect()
            }
        };
        let mut variables = Self(own);
        variables.set("PWD", start.directory.clone());
        for (name, value) in &job.environment {
            variables.set(name, value);
        }
        if let Some(user) = user {
            // The job's variables hold those of whoever asked for it.
            variables.set("HOME", user.home.clone());
            variables.set("USER", &user.name);
            variables.set("LOGNAME", &user.name);
        }
        variables.set("LATIDO_JOB", start.job.as_str());
        variables.set("LATIDO_ATTEMPT", start.attempt.to_string());
        variables.set("LATIDO_EPOCH", start.epoch.to_string());
        variables.set("LATIDO_DIR", attempt.path());
        // No WATCHDOG_PID: it would silence every program that is started by a shell (systemd/systemd#25961).
        for unwanted in SUPERVISOR_ALONE.into_iter().chain(["WATCHDOG_PID"]) {
            variables.remove(unwanted);
        }
        variables
    }

    /// What the work needs to be heard.
    pub(crate) fn add_voice(&mut self, job: &JobFile, start: &Start, token: &str) {
        self.set("LATIDO_SOCKET", start.sockets.join("control"));
        self.set("LATIDO_TOKEN", token);
        self.set("LATIDO_CHECKPOINT", &start.checkpoint);
        self.set("NOTIFY_SOCKET", start.sockets.join("notify"));
        if job.settings.beats == Beats::Presence {
            self.remove("WATCHDOG_USEC");
        } else {
            self.set("WATCHDOG_USEC", job.settings.ttl.0.as_micros().to_string());
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.remove(name);
        self.0.push((name.into(), value.into()));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }
}
