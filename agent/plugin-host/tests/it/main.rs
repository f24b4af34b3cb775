//! The host against real components: the built-in plugins and guests that misbehave.
#![expect(clippy::unwrap_used, clippy::unwrap_in_result, reason = "a test that cannot go on fails")]

mod builtin;
mod capabilities;
mod compiling;
mod faults;
mod fixed;
mod ground;
mod http;
mod killed;
mod limits;
mod loading;
mod logs;
mod probing;
mod rules;
mod server;
mod sizes;
mod support;
mod versions;
mod webhook;
mod workspace;
