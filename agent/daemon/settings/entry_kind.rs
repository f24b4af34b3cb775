//! What kinds of entries a sink can ask for.

/// A kind of journal entry that a sink can ask for; named as [`latido_protocol::journal::Body::kind`] names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// a change of verdict
    Transition,
    /// a change of phase
    Phase,
    /// an attempt began
    AttemptStarted,
    /// an attempt ended
    AttemptEnded,
    /// a lease ran out and its attempt was given up
    LeaseExpired,
    /// an alert began or ended
    Alert,
    /// a sampled beat
    Beat,
    /// the agent about itself
    Agent,
}

impl EntryKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Transition,
        Self::Phase,
        Self::AttemptStarted,
        Self::AttemptEnded,
        Self::LeaseExpired,
        Self::Alert,
        Self::Beat,
        Self::Agent,
    ];
}
