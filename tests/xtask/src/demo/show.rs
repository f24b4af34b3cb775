//! What the demo says as it goes: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use crate::say;

/// Elsewhere than on a terminal a line is printed whenever this much has been done since the last one, in percent.
const LINE_EVERY: u64 = 10;

/// The one place through which the demo speaks.
pub(crate) struct Show {
    bar: Option<ProgressBar>,
    /// The percentage that the last plain line told.
    told: u64,
}

impl Show {
    /// Chooses by what stdout is.
    ///
    /// # Errors
    ///
    /// Fails where the bar's template cannot be read.
    pub(crate) fn new() -> Result<Self> {
        let bar = if std::io::stdout().is_terminal() {
            let style = ProgressStyle::with_template("   {bar:40} {percent:>3} %  {msg}")?;
            Some(ProgressBar::new(100).with_style(style))
        } else {
            None
        };
        Ok(Self { bar, told: 0 })
    }

    /// Begins a step.
    pub(crate) fn step(&self, number: u32, text: &str) {
        self.line(&format!("\n{number}. {text}"));
    }

    /// Tells a fact of the step.
    pub(crate) fn fact(&self, text: &str) {
        self.line(&format!("   {text}"));
    }

    /// Tells how far the job is, from 0 to 1.
    pub(crate) fn progress(&mut self, fraction: f64, attempt: u32) {
        let percent = percent(fraction);
        if let Some(bar) = &self.bar {
            bar.set_position(percent);
            bar.set_message(format!("attempt {attempt}"));
        } else if percent >= self.told + LINE_EVERY {
            self.told = percent - percent % LINE_EVERY;
            say::line(format_args!("   … {percent} %, attempt {attempt}"));
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say::line(text)),
            None => say::line(text),
        }
    }
}

/// A fraction as a whole percentage from 0 to 100.
pub(crate) fn percent(fraction: f64) -> u64 {
    (fraction.clamp(0.0, 1.0) * 100.0) as u64
}
