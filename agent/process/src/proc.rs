//! `/proc`, read as bytes.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

/// Bytes of one environment that are read: the kernel's own limit for arguments and environment is 6 MiB at most, and
/// the marker stands where the supervisor put it, long before that.
const ENVIRON_MAX: u64 = 2 * 1024 * 1024;

/// Bytes of `/proc/PID/stat`: 52 numbers and a name of at most 64 bytes.
const STAT_MAX: usize = 2048;

/// What `/proc/PID/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) threads: u32,
    pub(crate) start_time: u64,
    /// CPU time, its own and that of children it collected, in hundredths of a second
    pub(crate) ticks: u64,
}

impl Stat {
    /// True when nothing of it runs any more. A first thread that ended before the others looks like a zombie too.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }
}

/// Reads `/proc/PID/stat`. `None`: no such process.
pub(crate) fn stat(pid: u32) -> io::Result<Option<Stat>> {
    let mut buffer = [0; STAT_MAX];
    let read = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| read_up_to(&mut file, &mut buffer));
    match read {
        Ok(count) => parse_stat(&buffer[..count]).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into()),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// How long the machine is up, in hundredths of a second: what start times are counted in.
pub(crate) fn uptime() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/uptime")?;
    let (seconds, hundredths) =
        text.split_ascii_whitespace().next().and_then(|it| it.split_once('.')).unwrap_or_default();
    let number = |digits: &str| digits.parse::<u64>().map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
    Ok(number(seconds)?.saturating_mul(100).saturating_add(number(hundredths)?))
}

/// The pids of all processes that `/proc` shows.
pub(crate) fn pids() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        // An entry that vanished while reading is a process that ended.
        let Ok(entry) = entry else { continue };
        let name = entry.file_name();
        pids.extend(std::str::from_utf8(name.as_bytes()).ok().and_then(|text| text.parse::<u32>().ok()));
    }
    Ok(pids)
}

/// The children of the calling process, those that have ended included. For programs of one thread.
pub(crate) fn children_of_caller() -> Vec<u32> {
    let own = std::process::id();
    match std::fs::read_to_string(format!("/proc/self/task/{own}/children")) {
        Ok(list) => list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // A kernel without CONFIG_PROC_CHILDREN.
        Err(_) => {
            let is_child = |pid: &u32| matches!(stat(*pid), Ok(Some(stat)) if stat.parent == own);
            pids().unwrap_or_default().into_iter().filter(is_child).collect()
        }
    }
}

/// The environment a process was started with. `None`: it cannot be read.
pub(crate) fn environ(pid: u32) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(ENVIRON_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The value of a variable in an environment as `/proc` shows it.
pub(crate) fn variable<'a>(environ: &'a [u8], name: &str) -> Option<&'a Path> {
    environ
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        .map(|value| Path::new(std::ffi::OsStr::from_bytes(value)))
}

/// True when the process is seen to have this file open.
pub(crate) fn has_open(pid: u32, device: u64, inode: u64) -> bool {
    use std::os::unix::fs::MetadataExt;

    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries
        .flatten()
        .any(|entry| std::fs::metadata(entry.path()).is_ok_and(|file| file.dev() == device && file.ino() == inode))
}

/// True when the process has this file open and holds a `flock` through that descriptor.
pub(crate) fn holds_lock(pid: u32, device: u64, inode: u64) -> bool {
    use std::os::unix::fs::MetadataExt;

    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    entries.flatten().any(|entry| {
        let same = std::fs::metadata(entry.path()).is_ok_and(|file| file.dev() == device && file.ino() == inode);
        same && {
            let info = Path::new("/proc").join(pid.to_string()).join("fdinfo").join(entry.file_name());
            // The kernel lists under a descriptor the locks of that very open file description.
            std::fs::read_to_string(info).is_ok_and(|text| text.lines().any(|line| line.contains("FLOCK")))
        }
    })
}

/// No such process: it ended before the file was opened, or between that and the read.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// The name stands in parentheses and may itself hold spaces, parentheses and any other byte.
pub(crate) fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    /// Fields behind the name that are of interest; none lies behind the last.
    const FIELDS: usize = 20;

    let open = bytes.iter().position(|byte| *byte == b'(')?;
    let close = bytes.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(&bytes[..open]).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    let mut fields = [""; FIELDS];
    let mut words = rest.split_ascii_whitespace();
    for field in &mut fields {
        *field = words.next()?;
    }
    let number = |index: usize| fields[index].parse::<u64>().unwrap_or(0);
    Some(Stat {
        pid,
        state: fields[0].chars().next()?,
        parent: fields[1].parse().ok()?,
        // Processes whose parts lie outside this pid namespace have 0 or -1 here.
        group: fields[2].parse().unwrap_or(0),
        session: fields[3].parse().unwrap_or(0),
        threads: fields[17].parse().ok()?,
        start_time: fields[19].parse().ok()?,
        ticks: (11..=14).map(number).fold(0, u64::saturating_add),
    })
}

/// The number behind a word that begins a line.
pub(crate) fn number_behind(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_newlines_is_passed_over() {
        let line = b"42 (a) b (\n\xff) S 1 7 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 99887 1 2 3\n";
        let stat = parse_stat(line).unwrap();
        let expected =
            Stat { pid: 42, state: 'S', parent: 1, group: 7, session: 9, threads: 3, start_time: 99887, ticks: 26 };
        assert_eq!(stat, expected);
        let endless = b"42 (a) R 1 7 9 0 -1 4 1 2 3 4 18446744073709551615 6 7 8 20 0 3 0 99887\n";
        assert_eq!(parse_stat(endless).unwrap().ticks, u64::MAX);
        for bad in [&b""[..], b"42", b"42 (a)", b"x (a) S 1 2 3", b")("] {
            assert_eq!(parse_stat(bad), None);
        }
    }

    #[test]
    fn a_variable_is_found_whole() {
        let environ = b"A=1\0XLATIDO_DIR=/x\0LATIDO_DIRX=/y\0LATIDO_DIR=/z\0";
        assert_eq!(variable(environ, "LATIDO_DIR"), Some(Path::new("/z")));
        assert_eq!(variable(environ, "B"), None);
    }

    #[test]
    fn a_first_thread_that_ended_alone_has_not_ended_the_process() {
        let mut stat = stat(std::process::id()).unwrap().unwrap();
        stat.state = 'Z';
        stat.threads = 2;
        assert!(!stat.has_ended());
        stat.threads = 1;
        assert!(stat.has_ended());
    }
}
