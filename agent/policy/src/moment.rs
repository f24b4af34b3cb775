use core::time::Duration;

/// A point on the agent's listening time line. It means something only to the agent that made it.
///
/// Time in which the agent could not hear is not on the line: the driver cuts it out before it passes `now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The start of the time line. Tests count from here and never ask the host for the time.
    pub const ORIGIN: Self = Self(Duration::ZERO);

    /// The moment `length` later.
    #[must_use]
    pub fn after(self, length: Duration) -> Self {
        Self(self.0.saturating_add(length))
    }

    /// The moment `length` earlier, or the origin: silence from before the line began is cut to its start by callers
    /// that place the origin far enough in.
    #[must_use]
    pub fn before(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(length))
    }

    /// How long it is since `earlier`; zero when that lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
