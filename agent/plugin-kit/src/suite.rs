//! All cases of a plugin, one after another, with the golden files beside them, and the conformance suite behind them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::case::Case;
use crate::clock;
use crate::conformance;
use crate::matching::lines;
use crate::plugin::Plugin;
use crate::stage::{StageError, Workshop};
use crate::trial::{self, Report};

/// Why nothing was tested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// The folder of cases cannot be read.
    #[error("read the cases in {}", path.display())]
    Cases {
        /// the folder
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// The plugin cannot be run at all.
    #[error(transparent)]
    Stage(StageError),
}

/// What is tested.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The folder of cases; there may be none.
    pub cases: Option<PathBuf>,
    /// Write golden files in place of comparing with them.
    pub update: bool,
    /// Run the conformance suite after the cases.
    pub conformance: bool,
    /// Run only cases whose name holds this.
    pub only: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// the plugin's name
    pub plugin: String,
    /// its kind
    pub kind: String,
    /// each case
    pub cases: Vec<Report>,
    /// each trial of the conformance suite
    pub conformance: Vec<Report>,
}

impl Outcome {
    /// Whether all passed.
    pub fn passes(&self) -> bool {
        self.reports().all(|(_, report)| report.passes())
    }

    /// All of them, with the name of their suite.
    pub fn reports(&self) -> impl Iterator<Item = (&'static str, &Report)> {
        let cases = self.cases.iter().map(|report| ("cases", report));
        cases.chain(self.conformance.iter().map(|report| ("conformance", report)))
    }
}

/// Tests a plugin. Every case and trial has a fresh place and a fresh instance.
///
/// # Errors
///
/// Fails where nothing can be tested. What does not pass is in the outcome; a case that cannot be read is one of them.
pub fn test(workshop: &Workshop, plugin: &Plugin, plan: &Plan) -> Result<Outcome, TestError> {
    let mut cases = Vec::new();
    let paths = plan.cases.as_deref().map_or(Ok(Vec::new()), case_files)?;
    let wanted = |path: &&PathBuf| match &plan.only {
        Some(only) => path.file_stem().is_some_and(|stem| stem.to_string_lossy().contains(only.as_str())),
        None => true,
    };
    for path in paths.iter().filter(wanted) {
        let begun = clock::now();
        let mut report = case(workshop, plugin, path, plan.update)?;
        report.took_ms = u64::try_from(clock::now().saturating_duration_since(begun).as_millis()).unwrap_or(u64::MAX);
        cases.push(report);
    }
    let conformance = if plan.conformance {
        let settings = settings(&paths, plugin);
        conformance::run(workshop, plugin, &settings).map_err(TestError::Stage)?
    } else {
        Vec::new()
    };
    Ok(Outcome { plugin: plugin.name.clone(), kind: plugin.kind.name().to_owned(), cases, conformance })
}

/// The settings of the first case that has some which the plugin is to take.
///
/// # Errors
///
/// Fails where the folder cannot be read.
pub fn case_settings(plugin: &Plugin, cases: &Path) -> Result<Option<Value>, TestError> {
    Ok(settings(&case_files(cases)?, plugin).into_iter().next())
}

fn settings(paths: &[PathBuf], plugin: &Plugin) -> Vec<Value> {
    let read = paths.iter().filter_map(|path| Case::read(path, plugin.kind).ok());
    read.filter(Case::takes_settings).map(|case| case.settings).collect()
}

/// The files of a folder that are cases, by name. No folder has none.
fn case_files(folder: &Path) -> Result<Vec<PathBuf>, TestError> {
    let broken = |source| TestError::Cases { path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(broken(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(broken)?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn case(workshop: &Workshop, plugin: &Plugin, path: &Path, update: bool) -> Result<Report, TestError> {
    let case = match Case::read(path, plugin.kind) {
        Ok(case) => case,
        Err(error) => {
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            return Ok(Report { name, faults: vec![format!("cannot {error}{source}")], ..Report::default() });
        }
    };
    let mut report = workshop.runtime.block_on(trial::run(&workshop.host, plugin, &case)).map_err(TestError::Stage)?;
    golden(&mut report, &path.with_extension("golden.json"), update);
    Ok(report)
}

/// Compares the whole transcript with the golden file, where there is one, or writes it.
fn golden(report: &mut Report, path: &Path, update: bool) {
    let known = fs::read_to_string(path);
    if !update && known.is_err() {
        return;
    }
    let mut found = serde_json::to_string_pretty(&report.transcript).unwrap_or_default();
    found.push('\n');
    if known.as_ref().is_ok_and(|known| *known == found) {
        return;
    }
    if update {
        match fs::write(path, found) {
            Ok(()) => report.updated = true,
            Err(error) => report.faults.push(format!("cannot write {}: {error}", path.display())),
        }
        return;
    }
    let difference = lines(&known.unwrap_or_default(), &found);
    report.faults.push(format!("{} says something else (--update takes it as it is):\n{difference}", path.display()));
}
