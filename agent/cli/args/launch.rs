//! What can be typed about how the process of a job is made.

use std::collections::BTreeMap;

use clap::Args;
use latido::settings::{
    LaunchOverrides, SizeLimit, Umask, parse_count_limit, parse_environment, parse_rlimit, parse_size_limit,
    parse_umask,
};
use latido_protocol::CountLimit;
use latido_protocol::files::{Enforcement, EnvironmentFrom, Rlimit};

/// How the process is made, and what it may use up.
#[derive(Clone, Debug, Args)]
pub(crate) struct LaunchArgs {
    /// Let all its processes together use no more memory, or `none`; needs a cgroup
    #[arg(long, value_name = "SIZE", value_parser = parse_size_limit)]
    memory_max: Option<SizeLimit>,
    /// Let it have no more processes and threads at a time, or `none`; needs a cgroup
    #[arg(long, value_name = "N", value_parser = parse_count_limit)]
    pids_max: Option<CountLimit>,
    /// Launch it also where these two limits cannot be enforced, and note that
    #[arg(long)]
    best_effort: bool,
    /// Set a limit of the kernel's, soft and hard; may be given again
    #[arg(long, value_name = "NAME=SOFT..HARD", value_parser = parse_rlimit)]
    rlimit: Vec<(String, Rlimit)>,
    /// Run it with this niceness
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    nice: Option<i32>,
    /// Run it with this file mode creation mask
    #[arg(long, value_name = "OCTAL", value_parser = parse_umask)]
    umask: Option<Umask>,
    /// Give it all variables (inherit), none (clean) or those of these names, beside its own
    #[arg(long, value_name = "inherit|clean|NAME,NAME", value_parser = parse_environment)]
    environment: Option<EnvironmentFrom>,
    /// Run it as this user; only root can
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Run it with this group in place of the user's own
    #[arg(long, value_name = "GROUP", requires = "user")]
    group: Option<String>,
}

impl LaunchArgs {
    pub(super) fn overrides(&self) -> LaunchOverrides {
        LaunchOverrides {
            umask: self.umask,
            environment: self.environment.clone(),
            nice: self.nice,
            rlimits: self.rlimit.iter().cloned().collect::<BTreeMap<_, _>>(),
            user: self.user.clone(),
            group: self.group.clone(),
            memory_max: self.memory_max,
            pids_max: self.pids_max,
            limits: self.best_effort.then_some(Enforcement::BestEffort),
            ..LaunchOverrides::default()
        }
    }
}
