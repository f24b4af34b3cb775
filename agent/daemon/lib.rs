//! The agent, and what it shares with the command line: jobs on the disk, and the settings.

pub mod jobs;
pub mod settings;
