//! The agent.

pub mod settings;
