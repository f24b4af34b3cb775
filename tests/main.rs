//! The integration tests: one binary, one line per suite.

mod cli;
