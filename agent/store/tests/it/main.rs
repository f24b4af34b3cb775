//! The stores, on real files, with real processes.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod beats;
mod conformance;
mod files;
mod full;
mod killed;
mod locks;
mod support;
