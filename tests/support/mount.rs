use std::fs;
use std::path::Path;

use super::World;

/// A mount for as long as it is held.
pub(crate) struct Mount {
    folder: tempfile::TempDir,
}

impl Mount {
    /// A small file system in memory. `None` where this user may not mount, which is said on stderr.
    #[expect(clippy::unwrap_in_result, clippy::print_stderr, reason = "a test fails by a panic, and skips loudly")]
    pub(crate) fn small(world: &World, size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=0700");
        let mounted = world
            .command("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs", folder.path().to_str().unwrap()])
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            Some(Self { folder })
        } else {
            eprintln!("SKIPPED: this user cannot mount a small file system, so nothing is tested here");
            None
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn remount(&self, world: &World, how: &str) {
        let target = self.path().to_str().unwrap();
        let done = world.command("mount").args(["-o", &format!("remount,{how}"), target]).status().unwrap();
        assert!(done.success());
    }

    /// Takes all that is left.
    pub(crate) fn fill(&self) {
        let filler = self.path().join("filler");
        let mut size = 1 << 20;
        while size > 0 {
            let old = fs::metadata(&filler).map_or(0, |file| file.len());
            if append(&filler, size).is_err() {
                fs::File::options().write(true).open(&filler).unwrap().set_len(old).unwrap();
                size /= 2;
            }
        }
    }

    pub(crate) fn free(&self) {
        fs::remove_file(self.path().join("filler")).unwrap();
    }
}

fn append(path: &Path, size: usize) -> std::io::Result<()> {
    use std::io::Write;
    fs::File::options().append(true).create(true).open(path)?.write_all(&vec![b'f'; size])
}

impl Drop for Mount {
    fn drop(&mut self) {
        #[expect(clippy::disallowed_methods, reason = "the test unmounts what it mounted")]
        let _ = std::process::Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
