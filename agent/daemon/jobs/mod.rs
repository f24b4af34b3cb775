//! Jobs on the disk and their processes: made, launched, looked at, recovered, stopped and removed, the same way for the
//! command line and the agent.
//!
//! Nothing here prints, decides when something is due, or waits without a deadline. The attempt files are the truth:
//! every change is on the disk before the next step, and who does not hold the job's lock writes nothing about attempts.

mod after_end;
pub mod client;
pub mod clock;
pub mod exposed;
mod git_locks;
pub mod inspect;
pub mod judge;
pub mod launch;
mod launch_error;
pub mod ledger;
pub mod make;
mod next_attempt;
pub mod orphans;
pub mod output;
pub mod pause;
mod prepared;
pub mod records;
pub mod recover;
pub mod remove;
pub mod resume;
pub mod sockets;
pub mod stop;
pub mod wanted;
