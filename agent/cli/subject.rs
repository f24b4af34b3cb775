//! What commands about one subject share: who asks, unknown names, and what a failure of a job's files means.

use latido::jobs::records;
use latido_protocol::layout::StateDir;
use latido_protocol::{SubjectName, WallTime};

use crate::failure::{Failure, chain};

/// Below this likeness (Jaro-Winkler, 0 to 1) a suggestion confuses more than it helps.
const LIKENESS_MIN: f64 = 0.7;

/// No such subject: wrong use, with the nearest name.
pub(crate) fn unknown(state: &StateDir, name: &SubjectName, doing: &str) -> Failure {
    let names = records::job_names(state).unwrap_or_default();
    let nearest = names
        .iter()
        .map(|known| (strsim::jaro_winkler(name.as_str(), known.as_str()), known))
        .filter(|(likeness, _)| *likeness > LIKENESS_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    let next = match nearest {
        Some((_, known)) => format!("did you mean `{known}`? `latido status` lists all"),
        None if names.is_empty() => "start one with `latido run`".to_owned(),
        None => "`latido status` lists all".to_owned(),
    };
    Failure::usage(
        format!("cannot {doing} `{name}`"),
        format!("there is no such subject in {}", state.path().display()),
        next,
    )
}

/// Refuses a name that is no job's.
pub(crate) fn known(state: &StateDir, name: &SubjectName, doing: &str) -> Result<(), Failure> {
    if records::exists(&state.job(name)) { Ok(()) } else { Err(unknown(state, name, doing)) }
}

/// The state directory cannot be read.
pub(crate) fn unreadable(state: &StateDir, error: &std::io::Error) -> Failure {
    Failure::itself(
        format!("cannot read the state directory {}", state.path().display()),
        chain(error),
        "give the right one with --state-dir, or look at its permissions",
    )
}

/// An error as the first two parts of a message: what could not be done, and why. The own words of an error name both,
/// or its source says why.
pub(crate) fn parts(error: &dyn std::error::Error) -> (String, String) {
    let own = error.to_string();
    let below = error.source().map(chain);
    let (what, why) = match own.split_once(": ") {
        Some((what, why)) => (what.to_owned(), Some(why.to_owned())),
        None => (own, None),
    };
    let why = [why, below].into_iter().flatten().collect::<Vec<_>>().join(": ");
    (format!("cannot {what}"), if why.is_empty() { "that is all that is known".to_owned() } else { why })
}

/// The time of records.
pub(crate) fn at() -> WallTime {
    latido::jobs::clock::wall_time()
}
