//! The known name that a wrong one was probably meant to be.

/// Below this likeness (Jaro-Winkler, 0 to 1) a suggestion confuses more than it helps; clap draws the line here too.
const LIKENESS_MIN: f64 = 0.7;

/// The nearest of `known`, if one is near enough.
pub(super) fn nearest<T: AsRef<str>>(name: &str, known: impl IntoIterator<Item = T>) -> Option<String> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate.as_ref()), candidate.as_ref().to_owned()))
        .filter(|(likeness, _)| *likeness > LIKENESS_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_is_found_and_the_far_is_not() {
        let known = ["interval", "ttl", "start_within"];
        assert_eq!(nearest("intervall", known).as_deref(), Some("interval"));
        assert_eq!(nearest("start-within", known).as_deref(), Some("start_within"));
        assert_eq!(nearest("zebra", known), None);
    }
}
