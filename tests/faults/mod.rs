//! Faults: whoever can die is killed, whatever can be damaged is damaged, and then it is looked for doubles and losses.

mod disk;
mod doubles;
mod hooks;
mod identity;
mod multiplexer;
mod orphans;
mod records;
mod removed;
mod storm;
mod unkillable;
mod workspace;
