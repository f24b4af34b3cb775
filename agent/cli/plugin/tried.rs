//! The plugin that a command tries out: a project's component, or a file.

use std::path::{Path, PathBuf};

use latido_plugin_kit::{Plugin, PluginError, Workshop, case_settings, is_stale};
use serde_json::Value;

use super::build;
use crate::context::Context;
use crate::failure::{Failure, chain};

/// A plugin that is tried out, and where its cases lie.
pub(super) struct Tried {
    pub(super) plugin: Plugin,
    pub(super) cases: PathBuf,
}

impl Tried {
    /// Reads the component of a project's folder, which is built first where a source is newer, or a component.
    pub(super) fn open(path: &Path, what: &str) -> Result<Self, Failure> {
        if path.is_dir() {
            let project = build::open(path)?;
            if is_stale(&project) {
                build::make(&project)?;
            }
            let plugin = Plugin::of(&project).map_err(|error| unusable(what, &error))?;
            return Ok(Self { plugin, cases: project.cases() });
        }
        let plugin = Plugin::read(path).map_err(|error| unusable(what, &error))?;
        let beside = path.parent().unwrap_or(Path::new("")).join("cases");
        Ok(Self { plugin, cases: beside })
    }
}

impl Tried {
    /// The settings that were given, or those of the first case that has some.
    pub(super) fn settings(&self, given: Option<&Value>, what: &str) -> Result<Option<Value>, Failure> {
        if let Some(given) = given {
            return Ok(Some(given.clone()));
        }
        case_settings(&self.plugin, &self.cases).map_err(|error| {
            let next = "give the settings with --settings";
            Failure::usage(format!("cannot {what}"), format!("cannot {}", chain(&error)), next)
        })
    }
}

/// The plugin could not be run.
pub(super) fn not_run(what: &str, error: &dyn std::error::Error) -> Failure {
    let next = "mend what it says; settings are given with --settings, or by a case";
    Failure::refused(format!("cannot {what}"), format!("cannot {}", chain(error)), next)
}

fn unusable(what: &str, error: &PluginError) -> Failure {
    let next = if matches!(error, PluginError::NotBuilt { .. }) {
        "build it with `latido plugin build`"
    } else {
        "name a component of latido:plugin; `latido plugin build` makes one of a project"
    };
    Failure::usage(format!("cannot {what}"), format!("cannot {}", chain(error)), next)
}

/// Where plugins are run, with a cache of its own beside the agent's.
pub(super) fn workshop(context: &Context, what: &str) -> Result<Workshop, Failure> {
    let cache = context.state.plugins().join("tried");
    Workshop::open(&cache).map_err(|error| {
        let next = format!("look at {}: it keeps compiled components", cache.display());
        Failure::itself(format!("cannot {what}"), format!("cannot {}", chain(&error)), next)
    })
}
