//! What an author meets, from the first project to a plugin that is installed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod building;
mod builtin;
mod cases;
mod chaos;
mod check;
mod conformance;
mod examples;
#[path = "../../../plugin-host/tests/it/ground.rs"]
mod ground;
mod inspect;
mod languages;
mod openssl;
mod pack;
mod pitfalls;
mod project;
mod projects;
mod record;
mod support;
mod watching;
mod world;
