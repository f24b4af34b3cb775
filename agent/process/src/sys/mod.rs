//! What differs between systems: one file each, the same functions in each.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;

pub(crate) use system::*;
