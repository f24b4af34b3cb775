//! What an author meets, from the first project to a plugin that is installed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod builtin;
mod cases;
mod chaos;
mod check;
mod conformance;
mod inspect;
mod openssl;
mod pack;
mod project;
mod support;
mod watching;
mod world;
