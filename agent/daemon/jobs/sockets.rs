//! Private folders for sockets, short enough for a socket's path and never under a job's name.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use latido_protocol::attempt::TOKEN_FILE;

use super::exposed::exposed_at;

/// Bytes of a Unix socket's path, the final NUL not counted.
pub const PATH_MAX: usize = 107;
/// Names of an attempt's sockets, and of its token beside them; the longest decides what fits.
pub const NAMES: [&str; 3] = ["control", "notify", TOKEN_FILE];
/// Tries to find an id that is not in use; a second collision of 48 random bits is no accident.
const TRIES: u32 = 8;

/// Why there is no folder for sockets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketsError {
    /// It cannot be made.
    #[error("make a folder for sockets at {path}")]
    Make {
        /// which
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
    /// Somebody else could put things into it.
    #[error("use {path} for sockets: {why}")]
    NotPrivate {
        /// which
        path: PathBuf,
        /// what is wrong with it
        why: &'static str,
    },
    /// No place is short enough.
    #[error("find a place for sockets: {path} is longer than a socket's path may be")]
    TooLong {
        /// the shortest that was tried
        path: PathBuf,
    },
}

/// A short random text that can be a file's name.
pub fn short_id() -> String {
    let mut bytes = [0; 6];
    let mut filled = 0;
    while filled < bytes.len() {
        // Six bytes come whole once the kernel is seeded; an interrupted call is made again.
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes a new private folder for sockets, under `$XDG_RUNTIME_DIR/latido` or, where that is not set, not usable or too
/// long, under `/tmp/latido-UID`.
///
/// # Errors
/// When neither place is private, or no folder can be made there.
pub fn make_folder(runtime_dir: Option<&Path>) -> Result<PathBuf, SocketsError> {
    let uid = rustix::process::geteuid().as_raw();
    if let Some(runtime) = runtime_dir.filter(|path| path.is_absolute() && path.is_dir()) {
        let base = runtime.join("latido");
        if fits(&base)
            && let Ok(folder) = make_under(&base, uid)
        {
            return Ok(folder);
        }
    }
    make_under(&PathBuf::from(format!("/tmp/latido-{uid}")), uid)
}

fn fits(base: &Path) -> bool {
    let longest = NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
    base.as_os_str().as_bytes().len() + 1 + 12 + 1 + longest <= PATH_MAX
}

fn make_under(base: &Path, uid: u32) -> Result<PathBuf, SocketsError> {
    if !fits(base) {
        return Err(SocketsError::TooLong { path: base.to_owned() });
    }
    let fail = |path: &Path, source| SocketsError::Make { path: path.to_owned(), source };
    let builder = || {
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        builder
    };
    match builder().create(base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fail(base, error)),
        Ok(()) | Err(_) => check_private(base, uid)?,
    }
    for _ in 0..TRIES {
        let folder = base.join(short_id());
        match builder().create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fail(&folder, error)),
        }
    }
    Err(fail(base, io::ErrorKind::AlreadyExists.into()))
}

/// A folder in `/tmp` may have been put there by anybody.
fn check_private(base: &Path, uid: u32) -> Result<(), SocketsError> {
    let not = |why| Err(SocketsError::NotPrivate { path: base.to_owned(), why });
    let metadata = fs::symlink_metadata(base).map_err(|source| SocketsError::Make { path: base.to_owned(), source })?;
    if !metadata.is_dir() {
        not("it is not a directory")
    } else if metadata.uid() != uid {
        not("it belongs to somebody else")
    } else if metadata.mode() & 0o077 != 0 {
        not("others may enter it")
    } else if exposed_at(base).is_some() {
        not("everybody may put another one in its place: a folder above it is writable for all and not sticky")
    } else {
        Ok(())
    }
}

/// Removes an attempt's sockets and their folder. Nothing else is removed, whatever the path leads to.
pub fn remove_folder(folder: &Path) {
    let is_ours = folder
        .parent()
        .and_then(Path::file_name)
        .is_some_and(|base| base == "latido" || base.to_str().is_some_and(|base| base.starts_with("latido-")));
    if is_ours {
        // What is gone already needs no removal, and a folder with anything else in it stays.
        for name in NAMES {
            let _ = fs::remove_file(folder.join(name));
        }
        let _ = fs::remove_dir(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_private_short_and_new() {
        let runtime = tempfile::tempdir().unwrap();
        let one = make_folder(Some(runtime.path())).unwrap();
        let two = make_folder(Some(runtime.path())).unwrap();
        assert_ne!(one, two);
        assert!(one.starts_with(runtime.path().join("latido")));
        assert_eq!(fs::metadata(&one).unwrap().mode() & 0o777, 0o700);
        assert!(one.join("control").as_os_str().len() <= PATH_MAX);
        remove_folder(&one);
        assert!(!one.exists() && two.exists());
    }

    #[test]
    fn a_place_that_others_may_enter_or_that_is_too_long_is_not_used() {
        let runtime = tempfile::tempdir().unwrap();
        let base = runtime.path().join("latido");
        std::os::unix::fs::symlink("/tmp", &base).unwrap();
        assert!(matches!(make_under(&base, 0), Err(SocketsError::NotPrivate { .. })));
        fs::remove_file(&base).unwrap();
        fs::DirBuilder::new().mode(0o755).create(&base).unwrap();
        let uid = rustix::process::geteuid().as_raw();
        assert!(matches!(make_under(&base, uid), Err(SocketsError::NotPrivate { .. })));
        let long = runtime.path().join("x".repeat(90));
        fs::create_dir(&long).unwrap();
        let folder = make_folder(Some(&long)).unwrap();
        assert!(folder.starts_with("/tmp"), "{folder:?}");
        remove_folder(&folder);
    }

    #[test]
    fn only_sockets_are_removed() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("control"), "").unwrap();
        remove_folder(outside.path());
        assert!(outside.path().join("control").exists());
    }
}
