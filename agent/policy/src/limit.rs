/// A bound that may be absent on purpose.
///
/// "No limit" is a case of its own, so that no number can stand for it: a limit of 0 is reached at once, and the
/// greatest number is a bound like any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Limit<T> {
    /// No limit.
    #[default]
    None,
    /// Reached at this much.
    At(T),
}

impl<T: PartialOrd> Limit<T> {
    /// Answers the bound, once `amount` has reached it.
    pub fn reached(self, amount: T) -> Option<T> {
        self.bound().filter(|bound| amount >= *bound)
    }

    /// Answers the bound, where there is one.
    pub fn bound(self) -> Option<T> {
        match self {
            Self::None => None,
            Self::At(bound) => Some(bound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_never_reached_and_a_limit_of_nothing_at_once() {
        assert_eq!(Limit::None.reached(u64::MAX), None);
        assert_eq!(Limit::At(0_u64).reached(0), Some(0));
        assert_eq!(Limit::At(3_u64).reached(2), None);
        assert_eq!(Limit::At(3_u64).reached(4), Some(3));
    }
}
