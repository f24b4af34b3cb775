//! Where everything lies in a state directory. Paths only: nothing here touches a disk.

use std::path::{Path, PathBuf};

use crate::SubjectName;

/// A state directory: `$XDG_STATE_HOME/latido` unless told otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir(PathBuf);

/// The folder of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDir(PathBuf);

/// The folder of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptDir(PathBuf);

impl StateDir {
    /// Takes a path as it is.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The exclusive lock of the one agent.
    pub fn agent_lock(&self) -> PathBuf {
        self.0.join("agent.lock")
    }

    /// The agent's control socket (a link where the path would be too long for a socket).
    pub fn agent_socket(&self) -> PathBuf {
        self.0.join("agent.sock")
    }

    /// The agent's store.
    pub fn database(&self) -> PathBuf {
        self.0.join("latido.db")
    }

    /// One line for each ended attempt.
    pub fn ledger(&self) -> PathBuf {
        self.0.join("ledger.jsonl")
    }

    /// What the agent was told and decided, where it is recorded; `.1`, `.2` … are older.
    pub fn recording(&self) -> PathBuf {
        self.0.join("recording.jsonl")
    }

    /// Signals of checks that came while no agent ran.
    pub fn kept_signals(&self) -> PathBuf {
        self.0.join("signals.jsonl")
    }

    /// The lock of a group: its executor holds it while it lives.
    pub fn group_lock(&self, group: &SubjectName) -> PathBuf {
        self.0.join("groups").join(format!("{group}.lock"))
    }

    /// What plugins keep: databases, files, their compiled form.
    pub fn plugins(&self) -> PathBuf {
        self.0.join("plugins")
    }

    /// The components that `latido plugin install` put here.
    pub fn installed_plugins(&self) -> PathBuf {
        self.plugins().join("installed")
    }

    /// The folder that holds the jobs' folders.
    pub fn jobs(&self) -> PathBuf {
        self.0.join("jobs")
    }

    /// The folder of one job.
    pub fn job(&self, name: &SubjectName) -> JobDir {
        JobDir(self.jobs().join(name.as_str()))
    }
}

impl JobDir {
    /// Takes a path as it is.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder itself. A `flock` on it is the job's short lock.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What was asked for.
    pub fn job(&self) -> PathBuf {
        self.0.join("job.json")
    }

    /// What is wanted now.
    pub fn wanted(&self) -> PathBuf {
        self.0.join("wanted.json")
    }

    /// The lock that the attempt holds while any of it lives.
    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Exists while an attempt runs.
    pub fn busy(&self) -> PathBuf {
        self.0.join("busy.json")
    }

    /// The folder that holds the attempts' folders.
    pub fn attempts(&self) -> PathBuf {
        self.0.join("attempts")
    }

    /// The folder of one attempt, counted from 1.
    pub fn attempt(&self, number: u32) -> AttemptDir {
        AttemptDir(self.attempts().join(format!("{number:04}")))
    }

    /// Reads an attempt's number from the name of its folder.
    pub fn attempt_number(folder: &str) -> Option<u32> {
        let digits = folder.len() >= 4 && folder.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| folder.parse().ok()).flatten().filter(|number| *number > 0)
    }
}

impl AttemptDir {
    /// Takes a path as it is.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of the job.
    ///
    /// Returns `None` for a path that has no grandparent.
    pub fn job(&self) -> Option<JobDir> {
        self.0.parent()?.parent().map(|path| JobDir(path.to_owned()))
    }

    /// Who runs it.
    pub fn start(&self) -> PathBuf {
        self.0.join("start.json")
    }

    /// The latest beat.
    pub fn status(&self) -> PathBuf {
        self.0.join("status.json")
    }

    /// The sampled beats.
    pub fn heartbeats(&self) -> PathBuf {
        self.0.join("heartbeats.jsonl")
    }

    /// stdout and stderr. Rotated files have `.1`, `.2` … behind the name; the highest is the oldest.
    pub fn output(&self) -> PathBuf {
        self.0.join("output.log")
    }

    /// When what in `output.log` was written; rotated with it, under the same numbers. A line for each record, 46 bytes with
    /// its end: an offset in 20 digits, a space, a wall time. It says that the byte at this offset, and none of the record
    /// before, was written then.
    pub fn output_index(&self) -> PathBuf {
        self.0.join("output.index")
    }

    /// What became of the command after the ending, where there is one.
    pub fn on_end(&self) -> PathBuf {
        self.0.join("on_end.json")
    }

    /// What that command printed.
    pub fn on_end_output(&self) -> PathBuf {
        self.0.join("on_end.log")
    }

    /// How it ended.
    pub fn end(&self) -> PathBuf {
        self.0.join("end.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_have_four_digits_and_grow_beyond() {
        let job = StateDir::new("/s").job(&"a".parse().unwrap());
        assert_eq!(job.attempt(1).end(), Path::new("/s/jobs/a/attempts/0001/end.json"));
        assert_eq!(job.attempt(12345).path(), Path::new("/s/jobs/a/attempts/12345"));
        assert_eq!(JobDir::attempt_number("12345"), Some(12345));
        for other in ["0000", "1", "000x", "+001", ".tmp", "0001.tmp"] {
            assert_eq!(JobDir::attempt_number(other), None, "{other}");
        }
        assert_eq!(job.attempt(3).job(), Some(job));
    }
}
