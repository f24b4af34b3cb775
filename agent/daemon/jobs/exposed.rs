//! Whether others can put another thing in a path's place.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The mode bit by which everybody may write, and the one by which nobody takes away what is somebody else's.
const WRITABLE_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// The folder on the way to a path in which everybody may replace what leads there: whoever does, decides what lies at the
/// path, however private it is itself. Links are looked through.
pub fn exposed_at(path: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let above = |path: &Path| path.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>();
    above(&absolute).into_iter().chain(above(&real)).find(|folder| is_open(folder))
}

fn is_open(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| found.mode() & (WRITABLE_BY_ALL | STICKY) == WRITABLE_BY_ALL)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_everybody_may_write_to_exposes_what_is_below_it_unless_it_is_sticky() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        let below = open.join("below/state");
        fs::create_dir_all(&below).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&below, &link).unwrap();
        for (mode, exposed) in [(0o777, true), (0o1777, false), (0o755, false), (0o775, false)] {
            fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
            for path in [&below, &link, &open.join("below/not-there")] {
                let real = fs::canonicalize(&open).unwrap();
                let found = exposed_at(path);
                assert_eq!(found.is_some(), exposed, "{mode:o} {}: {found:?}", path.display());
                assert!(found.is_none_or(|found| fs::canonicalize(found).unwrap() == real));
            }
        }
    }
}
