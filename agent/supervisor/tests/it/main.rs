//! The real supervisor binary with real jobs, in a state directory made by hand.

mod beat;
mod binary;
mod control;
mod ending;
mod launch;
mod output;
mod stop;
mod support;
