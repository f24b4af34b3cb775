//! The table: each figure as median, minimum and maximum, beside what it is compared with.

use std::fmt::Write as _;
use std::time::Duration;

/// One series of measurements.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    name: String,
    unit: &'static str,
    values: Vec<f64>,
}

impl Series {
    /// Durations, told in milliseconds.
    pub(crate) fn millis(name: impl Into<String>, values: &[Duration]) -> Self {
        Self::new(name, "ms", values.iter().map(|value| value.as_secs_f64() * 1e3).collect())
    }

    pub(crate) fn new(name: impl Into<String>, unit: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self { name: name.into(), unit, values }
    }

    fn at(&self, index: usize) -> f64 {
        self.values.get(index).copied().unwrap_or(f64::NAN)
    }

    /// The value that so many of a hundred do not exceed.
    pub(crate) fn at_part(&self, percent: usize) -> f64 {
        self.at((self.values.len() * percent).div_ceil(100).wrapping_sub(1))
    }

    pub(crate) fn median(&self) -> f64 {
        let half = self.values.len() / 2;
        if self.values.len() % 2 == 1 {
            self.at(half)
        } else {
            f64::midpoint(self.at(half.wrapping_sub(1)), self.at(half))
        }
    }
}

/// The figures of one run.
#[derive(Debug, Default)]
pub(crate) struct Table(String);

impl Table {
    /// Adds what is measured, the target in words, and whether the median keeps it.
    pub(crate) fn figure(&mut self, figure: &Series, against: &[&Series], target: &str, met: bool) {
        let ratios: Vec<String> = against
            .iter()
            .filter(|other| !other.values.is_empty())
            .map(|other| format!("{:.2} × {}", figure.median() / other.median(), other.name))
            .collect();
        let verdict = if met { "kept" } else { "MISSED" };
        self.row(figure, &ratios.join("; "), &format!("{target}: {verdict}"));
    }

    /// Adds what a figure is compared with.
    pub(crate) fn beside(&mut self, series: &[&Series]) {
        for other in series {
            if other.values.is_empty() {
                let _never = writeln!(self.0, "| {} | absent on this machine | | | | | {} |", other.name, load());
            } else {
                self.row(other, "", "");
            }
        }
    }

    fn row(&mut self, series: &Series, ratios: &str, target: &str) {
        let number = |value: f64| format!("{:.*}", if value < 10.0 { 3 } else { 1 }, value);
        let (low, high) = (series.at(0), series.at(series.values.len().wrapping_sub(1)));
        let Series { name, unit, .. } = series;
        let (median, low, high) = (number(series.median()), number(low), number(high));
        let _never =
            writeln!(self.0, "| {name} | {median} {unit} | {low} | {high} | {ratios} | {target} | {} |", load());
    }

    pub(crate) fn text(&self) -> String {
        let head = "| figure | median | min | max | ratio to | target | load |\n|---|---|---|---|---|---|---|\n";
        format!("{head}{}", self.0)
    }
}

/// The load average of the last minute.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
