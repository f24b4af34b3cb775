//! The host against real components: the built-in plugins and guests that misbehave.

mod builtin;
mod capabilities;
mod faults;
mod limits;
mod loading;
mod support;
