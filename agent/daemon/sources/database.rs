//! The database's file: how it is opened, and as others leave it. An agent whose file was removed or replaced writes what nobody will find.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_driver::{Fact, Finding};
use latido_protocol::SubjectName;
use latido_protocol::journal::Severity;
use latido_protocol::layout::StateDir;
use latido_store::SqliteStore;

use crate::driver_thread::DriverHandle;
use crate::run::AgentError;

/// As often as the agent passes over everything when nothing happens: nobody works for longer on lost records.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A damaged store is set aside, never deleted: attempts and wants have files, and the store is rebuilt from them.
pub(crate) fn open(state: &StateDir) -> Result<(SqliteStore, Option<String>), AgentError> {
    let path = state.database();
    match SqliteStore::open(&path) {
        Ok(store) => Ok((store, None)),
        Err(error) if error.is_damage() => {
            let aside = latido_store::set_aside_damaged(&path)
                .map_err(|source| AgentError::SetAside { path: path.clone(), source })?;
            let detail = format!("cannot {error}; it lies at {} and a new one was made", aside.display());
            tracing::error!("{detail}");
            Ok((SqliteStore::open(&path)?, Some(detail)))
        }
        Err(error) => Err(error.into()),
    }
}

/// The file that the store has open.
pub(crate) struct Opened {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl Opened {
    /// To be made before anybody is answered: what is removed later is missed.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { file: file(&path), path }
    }
}

/// Looks for ever whether the file at this path is the one that was opened, and tells when it is not.
pub(crate) async fn look_now_and_then(driver: DriverHandle, opened: Opened) {
    let Opened { path, file: before } = opened;
    let name = path.file_name().and_then(|name| name.to_str()?.parse::<SubjectName>().ok());
    let Some(subject) = name else { return };
    loop {
        let summary = format!("{} was removed or replaced; restart the agent, which rebuilds it", path.display());
        let finding = Finding {
            key: "store-gone".to_owned(),
            subject: subject.to_string(),
            severity: Severity::Critical,
            summary,
        };
        let findings = (file(&path) != before).then_some(finding).into_iter().collect();
        let subjects = vec![subject.clone()];
        let fact = Fact::RuleAnswered { rule: "agent".to_owned(), subjects, findings };
        if driver.tell(fact).await.is_err() {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What tells one file from another at the same path; `None` where none can be seen.
fn file(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
