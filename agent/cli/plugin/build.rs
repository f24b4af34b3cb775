//! `latido plugin build`.

use std::path::Path;
use std::process::ExitCode;

use latido_plugin_kit::{BuildError, Built, Project, ProjectError, Toolbox, build};

use crate::args::PluginBuildArgs;
use crate::failure::{Failure, chain};
use crate::print;

/// Carries the command out.
pub(super) fn run(args: &PluginBuildArgs) -> Result<ExitCode, Failure> {
    let built = make(&open(&args.directory)?)?;
    let size = built.size.div_ceil(1024);
    print::out(&format!("built {}, {size} KiB, by {}\n", built.component.display(), built.tool))?;
    Ok(ExitCode::SUCCESS)
}

/// Builds a project, and shows what its tool warned of.
pub(super) fn make(project: &Project) -> Result<Built, Failure> {
    let built = build(project, &Toolbox::of_environment()).map_err(|error| failure(project.name(), &error))?;
    if !built.warnings.is_empty() {
        print::note(&built.warnings);
    }
    Ok(built)
}

/// Opens the project that a command is about.
pub(super) fn open(directory: &Path) -> Result<Project, Failure> {
    Project::open(directory).map_err(|error| {
        let next = if matches!(error, ProjectError::Read { .. }) {
            "go to a plugin's folder, or make one with `latido plugin new`"
        } else if matches!(error, ProjectError::NoLanguage { .. }) {
            "write the source, or make a project with `latido plugin new`"
        } else {
            "mend plugin.toml; wit/README.md describes it"
        };
        Failure::usage(
            format!("cannot open the project in {}", directory.display()),
            format!("cannot {}", chain(&error)),
            next,
        )
    })
}

/// What the author is told when there is no component.
fn failure(name: &str, error: &BuildError) -> Failure {
    let (what, why) = (format!("cannot build `{name}`"), format!("cannot {}", chain(error)));
    if matches!(error, BuildError::NoTool { .. } | BuildError::ToolVersion { .. }) {
        Failure::usage(what, why, error.next())
    } else if error.is_of_source() {
        Failure::no(what, why, error.next())
    } else {
        Failure::itself(what, why, error.next())
    }
}
