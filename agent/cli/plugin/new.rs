//! `latido plugin new`.

use std::path::Path;
use std::process::ExitCode;

use latido_plugin_host::Kind;
use latido_plugin_kit::{Language, NewError, NewProject, create};

use crate::args::{PluginKind, PluginLanguage, PluginNewArgs};
use crate::failure::{Failure, chain};
use crate::print;

/// Carries the command out.
pub(super) fn run(args: &PluginNewArgs) -> Result<ExitCode, Failure> {
    let language = match args.lang {
        PluginLanguage::Rust => Language::Rust,
        PluginLanguage::Python => Language::Python,
        PluginLanguage::Js => Language::JavaScript,
        PluginLanguage::C => Language::C,
        PluginLanguage::Go => Language::Go,
    };
    let kind = match args.kind {
        PluginKind::Sink => Kind::Sink,
        PluginKind::Rule => Kind::Rule,
        PluginKind::Strategy => Kind::Strategy,
    };
    let project =
        create(Path::new(""), &NewProject { name: &args.name, language, kind }).map_err(|error| failure(&error))?;
    let name = project.name();
    print::out(&format!("made {name}/, a {kind}\nnext: cd {name}, latido plugin build; README.md there says more\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn failure(error: &NewError) -> Failure {
    let what = "cannot make the project";
    let why = format!("cannot {}", chain(error));
    if matches!(error, NewError::Name { .. }) {
        Failure::usage(what, why, "give another name")
    } else if matches!(error, NewError::Exists { .. }) {
        Failure::refused(what, why, "give another name, or go to another folder")
    } else {
        Failure::itself(what, why, "check the folder's rights and the space left")
    }
}
