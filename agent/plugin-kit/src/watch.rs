//! Waits until a file that a plugin is made from changes.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

/// How long nothing has to happen before what changed counts as saved.
const QUIET: Duration = Duration::from_millis(200);

/// Folders in which tools write what they make.
const MADE: [&str; 6] = ["build", "target", ".git", "node_modules", "__pycache__", ".venv"];

/// Why nothing is watched.
#[derive(Debug, thiserror::Error)]
#[error("watch {}", path.display())]
pub struct WatchError {
    /// the folder
    path: PathBuf,
    /// what the system says
    source: notify::Error,
}

/// Tells when something below these folders changes.
pub struct Watcher {
    /// watches as long as it is there
    _watcher: RecommendedWatcher,
    changes: Receiver<PathBuf>,
}

impl Watcher {
    /// Watches folders with all that is below them, what tools make left out. A file is watched with its neighbours.
    ///
    /// # Errors
    ///
    /// Names the folder that cannot be watched.
    pub fn new(paths: &[PathBuf]) -> Result<Self, WatchError> {
        let (tell, changes) = mpsc::channel();
        let paths_of = paths.to_vec();
        let broken = |path: &Path| {
            let path = path.to_owned();
            move |source| WatchError { path, source }
        };
        let first = paths.first().map(PathBuf::as_path).unwrap_or(Path::new("."));
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let Ok(event) = event else { return };
            if matches!(event.kind, EventKind::Access(_)) {
                return;
            }
            for path in event.paths.into_iter().filter(|path| counts(path, &paths_of)) {
                drop(tell.send(path)); // who has gone hears nothing
            }
        })
        .map_err(broken(first))?;
        for path in paths {
            let folder = folder(path);
            watcher.watch(folder, RecursiveMode::Recursive).map_err(broken(folder))?;
        }
        Ok(Self { _watcher: watcher, changes })
    }

    /// Waits for a change, and until it is quiet again. Nothing where nobody watches any longer.
    pub fn changed(&self) -> Option<PathBuf> {
        let first = self.changes.recv().ok()?;
        while self.changes.recv_timeout(QUIET).is_ok() {}
        Some(first)
    }
}

/// The folder that is watched for a path: itself, or the one that the file lies in.
fn folder(path: &Path) -> &Path {
    if path.is_dir() {
        return path;
    }
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether this process itself writes there: who sends its output into the folder is not told of it for ever.
fn is_own_output(path: &Path) -> bool {
    let place = |path: &Path| fs::metadata(path).map(|about| (about.dev(), about.ino())).ok();
    let written = place(path);
    written.is_some() && ["/proc/self/fd/1", "/proc/self/fd/2"].iter().any(|own| place(Path::new(own)) == written)
}

/// Whether a change is of what a person writes. A file that was named counts wherever it lies.
fn counts(path: &Path, watched: &[PathBuf]) -> bool {
    if is_own_output(path) {
        return false;
    }
    let is_named = watched.iter().any(|it| !it.is_dir() && it.file_name().is_some_and(|name| path.ends_with(name)));
    let below = watched.iter().find_map(|it| path.strip_prefix(folder(it)).ok()).unwrap_or(path);
    let is_made = below.components().any(|part| MADE.iter().any(|made| part.as_os_str() == *made));
    let is_golden = path.to_string_lossy().ends_with(".golden.json");
    is_named || !(is_made || is_golden)
}
