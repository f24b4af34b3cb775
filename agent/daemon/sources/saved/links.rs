//! What a path goes through: each name on the way to a file at which a change may put another file in its place.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// More links in a chain than the kernel follows (40): a ring.
const LINKS_MAX: usize = 40;

/// The names that decide what the path leads to: each link of the chain, the last name, or the first one that is absent.
/// Each lies in a directory that exists, or could be looked into if it did, and that has no link in its own path.
pub(super) fn names_of(path: &Path) -> BTreeSet<PathBuf> {
    let mut names = BTreeSet::new();
    let mut here = PathBuf::from("/");
    let mut ahead: VecDeque<OsString> = steps(path).collect();
    let mut links = 0;
    while let Some(step) = ahead.pop_front() {
        if step == ".." {
            here.pop();
            continue;
        }
        let name = here.join(&step);
        match fs::symlink_metadata(&name) {
            Ok(found) if found.is_symlink() && links < LINKS_MAX => {
                links += 1;
                names.insert(name.clone());
                let Ok(target) = fs::read_link(&name) else { break };
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                for step in steps(&target).rev() {
                    ahead.push_front(step);
                }
            }
            Ok(found) if found.is_dir() && !ahead.is_empty() => here = name,
            Ok(_) | Err(_) => {
                names.insert(name);
                break;
            }
        }
    }
    names
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn below(folder: &Path, path: &str) -> Vec<String> {
        let names = names_of(&folder.join(path)).into_iter();
        names.map(|name| name.strip_prefix(folder).unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_link_of_the_chain_is_named_and_so_is_the_first_name_that_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        fs::create_dir_all(folder.join("..1")).unwrap();
        fs::write(folder.join("..1/latido.toml"), "").unwrap();
        symlink("..1", folder.join("..data")).unwrap();
        symlink("..data/latido.toml", folder.join("latido.toml")).unwrap();
        assert_eq!(below(&folder, "latido.toml"), ["..1/latido.toml", "..data", "latido.toml"]);
        assert_eq!(below(&folder, "..1/../..data/latido.toml"), ["..1/latido.toml", "..data"]);
        assert_eq!(below(&folder, "absent/deeper/latido.toml"), ["absent"]);
        symlink("ring", folder.join("ring")).unwrap();
        assert_eq!(below(&folder, "ring"), ["ring"]);
    }
}
