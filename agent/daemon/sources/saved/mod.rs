//! Files that somebody saves while the agent runs: its config, and the components of its plugins.
//!
//! Whatever a directory says is only a reason to look. A file counts as saved when its bytes are others than before, so
//! that it does not matter how they came there: written in place, renamed over, by a link that leads elsewhere, or late.

mod content;
mod directories;
mod links;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc;

pub(crate) use content::Content;
use content::Stamp;
use directories::Directories;

/// A file that was written within this time is left alone: programs write it in pieces, and a half may read as a whole.
pub(crate) const QUIET_FOR: Duration = Duration::from_millis(500);

/// Who writes without a pause is looked at all the same: what was found half is checked like the rest, and found again.
pub(crate) const QUIET_WITHIN: Duration = Duration::from_secs(5);

/// Network file systems take a watch and say nothing. A look without a change costs a few system calls.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The same where the kernel refused the watch: a person who saves a file is not kept waiting.
const LOOK_EVERY_UNWATCHED: Duration = Duration::from_secs(2);

/// Saved files that nobody has taken note of. When it is full the next look waits, and finds what there is then.
pub(crate) const SAVED_MAX: usize = 16;

/// A file whose content is another than before.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) path: PathBuf,
    pub(crate) content: Content,
}

/// Files with what they hold.
pub(crate) struct Files {
    seen: BTreeMap<PathBuf, Seen>,
    directories: Directories,
}

struct Seen {
    stamp: Option<Stamp>,
    content: Content,
}

impl Seen {
    /// The stamp is taken first: what is written meanwhile is found by the next look.
    fn look(path: &Path) -> Self {
        Self { stamp: Stamp::of(path), content: Content::of(path) }
    }
}

impl Files {
    /// Takes note of what the files hold at this moment. Paths are absolute. Blocks for as long as reading them takes.
    pub(crate) fn note(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut files = Self { seen: BTreeMap::new(), directories: Directories::default() };
        for path in paths {
            let seen = Seen::look(&path);
            files.seen.insert(path, seen);
        }
        files.directories.follow(files.seen.keys());
        files
    }

    /// Tells each save, for ever.
    pub(crate) async fn tell_saves(mut self, told: mpsc::Sender<Saved>) {
        loop {
            let every = if self.directories.is_watched() { LOOK_EVERY } else { LOOK_EVERY_UNWATCHED };
            let is_told = tokio::select! {
                () = self.directories.changed() => true,
                () = tokio::time::sleep(every) => false,
            };
            if is_told {
                self.quiet().await;
            }
            let Ok((files, saved)) = tokio::task::spawn_blocking(move || self.look(is_told)).await else { return };
            self = files;
            for saved in saved {
                if told.send(saved).await.is_err() {
                    return;
                }
            }
        }
    }

    async fn quiet(&self) {
        let quiet = async { while tokio::time::timeout(QUIET_FOR, self.directories.changed()).await.is_ok() {} };
        let _looked_at_all_the_same = tokio::time::timeout(QUIET_WITHIN, quiet).await;
    }

    /// Looks at all files. Where a directory said that something changed they are read; else only those whose stamp is
    /// another.
    fn look(mut self, read_all: bool) -> (Self, Vec<Saved>) {
        // The way there is watched before the file is read: a change after the reading is heard.
        self.directories.follow(self.seen.keys());
        let mut saved = Vec::new();
        for (path, seen) in &mut self.seen {
            if !read_all && Stamp::of(path) == seen.stamp {
                continue;
            }
            let found = Seen::look(path);
            if found.content != seen.content {
                saved.push(Saved { path: path.clone(), content: found.content.clone() });
            }
            *seen = found;
        }
        (self, saved)
    }
}
