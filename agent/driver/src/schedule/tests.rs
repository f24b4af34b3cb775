//! Moments are written as people of the zone read them, with the offset where that tells two of them apart.

use jiff::Zoned;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn wall(text: &str) -> WallTime {
    let instant: Timestamp = text.parse().unwrap();
    WallTime::from_millis(u64::try_from(instant.as_millisecond()).unwrap())
}

/// The next `count` moments after an instant, as the clock of the zone shows them.
fn moments(pattern: &str, name: &str, after: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(pattern, zone(name)).unwrap();
    let mut at = wall(after);
    (0..count)
        .map(|_| {
            at = schedule.next_after(at).unwrap();
            let instant = Timestamp::from_millisecond(i64::try_from(at.as_millis()).unwrap()).unwrap();
            let shown: Zoned = instant.to_zoned(zone(name));
            shown.strftime("%Y-%m-%d %H:%M %:z").to_string()
        })
        .collect()
}

fn refused(pattern: &str) -> ScheduleError {
    Schedule::parse(pattern, TimeZone::UTC).unwrap_err()
}

#[test]
fn a_moment_is_after_the_one_before_and_never_the_same() {
    assert_eq!(
        moments("0 3 * * *", "UTC", "2026-01-01T03:00:00Z", 2),
        ["2026-01-02 03:00 +00:00", "2026-01-03 03:00 +00:00"]
    );
    assert_eq!(
        moments("*/20 * * * *", "UTC", "2026-01-01T03:19:59.5Z", 2),
        ["2026-01-01 03:20 +00:00", "2026-01-01 03:40 +00:00"]
    );
}

// healthchecks/healthchecks#196
#[test]
fn c017_a_daily_moment_that_the_clock_skips_comes_right_after_the_gap() {
    assert_eq!(
        moments("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", 3),
        ["2026-03-28 02:30 +01:00", "2026-03-29 03:00 +02:00", "2026-03-30 02:30 +02:00"]
    );
}

