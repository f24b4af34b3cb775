//! The component that a command is about: a file, or what a project's folder was built into.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use latido::compile::OwnProgram;
use latido_plugin_host::{COMPONENT_MAX, Host, HostSettings};
use latido_plugin_kit::{Project, chain};

use crate::context::Context;
use crate::failure::Failure;

/// Where a component comes from.
pub(super) struct Source {
    /// the project whose folder was named
    pub(super) project: Option<Project>,
    /// the component's file
    pub(super) component: PathBuf,
}

impl Source {
    /// Takes a path: of a project's folder, or of a component.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if !path.is_dir() {
            return Ok(Self { project: None, component: path.to_owned() });
        }
        let project = Project::open(path).map_err(|error| {
            Failure::usage(
                format!("cannot take {} for a plugin's project", path.display()),
                format!("cannot {}", chain(&error)),
                "name a component's file, or a folder that `latido plugin new` made",
            )
        })?;
        let component = project.component();
        Ok(Self { project: Some(project), component })
    }

    /// A name for messages.
    pub(super) fn name(&self) -> String {
        let stem = || self.component.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        self.project.as_ref().map(|project| project.name().to_owned()).or_else(stem).unwrap_or_default()
    }

    /// The component's bytes. More than any component has are not read into memory.
    pub(super) fn read(&self) -> Result<Vec<u8>, Failure> {
        let path = self.component.display();
        let what = format!("cannot read {path}");
        let next = match &self.project {
            Some(project) => format!("run `latido plugin build {}` first", project.root().display()),
            None => "name a component that can be read".to_owned(),
        };
        let broken = |error: std::io::Error| Failure::usage(what.clone(), error.to_string(), next.clone());
        let mut bytes = Vec::new();
        let file = File::open(&self.component).map_err(broken)?;
        file.take(COMPONENT_MAX as u64 + 1).read_to_end(&mut bytes).map_err(broken)?;
        if bytes.len() > COMPONENT_MAX {
            return Err(Failure::no(
                what,
                format!("it has more than {COMPONENT_MAX} bytes, which no agent accepts"),
                "build it smaller: in release mode, without debug data",
            ));
        }
        Ok(bytes)
    }
}

/// The host of this user's agent: with its cache, and components compiled under its limits.
pub(super) fn host(context: &Context) -> Result<Host, Failure> {
    let compiler = Some(Arc::new(OwnProgram::running()) as Arc<dyn latido_plugin_host::Compiler>);
    let cache = context.state.plugins().join("compiled");
    Host::new(HostSettings { cache, compiler, metered: false }).map_err(|error| {
        Failure::itself(
            "cannot load plugins",
            format!("cannot {}", chain(&error)),
            "make the folder yours alone (mode 0700), or name another state directory with --state-dir",
        )
    })
}

/// What plugins run on in a command.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| {
        Failure::itself("cannot run a plugin", error.to_string(), "look at the limits of this user's processes")
    })
}
