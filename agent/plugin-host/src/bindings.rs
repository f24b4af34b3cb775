//! The versions of the WIT package that this host speaks, each in a file of its own.
//!
//! Nothing outside this module knows of versions: [`Instance`](v0::Instance) and the types below are what the rest of
//! the crate uses. A second version becomes a second file and an enum over both here.

pub(crate) mod v0;

/// The package whose interfaces a plugin imports and exports.
pub(crate) const PACKAGE: &str = "latido:plugin";

/// The version of the package that this host speaks.
pub const PACKAGE_VERSION: &str = "0.2.0";
