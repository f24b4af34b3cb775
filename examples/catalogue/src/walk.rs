//! Finds the files, in the same order every time.

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// What was found below a directory.
pub(crate) struct Walked {
    /// Every regular file.
    pub(crate) files: Vec<PathBuf>,
    /// Folders that could not be read, and why.
    pub(crate) unread: Vec<(PathBuf, String)>,
}

/// Walks the directory, sorted, without following links, and passes over the program's own files.
pub(crate) fn walk(directory: &Path, own: &[PathBuf]) -> Walked {
    let mut walked = Walked { files: Vec::new(), unread: Vec::new() };
    for entry in WalkDir::new(directory).follow_links(false).sort_by_file_name() {
        match entry {
            Ok(entry) if entry.file_type().is_file() && !own.iter().any(|own| own == entry.path()) => {
                walked.files.push(entry.into_path());
            }
            Ok(_) => {}
            Err(error) => {
                let path = error.path().unwrap_or(directory).to_owned();
                let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                walked.unread.push((path, reason));
            }
        }
    }
    walked
}
