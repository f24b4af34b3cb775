//! The list that every store passes.
