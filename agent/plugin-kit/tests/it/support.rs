//! Components that were built, and a workshop whose cache the tests share.

use std::fs;
use std::path::{Path, PathBuf};

use latido_plugin_kit::{Outcome, Plan, Plugin, Workshop, test};
use tempfile::TempDir;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A built-in plugin, or with `guests/` before its name one that misbehaves, as `cargo xtask guests` builds them.
pub(crate) fn component(name: &str) -> Plugin {
    let path = root().join("target/components").join(format!("{name}.wasm"));
    Plugin::read(&path).unwrap_or_else(|error| panic!("{error}: run `cargo xtask guests` first"))
}

/// A workshop of its own.
pub(crate) struct Ground {
    pub(crate) folder: TempDir,
    pub(crate) workshop: Workshop,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workshop = Workshop::open(&folder.path().join("cache")).unwrap();
        Self { folder, workshop }
    }

    pub(crate) fn cases(&self) -> PathBuf {
        self.folder.path().join("cases")
    }

    /// Writes a case.
    pub(crate) fn case(&self, name: &str, text: &str) {
        fs::create_dir_all(self.cases()).unwrap();
        fs::write(self.cases().join(format!("{name}.toml")), text).unwrap();
    }

    /// Tests a plugin with the cases that were written.
    pub(crate) fn test(&self, plugin: &Plugin) -> Outcome {
        self.test_with(plugin, &Plan::default())
    }

    pub(crate) fn test_with(&self, plugin: &Plugin, plan: &Plan) -> Outcome {
        let plan = Plan { cases: Some(self.cases()), ..plan.clone() };
        test(&self.workshop, plugin, &plan).unwrap()
    }

    /// What is wrong with the one case that there is.
    pub(crate) fn faults(&self, plugin: &Plugin, text: &str) -> String {
        self.case("case", text);
        self.test(plugin).cases.iter().flat_map(|report| report.faults.clone()).collect::<Vec<_>>().join("\n")
    }
}
