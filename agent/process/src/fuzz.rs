//! Mutated files of `/proc` and of cgroups: what the kernel writes is read, and anything else harms nothing.

use latido_fuzz::fuzz;

use crate::{cgroup, proc};

#[test]
fn fuzz_proc_stat() {
    fuzz("proc-stat", &["(", ")", ") ", " (", "Z", "X", "-1", " 0 ", "\u{a0}"], |bytes| {
        let Some(stat) = proc::parse_stat(bytes) else { return "refused".to_owned() };
        // A name cannot move the fields behind it.
        let close = bytes.iter().rposition(|byte| *byte == b')').unwrap();
        let open = bytes.iter().position(|byte| *byte == b'(').unwrap();
        let named = |name: &[u8]| [&bytes[..=open], name, &bytes[close..]].concat();
        for name in [&b""[..], b") S 1 (", b"a b\n", b"\xff"] {
            assert_eq!(proc::parse_stat(&named(name)), Some(stat));
        }
        format!("{} {} {}", stat.has_ended(), stat.threads.min(2), stat.group == 0)
    });
}

#[test]
fn fuzz_proc_environ() {
    fuzz("proc-environ", &["LATIDO_DIR=", "LATIDO_DIR", "=", "\0", "/x"], |bytes| {
        let found = proc::variable(bytes, "LATIDO_DIR");
        let first = [b"LATIDO_DIR=/first\0", bytes].concat();
        assert_eq!(proc::variable(&first, "LATIDO_DIR"), Some("/first".as_ref()), "the first one counts");
        let last = [b"A=LATIDO_DIR=/no\0XLATIDO_DIR=/no\0", bytes].concat();
        assert_eq!(proc::variable(&last, "LATIDO_DIR"), found, "another variable changes nothing");
        format!("{:?}", found.map(|path| path.is_absolute()))
    });
}

#[test]
fn fuzz_proc_lists() {
    fuzz("proc-lists", &["oom_kill ", "oom ", "0::/", ":", "memory", "pids", ",", "\n"], |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let count = proc::number_behind(&text, "oom_kill");
        assert_eq!(proc::number_behind(&format!("oom_kills 7\n{text}"), "oom_kill"), count);
        let pids: Vec<u32> = cgroup::listed(&text).collect();
        assert!(!pids.contains(&0), "nobody has the pid 0");
        let written: String = pids.iter().map(|pid| format!("{pid}\n")).collect();
        assert_eq!(cgroup::listed(&written).collect::<Vec<_>>(), pids);
        let own = [None, Some("pids"), Some("cpu,cpuacct")].map(|controller| cgroup::own_path(&text, controller));
        let line = own[0].as_ref().map(|path| format!("0::{path}\n"));
        assert!(line.is_none_or(|line| cgroup::own_path(&line, None) == own[0]), "a path is read whole");
        format!("{} {} {:?}", count.is_some(), pids.len().min(3), own.map(|path| path.is_some()))
    });
}