// healthchecks/healthchecks#196
#[test]
fn c017_a_daily_moment_that_the_clock_shows_twice_comes_once() {
    assert_eq!(
        moments("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
        ["2026-10-25 02:30 +02:00", "2026-10-26 02:30 +01:00"]
    );
    let between_the_two = "2026-10-25T00:45:00Z";
    assert_eq!(moments("30 2 * * *", "Europe/Berlin", between_the_two, 1), ["2026-10-26 02:30 +01:00"]);
}

// healthchecks/healthchecks#912
#[test]
fn c016_a_rhythm_runs_through_the_repeated_hour_twice() {
    let shown = moments("*/15 * * * *", "Europe/Berlin", "2026-10-24T23:50:00Z", 9);
    assert_eq!(shown[0], "2026-10-25 02:00 +02:00");
    assert_eq!(shown[3], "2026-10-25 02:45 +02:00");
    assert_eq!(shown[4], "2026-10-25 02:00 +01:00");
    assert_eq!(shown[8], "2026-10-25 03:00 +01:00");
}

// healthchecks/healthchecks#912
#[test]
fn c016_a_rhythm_has_no_moment_in_the_gap() {
    assert_eq!(
        moments("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", 3),
        ["2026-03-29 01:30 +01:00", "2026-03-29 03:00 +02:00", "2026-03-29 03:30 +02:00"]
    );
}

// healthchecks/healthchecks#330
#[test]
fn c020_a_window_of_the_day_has_no_moments_at_night() {
    assert_eq!(
        moments("0 6-8 * * *", "Europe/Berlin", "2026-06-01T06:30:00Z", 2),
        ["2026-06-02 06:00 +02:00", "2026-06-02 07:00 +02:00"]
    );
}

#[test]
fn several_hours_of_the_day_are_moments_and_no_rhythm() {
    assert_eq!(
        moments("0 1,2,3 * * *", "Europe/Berlin", "2026-10-24T22:30:00Z", 4),
        ["2026-10-25 01:00 +02:00", "2026-10-25 02:00 +02:00", "2026-10-25 03:00 +01:00", "2026-10-26 01:00 +01:00"]
    );
    assert_eq!(
        moments("0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
        ["2026-03-29 03:00 +02:00", "2026-03-30 02:00 +02:00"],
        "both lie in the gap, and one sign after it is enough"
    );
}

#[test]
fn santiago_sets_its_clock_at_midnight() {
    // 2026-09-06 00:00 is skipped, and 2026-04-04 23:00 to 24:00 comes twice.
    assert_eq!(
        moments("0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", 2),
        ["2026-09-06 01:00 -03:00", "2026-09-07 00:00 -03:00"]
    );
    assert_eq!(
        moments("30 23 * * *", "America/Santiago", "2026-04-04T12:00:00Z", 2),
        ["2026-04-04 23:30 -03:00", "2026-04-05 23:30 -04:00"]
    );
}

#[test]
fn lord_howe_sets_its_clock_by_half_an_hour() {
    assert_eq!(
        moments("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2),
        ["2026-10-04 02:30 +11:00", "2026-10-05 02:15 +11:00"]
    );
    assert_eq!(
        moments("*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:40:00Z", 4),
        ["2026-04-05 01:45 +11:00", "2026-04-05 01:30 +10:30", "2026-04-05 01:45 +10:30", "2026-04-05 02:00 +10:30"]
    );
}

#[test]
fn gaza_sets_its_clock_on_days_of_its_own() {
    // Far enough ahead, the clock is set around Ramadan, at other dates each year.
    for (pattern, after) in [("30 1 * * *", "2026-03-25T12:00:00Z"), ("30 2 * * *", "2026-03-26T12:00:00Z")] {
        let shown = moments(pattern, "Asia/Gaza", after, 5);
        let mut days: Vec<&str> = shown.iter().map(|moment| &moment[..10]).collect();
        days.dedup();
        assert_eq!(days.len(), 5, "one moment a day: {shown:?}");
    }
}

#[test]
fn a_day_that_a_zone_skipped_has_no_rhythm_and_its_moments_come_after_it() {
    // Samoa went from 2011-12-29 straight to 2011-12-31.
    assert_eq!(
        moments("0 */12 * * *", "Pacific/Apia", "2011-12-29T20:00:00Z", 3),
        ["2011-12-29 12:00 -10:00", "2011-12-31 00:00 +14:00", "2011-12-31 12:00 +14:00"]
    );
    assert_eq!(
        moments("0 12 * * *", "Pacific/Apia", "2011-12-29T20:00:00Z", 3),
        ["2011-12-29 12:00 -10:00", "2011-12-31 00:00 +14:00", "2011-12-31 12:00 +14:00"]
    );
}

#[test]
fn the_leap_day_comes_every_four_years() {
    assert_eq!(
        moments("0 0 29 2 *", "UTC", "2024-03-01T00:00:00Z", 2),
        ["2028-02-29 00:00 +00:00", "2032-02-29 00:00 +00:00"]
    );
}

#[test]
fn day_of_month_and_day_of_week_are_one_or_the_other() {
    assert_eq!(
        moments("0 0 13 * 5", "UTC", "2026-02-01T00:00:00Z", 3),
        ["2026-02-06 00:00 +00:00", "2026-02-13 00:00 +00:00", "2026-02-20 00:00 +00:00"]
    );
}

#[test]
fn last_nearest_and_nth_days_are_understood() {
    for (pattern, expected) in [
        ("0 0 L * *", "2026-02-28 00:00 +00:00"),
        ("0 0 15W * *", "2026-02-16 00:00 +00:00"),
        ("0 0 * * 5L", "2026-02-27 00:00 +00:00"),
        ("0 0 * * 1#2", "2026-02-09 00:00 +00:00"),
        ("0 0 1 MAR *", "2026-03-01 00:00 +00:00"),
    ] {
        assert_eq!(moments(pattern, "UTC", "2026-02-01T00:00:00Z", 1), [expected], "{pattern}");
    }
}

#[test]
fn nicknames_are_patterns() {
    for (nickname, expected) in [
        ("@hourly", "2026-02-01 01:00 +00:00"),
        ("@daily", "2026-02-02 00:00 +00:00"),
        ("@Midnight", "2026-02-02 00:00 +00:00"),
        ("@weekly", "2026-02-08 00:00 +00:00"),
        ("@monthly", "2026-03-01 00:00 +00:00"),
        ("@yearly", "2027-01-01 00:00 +00:00"),
    ] {
        assert_eq!(moments(nickname, "UTC", "2026-02-01T00:00:00Z", 1), [expected], "{nickname}");
    }
    assert_eq!(refused("@often"), ScheduleError::Nickname { text: "@often".into() });
}

#[test]
fn what_never_comes_is_refused() {
    assert_eq!(refused("0 0 30 2 *"), ScheduleError::Never);
    assert_eq!(refused("0 0 31 4,6,9,11 *"), ScheduleError::Never);
}

#[test]
fn a_faulty_field_is_named_with_its_place() {
    for (pattern, text, position, field) in [
        ("61 3 * * *", "61", 1, "minute"),
        ("0  25 * * *", "25", 4, "hour"),
        ("0 3 32 * *", "32", 5, "day of the month"),
        ("0 3 * FEV *", "FEV", 7, "month"),
        ("0 3 * * mondays", "mondays", 9, "day of the week"),
    ] {
        let error = refused(pattern);
        let ScheduleError::Field { field: named, text: there, position: at, .. } = &error else { panic!("{error}") };
        assert_eq!((there.as_str(), *at, *named), (text, position, field), "{pattern}");
    }
    assert_eq!(refused("0 25 * * *").to_string(), "`25` at character 3 is no hour, which is 0 to 23");
}

#[test]
fn a_pattern_has_five_fields() {
    assert_eq!(refused("0 0 3 * * *"), ScheduleError::FieldCount { count: 6 });
    assert_eq!(refused("0 3 * *"), ScheduleError::FieldCount { count: 4 });
    assert_eq!(refused(""), ScheduleError::FieldCount { count: 0 });
    assert_eq!(refused("0 3 * * * Europe/Berlin"), ScheduleError::FieldCount { count: 6 });
}

#[test]
fn a_definition_is_its_pattern_and_its_zone() {
    let schedule = |pattern, name| Schedule::parse(pattern, zone(name)).unwrap();
    assert_eq!(schedule(" 0  3 * * *", "UTC").definition(), "0 3 * * * UTC");
    assert_eq!(schedule("@daily", "Europe/Berlin"), schedule("0 0 * * *", "Europe/Berlin"));
    assert_ne!(schedule("@daily", "Europe/Berlin"), schedule("@daily", "UTC"));
}
