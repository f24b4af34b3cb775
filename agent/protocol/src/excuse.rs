use serde::{Deserialize, Serialize};

use crate::Span;

/// Silence that the work announced, with `EXTEND_TIMEOUT_USEC=`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excuse {
    /// time since it was said, as the supervisor listened; a renewal continues the same excuse
    pub since_s: Span,
    /// how long it is to last, from its first word on
    pub length_s: Span,
    /// why, in the work's own words
    pub because: Option<String>,
}
