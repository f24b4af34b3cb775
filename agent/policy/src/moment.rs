use core::time::Duration;

/// A point on the agent's listening time line. It means something only to the agent that made it.
///
/// Time in which the agent could not hear is not on the line: the driver cuts it out before it passes `now`. The line
/// holds 584 years in nanoseconds; what would lie beyond stays at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The start of the time line. Tests count from here and never ask the host for the time.
    pub const ORIGIN: Self = Self(0);

    /// The moment `length` later.
    #[must_use]
    pub fn after(self, length: Duration) -> Self {
        Self(self.0.saturating_add(nanos(length)))
    }

    /// The moment `length` earlier, or the origin: silence from before the line began is cut to its start by callers
    /// that place the origin far enough in.
    #[must_use]
    pub fn before(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(length)))
    }

    /// How long it is since `earlier`; zero when that lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Nanoseconds since the start of the line.
    pub(crate) const fn nanos(self) -> u64 {
        self.0
    }

    /// The moment `nanos` nanoseconds after the start of the line.
    pub(crate) const fn at_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
