//! The directories that the kernel watches for us, and how it says that something in them changed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::links::names_of;

/// Watches directories, never the files themselves: a file that is replaced takes the watch on it along.
#[derive(Default)]
pub(super) struct Directories {
    watcher: Option<RecommendedWatcher>,
    /// by path, with device and inode: another directory may have come to the same path
    watched: BTreeMap<PathBuf, (u64, u64)>,
    heard: Arc<Heard>,
    /// why not all of them are watched; said once
    refused: Option<String>,
}

/// What the watcher's own thread has.
#[derive(Default)]
struct Heard {
    names: Mutex<BTreeSet<PathBuf>>,
    changed: Notify,
}

impl Directories {
    /// Watches what these files are reached through, and nothing else. Says once if that cannot be had.
    pub(super) fn follow<'p>(&mut self, files: impl Iterator<Item = &'p PathBuf>) {
        let mut names: BTreeSet<PathBuf> = files.flat_map(|file| names_of(file)).collect();
        let wanted: BTreeSet<PathBuf> = names.iter().filter_map(|name| name.parent()).map(Path::to_owned).collect();
        names.extend(wanted.iter().cloned());
        *self.heard.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
        let answer = self.watch(&wanted);
        match (answer, &self.refused) {
            (Ok(()), None) => {}
            (Ok(()), Some(_)) => {
                tracing::info!("directories of config and plugins can be watched again");
                self.refused = None;
            }
            (Err(why), Some(known)) if *known == why => {}
            (Err(why), _) => {
                tracing::warn!(
                    why,
                    "cannot watch the directories of config and plugins; they are looked at every {:?} instead. Raise \
                     fs.inotify.max_user_instances or max_user_watches, or set reload = \"command\" in [agent]",
                    super::LOOK_EVERY_UNWATCHED
                );
                self.refused = Some(why);
            }
        }
    }

    fn watch(&mut self, wanted: &BTreeSet<PathBuf>) -> Result<(), String> {
        let heard = Arc::clone(&self.heard);
        let watcher = match &mut self.watcher {
            Some(watcher) => watcher,
            none => none.insert(
                notify::recommended_watcher(move |event| heard.hear(event)).map_err(|error| error.to_string())?,
            ),
        };
        let mut first_fault = Ok(());
        self.watched.retain(|path, identity| {
            let stays = wanted.contains(path) && identity_of(path) == Some(*identity);
            if !stays {
                // A directory that is gone is watched no longer.
                let _gone = watcher.unwatch(path);
            }
            stays
        });
        for path in wanted {
            // Taken before: what comes to the path in between is found by the next look.
            let Some(identity) = identity_of(path) else { continue };
            if self.watched.contains_key(path) {
                continue;
            }
            match watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => drop(self.watched.insert(path.clone(), identity)),
                Err(error) => first_fault = first_fault.and(Err(format!("{}: {error}", path.display()))),
            }
        }
        first_fault
    }

    /// True if the kernel says of all of them when something changes.
    pub(super) fn is_watched(&self) -> bool {
        self.refused.is_none()
    }

    /// Ends when something changed since the last time.
    pub(super) async fn changed(&self) {
        self.heard.changed.notified().await;
    }
}

impl Heard {
    /// Reading is no change, and most of what happens in a directory is about other files.
    fn hear(&self, event: notify::Result<Event>) {
        let concerns = match event {
            Ok(event) => match event.kind {
                EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write) && self.concerns(&event.paths),
                EventKind::Any
                | EventKind::Create(_)
                | EventKind::Modify(_)
                | EventKind::Remove(_)
                | EventKind::Other => event.need_rescan() || self.concerns(&event.paths),
            },
            Err(_) => true,
        };
        if concerns {
            self.changed.notify_one();
        }
    }

    fn concerns(&self, paths: &[PathBuf]) -> bool {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        paths.iter().any(|path| names.contains(path))
    }
}

fn identity_of(directory: &Path) -> Option<(u64, u64)> {
    directory.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}
