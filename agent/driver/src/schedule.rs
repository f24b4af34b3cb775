//! When a check is expected on the calendar: a cron pattern in a time zone.
//!
//! The pattern is matched against what a clock on the wall of that zone shows. Where that clock is set, Vixie cron's rule
//! holds, which is the one that jobs on a schedule are run by:
//!
//! - A pattern that fixes minute and hour names moments of the day. One that the clock skips is expected at the first
//!   instant after the gap; one that the clock shows twice is expected once, the first time.
//! - A pattern whose minute or hour begins with `*` names a rhythm. It goes on through both: nothing is expected in a gap,
//!   and a repeated hour has its moments twice.

use core::fmt;

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use latido_protocol::WallTime;
use serde::{Deserialize, Serialize};

/// Moments that a set clock can show again: a day of minutes, since zones have skipped and repeated a whole day.
const REPEATED_MOMENTS_MAX: usize = 24 * 60 + 1;

/// Clock changes between two moments: leap days are eight years apart at most, and no zone has had more than four changes
/// in a year.
const CLOCK_CHANGES_MAX: usize = 32;

/// The five fields, with what may stand in each.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31, L for the last, 15W for the working day nearest to the 15th"),
    ("month", "1 to 12, or JAN to DEC"),
    ("day of the week", "0 to 7 with 0 and 7 for Sunday, or SUN to SAT; 5L for the last Friday, 5#3 for the third"),
];

/// Short names of patterns.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A cron pattern in a time zone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Text", try_from = "Text")]
pub struct Schedule {
    pattern: String,
    /// matched against civil time, which it takes for UTC: clock changes are not its business
    crontab: Crontab,
    zone: TimeZone,
    is_rhythm: bool,
}

/// Why a text is no schedule. The fragments fit after "cannot read it:".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// It has not five fields.
    FieldCount {
        /// how many it has
        count: usize,
    },
    /// It begins with `@`, and is no nickname.
    Nickname {
        /// what stands there
        text: String,
    },
    /// One of its fields says nothing.
    Field {
        /// what the field stands for
        field: &'static str,
        /// what stands there
        text: String,
        /// where it begins, in characters from 1
        position: usize,
        /// what may stand there
        allowed: &'static str,
    },
    /// It names no day within four years.
    Never,
}

impl Schedule {
    /// Reads a pattern of five fields, or a nickname such as `@daily`.
    ///
    /// # Errors
    /// It is no pattern, or one that no day matches.
    pub fn parse(text: &str, zone: TimeZone) -> Result<Self, ScheduleError> {
        let pattern = expand(text)?;
        let fields: Vec<&str> = pattern.split_whitespace().collect();
        if fields.len() != FIELDS.len() {
            return Err(ScheduleError::FieldCount { count: fields.len() });
        }
        let crontab = read(&pattern).ok_or_else(|| faulty_field(&pattern))?;
        let is_rhythm = fields.iter().take(2).any(|field| field.starts_with('*'));
        let schedule = Self { pattern: fields.join(" "), crontab, zone, is_rhythm };
        match schedule.next_civil(DateTime::constant(2000, 1, 1, 0, 0, 0, 0)) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never),
        }
    }

    /// The first moment after `at` at which a sign is expected. `None` where the calendar ends.
    pub fn next_after(&self, at: WallTime) -> Option<WallTime> {
        let at = Timestamp::from_millisecond(i64::try_from(at.as_millis()).ok()?).ok()?;
        let next = if self.is_rhythm { self.next_of_rhythm(at) } else { self.next_of_day(at) }?;
        Some(WallTime::from_millis(u64::try_from(next.as_millisecond()).ok()?))
    }

    /// Pattern and zone in one line, which tells this definition from another.
    pub fn definition(&self) -> String {
        format!("{} {}", self.pattern, self.zone.iana_name().unwrap_or("local"))
    }

    fn next_of_day(&self, at: Timestamp) -> Option<Timestamp> {
        let mut civil = self.zone.to_datetime(at);
        for _ in 0..REPEATED_MOMENTS_MAX {
            civil = self.next_civil(civil)?;
            let ambiguous = self.zone.to_ambiguous_timestamp(civil);
            let is_skipped = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
            let mut instant = ambiguous.earlier().ok()?;
            if is_skipped {
                // What the clock would have shown before it was set leads to the instant at which it was.
                instant = self.zone.following(instant).next()?.timestamp();
            }
            if instant > at {
                return Some(instant);
            }
        }
        None
    }

    fn next_of_rhythm(&self, at: Timestamp) -> Option<Timestamp> {
        let (mut since, mut civil) = (at, self.zone.to_datetime(at));
        for _ in 0..CLOCK_CHANGES_MAX {
            // Up to the next change the clock goes like the time itself.
            let instant = self.zone.to_offset(since).to_timestamp(self.next_civil(civil)?).ok()?;
            let change = self.zone.following(since).next().map(|change| change.timestamp());
            match change.filter(|&change| change <= instant) {
                None => return Some(instant),
                Some(change) => {
                    since = change;
                    civil = self.zone.to_datetime(change).checked_sub(SignedDuration::from_secs(1)).ok()?;
                }
            }
        }
        None
    }

    /// The first moment after `civil` that the pattern matches.
    fn next_civil(&self, civil: DateTime) -> Option<DateTime> {
        let from = TimeZone::UTC.to_timestamp(civil).ok()?;
        self.crontab.find_next(MakeTimestamp(from)).ok().map(|found| found.datetime())
    }
}

