//! What every command starts from: the settings in force and the state directory.

use latido::settings::{Settings, SettingsError};
use latido_protocol::layout::StateDir;

use crate::args::GlobalArgs;
use crate::failure::{Failure, chain};
use crate::print;

/// The settings in force and the state directory.
#[derive(Debug)]
pub(crate) struct Context {
    /// The settings of the config, or the defaults.
    pub(crate) settings: Settings,
    /// Where jobs and records are.
    pub(crate) state: StateDir,
}

impl Context {
    /// Reads the config.
    ///
    /// # Errors
    /// When a config does not check out, or no state directory can be named.
    pub(crate) fn load(global: &GlobalArgs) -> Result<Self, Failure> {
        let settings = Settings::load(global.config.as_deref()).map_err(|error| settings_failure(&error))?;
        Self::with(settings, global)
    }

    /// Reads the config, and goes on with the defaults and a warning where it does not check out: for commands that a
    /// job calls, and that never fail the job because of a config.
    ///
    /// # Errors
    /// When no state directory can be named.
    pub(crate) fn load_or_default(global: &GlobalArgs) -> Result<Self, Failure> {
        let settings = Settings::load(global.config.as_deref()).unwrap_or_else(|error| {
            print::warn(&format!("cannot {error}, so the defaults are taken: {}", error.causes().join("; ")));
            Settings::default()
        });
        Self::with(settings, global)
    }

    fn with(settings: Settings, global: &GlobalArgs) -> Result<Self, Failure> {
        let state = settings.state_dir(global.state_dir.as_deref()).map_err(|error| {
            Failure::usage(
                "cannot tell where the state directory is",
                chain(&error),
                "give --state-dir DIR, or set XDG_STATE_HOME or HOME",
            )
        })?;
        Ok(Self { settings, state: StateDir::new(state) })
    }
}

/// A config, or an option, that does not check out.
pub(crate) fn settings_failure(error: &SettingsError) -> Failure {
    let mut causes = error.causes().into_iter();
    let first = causes.next().unwrap_or_else(|| chain(error));
    let failure = Failure::usage(format!("cannot {error}"), first, error.next());
    causes.fold(failure, Failure::and_why)
}
