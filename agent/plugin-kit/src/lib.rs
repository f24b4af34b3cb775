//! What a plugin's author needs: a project to begin with, the component made from it, and proof that it works.
//!
//! This crate knows nothing of a running agent and asks none. It prints nothing and ends no process: whoever calls it shows
//! what it answers. A plugin runs here as it runs in the agent, by `latido-plugin-host`, inside the same limits.

mod project;

pub use project::{Language, Project, ProjectError};