/// A schedule as it is recorded.
#[derive(Serialize, Deserialize)]
struct Text {
    pattern: String,
    /// `None`: the zone of the host, which has no name
    zone: Option<String>,
}

impl From<Schedule> for Text {
    fn from(schedule: Schedule) -> Self {
        Self { zone: schedule.zone.iana_name().map(str::to_owned), pattern: schedule.pattern }
    }
}

impl TryFrom<Text> for Schedule {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        let zone = match &text.zone {
            Some(name) => TimeZone::get(name).or_else(|_| TimeZoneDatabase::bundled().get(name)),
            None => Ok(TimeZone::system()),
        };
        let zone = zone.map_err(|error| error.to_string())?;
        Self::parse(&text.pattern, zone).map_err(|error| error.to_string())
    }
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.definition() == other.definition()
    }
}

impl Eq for Schedule {}

fn expand(text: &str) -> Result<String, ScheduleError> {
    let text = text.trim();
    if !text.starts_with('@') {
        return Ok(text.to_owned());
    }
    let known = NICKNAMES.iter().find(|(nickname, _)| nickname.eq_ignore_ascii_case(text));
    known.map(|(_, pattern)| (*pattern).to_owned()).ok_or_else(|| ScheduleError::Nickname { text: text.to_owned() })
}

fn read(pattern: &str) -> Option<Crontab> {
    let mut options = ParseOptions::default();
    options.fallback_timezone_option = FallbackTimezoneOption::UTC;
    cronexpr::parse_crontab_with(pattern, options).ok()
}

/// Finds the field that cannot be read on its own, with anything in the others.
fn faulty_field(pattern: &str) -> ScheduleError {
    let mut position = 1;
    let mut rest = pattern;
    for (number, (field, allowed)) in FIELDS.into_iter().enumerate() {
        let blank = rest.len() - rest.trim_start().len();
        let text: String = rest.trim_start().chars().take_while(|character| !character.is_whitespace()).collect();
        position += rest[..blank].chars().count();
        let mut alone = ["*"; FIELDS.len()];
        alone[number] = &text;
        if read(&alone.join(" ")).is_none() {
            return ScheduleError::Field { field, text, position, allowed };
        }
        position += text.chars().count();
        rest = &rest[blank + text.len()..];
    }
    ScheduleError::FieldCount { count: FIELDS.len() }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FieldCount { count } => write!(
                f,
                "it has {count} fields, and a pattern has five: minute, hour, day of the month, month, day of the week"
            ),
            Self::Nickname { text } => write!(f, "`{text}` is none of {}", NICKNAMES.map(|(name, _)| name).join(", ")),
            Self::Field { field, text, position, allowed } => {
                write!(f, "`{text}` at character {position} is no {field}, which is {allowed}")
            }
            Self::Never => f.write_str("no day within four years matches it"),
        }
    }
}

impl std::error::Error for ScheduleError {}

#[cfg(test)]
mod tests;
