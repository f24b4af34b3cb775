//! sd_notify datagrams: `KEY=VALUE` lines, read as bytes. Unknown keys are passed over, as the protocol asks.

use std::time::Duration;

use crate::Progress;
use crate::files::{Money, Spent};

/// Bytes of one datagram. Far more than any sender needs, and the most that is ever held for one.
pub const DATAGRAM_MAX: usize = 64 * 1024;

/// Bytes of a status line that are kept: it is one line for people.
pub const STATUS_MAX: usize = 1024;

/// What `WATCHDOG=` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watchdog {
    /// `1`: alive.
    Beat,
    /// `trigger`: it is broken, and says so itself.
    Trigger,
}

/// What one datagram says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notification {
    /// `READY=1`
    pub ready: bool,
    /// `STOPPING=1`
    pub stopping: bool,
    /// `RELOADING=1`
    pub reloading: bool,
    /// `BARRIER=1`; the sender waits until the descriptor that came along is closed
    pub barrier: bool,
    /// `WATCHDOG=`
    pub watchdog: Option<Watchdog>,
    /// `STATUS=`, cut to [`STATUS_MAX`] bytes
    pub status: Option<String>,
    /// what `STATUS=` hints of progress: `41%` or `3/8` in it
    pub hint: Option<Progress>,
    /// `EXTEND_TIMEOUT_USEC=`
    pub extend_timeout: Option<Duration>,
    /// `ERRNO=`
    pub errno: Option<i32>,
    /// `EXIT_STATUS=`
    pub exit_status: Option<i32>,
    /// `X_LATIDO_PROGRESS=`, `X_LATIDO_STEP=` and `X_LATIDO_CHECKPOINT=`
    pub progress: Progress,
    /// `X_LATIDO_TURNS=`, `X_LATIDO_TOKENS=` and `X_LATIDO_MONEY=`
    pub spent: Spent,
    /// `X_LATIDO_EPOCH=`
    pub epoch: Option<u64>,
    /// keys of ours and of the protocol whose value could not be used, counted
    pub unusable: u32,
}

impl Notification {
    /// Reads a datagram. It never fails: what cannot be used is counted.
    pub fn parse(datagram: &[u8]) -> Self {
        let mut notification = Self::default();
        for line in datagram.split(|byte| *byte == b'\n') {
            let Some(equals) = line.iter().position(|byte| *byte == b'=') else { continue };
            let (key, value) = (&line[..equals], &line[equals + 1..]);
            if !notification.take(key, value) {
                notification.unusable += 1;
            }
        }
        notification
    }

    /// True when it renews the work's own lease: `WATCHDOG=1` and every key of latido's, but not `READY=1` and `STATUS=`.
    pub fn is_beat(&self) -> bool {
        self.watchdog == Some(Watchdog::Beat) || !self.progress.is_empty() || !self.spent.is_nothing()
    }

    /// Takes one pair. `false`: the key is known and the value cannot be used.
    fn take(&mut self, key: &[u8], value: &[u8]) -> bool {
        match key {
            b"READY" => set(&mut self.ready, value),
            b"STOPPING" => set(&mut self.stopping, value),
            b"RELOADING" => set(&mut self.reloading, value),
            b"BARRIER" => set(&mut self.barrier, value),
            b"WATCHDOG" => {
                self.watchdog = match value {
                    b"1" => Some(Watchdog::Beat),
                    b"trigger" => Some(Watchdog::Trigger),
                    _ => return false,
                };
                true
            }
            b"STATUS" => {
                let status = text(value, STATUS_MAX);
                self.hint = hint(&status);
                self.status = Some(status);
                true
            }
            b"EXTEND_TIMEOUT_USEC" => put(&mut self.extend_timeout, number::<u64>(value).map(Duration::from_micros)),
            b"ERRNO" => put(&mut self.errno, number(value)),
            b"EXIT_STATUS" => put(&mut self.exit_status, number(value)),
            b"X_LATIDO_EPOCH" => put(&mut self.epoch, number(value)),
            b"X_LATIDO_PROGRESS" => {
                let fraction = std::str::from_utf8(value).ok().and_then(|text| Progress::parse_fraction(text).ok());
                put(&mut self.progress.fraction, fraction)
            }
            b"X_LATIDO_TURNS" => count(&mut self.spent.turns, number(value)),
            b"X_LATIDO_TOKENS" => count(&mut self.spent.tokens, number(value)),
            b"X_LATIDO_MONEY" => count(&mut self.spent.money, number::<Money>(value).map(|money| money.0)),
            b"X_LATIDO_STEP" => {
                self.progress.step = Some(text(value, Progress::TEXT_MAX));
                true
            }
            // A checkpoint that was cut or mended would be another checkpoint.
            b"X_LATIDO_CHECKPOINT" => {
                let whole = std::str::from_utf8(value).ok().filter(|text| text.len() <= Progress::TEXT_MAX);
                put(&mut self.progress.checkpoint, whole.map(str::to_owned))
            }
            _ => true,
        }
    }
}

fn set(flag: &mut bool, value: &[u8]) -> bool {
    *flag |= value == b"1";
    value == b"1"
}

fn put<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let usable = value.is_some();
    *place = value.or(place.take());
    usable
}

fn count(place: &mut u64, value: Option<u64>) -> bool {
    *place = value.unwrap_or(*place);
    value.is_some()
}

