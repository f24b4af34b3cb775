//! The agent.
pub mod settings;
pub mod jobs;
