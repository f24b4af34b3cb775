use serde::{Deserialize, Serialize};

/// What the work itself says of how far it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// 0.0 to 1.0
    pub fraction: Option<f64>,
    /// units finished
    pub done: Option<u64>,
    /// units in all
    pub total: Option<u64>,
    /// the last step, in the job's own words
    pub step: Option<String>,
    /// an opaque text handed to the next attempt
    pub checkpoint: Option<String>,
}

/// Why a progress was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgressError {
    /// Not a number between 0 and 1 (or 0 % and 100 %).
    #[error("{0:?} is not a progress between 0.0 and 1.0, or 0% and 100%")]
    Fraction(String),
    /// Longer than [`Progress::TEXT_MAX`].
    #[error("{what} has {length} bytes; {} are allowed", Progress::TEXT_MAX)]
    TextTooLong {
        /// which text
        what: &'static str,
        /// its length
        length: usize,
    },
}

impl Progress {
    /// A step or checkpoint is a line, not a document: it is written with every beat, and handed on by environment.
    pub const TEXT_MAX: usize = 4096;

    /// Reads `0.41` or `41%`.
    ///
    /// # Errors
    /// When the text is not a number, or outside the range.
    pub fn parse_fraction(text: &str) -> Result<f64, ProgressError> {
        let refuse = || ProgressError::Fraction(text.to_owned());
        let (number, scale) = match text.trim().strip_suffix('%') {
            Some(percent) => (percent.trim_end(), 100.0),
            None => (text.trim(), 1.0),
        };
        let fraction = number.parse::<f64>().map_err(|_| refuse())? / scale;
        if (0.0..=1.0).contains(&fraction) { Ok(fraction) } else { Err(refuse()) }
    }

    /// True when nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes over what `newer` says and keeps the rest; a fraction that follows from done and total is filled in.
    pub fn merge(&mut self, newer: Self) {
        let counted = newer.done.is_some() || newer.total.is_some();
        self.done = newer.done.or(self.done);
        self.total = newer.total.or(self.total);
        if let Some(fraction) = newer.fraction {
            self.fraction = Some(fraction);
        } else if counted
            && let (Some(done), Some(total)) = (self.done, self.total)
            && total > 0
        {
            // Counts above 2^53 lose digits that no progress bar shows.
            #[expect(clippy::cast_precision_loss, reason = "a fraction for people")]
            let fraction = done as f64 / total as f64;
            self.fraction = Some(fraction.min(1.0));
        }
        self.step = newer.step.or(self.step.take());
        self.checkpoint = newer.checkpoint.or(self.checkpoint.take());
    }

    /// Refuses texts beyond [`Progress::TEXT_MAX`].
    ///
    /// # Errors
    /// Names the text that is too long.
    pub fn check(&self) -> Result<(), ProgressError> {
        for (what, text) in [("the step", &self.step), ("the checkpoint", &self.checkpoint)] {
            if let Some(length) = text.as_ref().map(String::len).filter(|length| *length > Self::TEXT_MAX) {
                return Err(ProgressError::TextTooLong { what, length });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_read_in_both_spellings() {
        assert_eq!(Progress::parse_fraction("0.41"), Ok(0.41));
        assert_eq!(Progress::parse_fraction("41%"), Ok(0.41));
        for bad in ["", "%", "1.5", "101%", "-0.1", "NaN", "inf", "half"] {
            assert!(Progress::parse_fraction(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn merging_keeps_what_was_not_said_again() {
        let mut progress = Progress { checkpoint: Some("200".into()), ..Progress::default() };
        progress.merge(Progress { done: Some(1), total: Some(4), ..Progress::default() });
        assert_eq!(progress.fraction, Some(0.25));
        assert_eq!(progress.checkpoint.as_deref(), Some("200"));
        progress.merge(Progress { step: Some("b".into()), ..Progress::default() });
        assert_eq!(progress.fraction, Some(0.25));
    }
}