fn number<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// Text for people: replacement characters where it is no UTF-8, cut at a character.
fn text(value: &[u8], length_max: usize) -> String {
    let mut text = String::from_utf8_lossy(value).into_owned();
    text.truncate(text.floor_char_boundary(length_max));
    text
}

/// Finds `41%` or `3/8` as a word of a status line.
fn hint(status: &str) -> Option<Progress> {
    let words = || status.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | ',' | ';' | ':'));
    let count = words().find_map(|word| {
        let (done, total) = word.split_once('/')?;
        let (done, total) = (done.parse::<u64>().ok()?, total.parse::<u64>().ok()?);
        (done <= total && total > 0).then_some((done, total))
    });
    let percent = words().find_map(|word| {
        let number = word.strip_suffix('%')?;
        // `parse` takes words such as `inf` as well; a hint is digits.
        number.bytes().all(|b| b.is_ascii_digit() || b == b'.').then(|| Progress::parse_fraction(word).ok()).flatten()
    });
    if count.is_none() && percent.is_none() {
        return None;
    }
    let mut progress = Progress { fraction: percent, ..Progress::default() };
    progress.merge(Progress {
        fraction: percent,
        done: count.map(|(done, _)| done),
        total: count.map(|(_, total)| total),
        ..Progress::default()
    });
    Some(progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_and_unknown_ones_are_passed_over() {
        let datagram =
            b"READY=1\nSTATUS=file 3/8 (41%)\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=5000000\nSTOPPING=1\nERRNO=2\n\
            EXIT_STATUS=7\nX_LATIDO_PROGRESS=0.41\nX_LATIDO_STEP=b\nX_LATIDO_CHECKPOINT=c=d\nX_LATIDO_EPOCH=9\n\
            X_LATIDO_TURNS=3\nX_LATIDO_TOKENS=5000\nX_LATIDO_MONEY=0.25\nX_OTHER=1\nFDSTORE=1\nMAINPID=1\nnonsense\n\n";
        let read = Notification::parse(datagram);
        assert!(read.ready && read.stopping && !read.barrier && read.is_beat());
        assert_eq!(read.status.as_deref(), Some("file 3/8 (41%)"));
        let hint = read.hint.clone().unwrap();
        assert_eq!((hint.fraction, hint.done, hint.total), (Some(0.41), Some(3), Some(8)));
        assert_eq!(read.extend_timeout, Some(Duration::from_secs(5)));
        assert_eq!((read.errno, read.exit_status, read.epoch), (Some(2), Some(7), Some(9)));
        assert_eq!(read.progress.fraction, Some(0.41));
        assert_eq!(read.progress.step.as_deref(), Some("b"));
        assert_eq!(read.progress.checkpoint.as_deref(), Some("c=d"));
        assert_eq!(read.spent, Spent { turns: 3, tokens: 5000, money: 250_000 });
        assert_eq!(read.unusable, 0);
    }

    #[test]
    fn ready_and_status_are_no_beats() {
        assert!(!Notification::parse(b"READY=1\nSTATUS=50%").is_beat());
        assert!(Notification::parse(b"WATCHDOG=1").is_beat());
        assert!(Notification::parse(b"X_LATIDO_STEP=a").is_beat());
        assert!(Notification::parse(b"X_LATIDO_TURNS=1").is_beat());
        let broken = Notification::parse(b"WATCHDOG=trigger");
        assert!(!broken.is_beat());
        assert_eq!(broken.watchdog, Some(Watchdog::Trigger));
    }

    #[test]
    fn rubbish_is_counted_and_harms_nothing() {
        let long = [b"X_LATIDO_CHECKPOINT=".to_vec(), vec![b'x'; Progress::TEXT_MAX + 1]].concat();
        for bad in [
            &b"X_LATIDO_PROGRESS=2"[..],
            b"X_LATIDO_PROGRESS=\xff",
            b"X_LATIDO_PROGRESS=NaN",
            b"WATCHDOG=maybe",
            b"READY=0",
            b"X_LATIDO_EPOCH=-1",
            b"X_LATIDO_TOKENS=many",
            b"X_LATIDO_MONEY=$5",
            b"ERRNO=99999999999999",
            b"X_LATIDO_CHECKPOINT=\xe2",
            &long,
        ] {
            let read = Notification::parse(bad);
            assert_eq!(read, Notification { unusable: 1, ..Notification::default() });
        }
        let every: Vec<u8> = (0..=255).cycle().take(DATAGRAM_MAX).collect();
        assert!(!Notification::parse(&every).is_beat());
        let status = [b"STATUS=".to_vec(), "é".repeat(STATUS_MAX).into_bytes()].concat();
        assert!(Notification::parse(&status).status.unwrap().len() <= STATUS_MAX);
    }

    #[test]
    fn a_hint_is_a_word_of_its_own() {
        let hint = |text: &str| Notification::parse(format!("STATUS={text}").as_bytes()).hint;
        assert_eq!(hint("done 41%, go on").and_then(|p| p.fraction), Some(0.41));
        assert_eq!(hint("2/4 files").and_then(|p| p.fraction), Some(0.5));
        for nothing in ["/usr/share", "inf%", "5/0", "9/3", "a 1/b", "", "120%", "nan%"] {
            assert_eq!(hint(nothing), None, "{nothing}");
        }
    }
}
