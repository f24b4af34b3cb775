//! The command line, as a person or a script sees it.

mod beats;
mod completions;
mod config;
mod contract;
mod help;
mod launch_settings;
mod launches;
mod logs;
mod plugin_authors;
mod plugin_kit;
mod run;
mod status;
mod stop;
mod transcript;
mod workers;
