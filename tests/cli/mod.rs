//! The command line, as a person or a script sees it.

mod completions;
mod config;
mod help;
mod transcript;
