use std::path::Path;

use latido_process::cgroup::{self, Hierarchies, Limits, Name};

use crate::support::{shell, untested, wait_until};

/// Makes a cgroup in the hierarchies under a folder, with a process in it, and takes it away again.
fn fill_and_empty(root: &Path, version: u32) {
    let folder = tempfile::tempdir().unwrap();
    let name = Name::new("test", folder.path(), 1);
    let made = Hierarchies::under(root).make(&name, Limits::default()).unwrap();
    if made.cgroup.folders.is_empty() {
        untested(&format!("no cgroup can be made under {}", root.display()));
        return;
    }
    assert_eq!(made.cgroup.folders[0].version, version);
    let child = shell("exec sleep 1000");
    assert_eq!(cgroup::entrances(&made.cgroup).unwrap().len(), made.cgroup.folders.len());
    for folder in &made.cgroup.folders {
        std::fs::write(folder.path.join("cgroup.procs"), child.pid().to_string()).unwrap();
    }
    assert_eq!(cgroup::members(&made.cgroup).into_iter().collect::<Vec<_>>(), [child.pid()]);
    assert!(!cgroup::remove(&made.cgroup), "it is not removed while somebody is in it");
    let next = Name::new("test", folder.path(), 2);
    assert_eq!(Hierarchies::under(root).leftovers(&next).keys().copied().collect::<Vec<_>>(), [1]);
    if version == 2 && made.cgroup.folders[0].path.join("cgroup.kill").exists() {
        assert!(cgroup::kill(&made.cgroup));
    }
    drop(child);
    wait_until("it is empty", || cgroup::remove(&made.cgroup));
    assert!(Hierarchies::under(root).leftovers(&next).is_empty());
}

#[test]
fn a_cgroup_of_version_2_is_made_filled_and_removed() {
    let root = Path::new(cgroup::ROOT);
    let unified = root.join("unified");
    fill_and_empty(if unified.is_dir() { &unified } else { root }, 2);
}

#[test]
fn a_cgroup_of_version_1_is_made_filled_and_removed() {
    fill_and_empty(&Path::new(cgroup::ROOT).join("pids"), 1);
}

#[test]
fn without_hierarchies_nothing_is_made_and_a_limit_is_named_with_its_cause() {
    let empty = tempfile::tempdir().unwrap();
    let name = Name::new("test", empty.path(), 1);
    let limits = Limits { memory_max: Some(4096), pids_max: None };
    let made = Hierarchies::under(empty.path()).make(&name, limits).unwrap();
    assert!(made.cgroup.folders.is_empty());
    assert_eq!(made.unenforced, ["memory_max of 4096: no cgroup with the controller memory can be made"]);
}

#[test]
fn what_is_gone_has_nobody_in_it_and_counts_as_removed() {
    let folder = latido_protocol::files::CgroupFolder {
        path: "/sys/fs/cgroup/latido/absent-0000000000000000-0001".into(),
        version: 2,
        controllers: vec!["memory".into()],
    };
    let gone = latido_protocol::files::Cgroup { folders: vec![folder] };
    assert!(cgroup::members(&gone).is_empty() && cgroup::remove(&gone) && !cgroup::kill(&gone));
    assert_eq!(cgroup::out_of_memory(&gone), cgroup::OutOfMemory::default());
}
