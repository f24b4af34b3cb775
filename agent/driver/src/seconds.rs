//! Durations as seconds, as all formats have them.

use std::time::Duration;

use latido_protocol::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    Span(*length).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Span::deserialize(deserializer).map(|span| span.0)
}

/// The same where it may be absent.
pub(crate) mod optional {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(length: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        length.map(Span).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Option::<Span>::deserialize(deserializer).map(|span| span.map(|span| span.0))
    }
}
