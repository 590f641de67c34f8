//! Metrics as text in the format OpenMetrics 1.0.

#[cfg(test)]
mod tests;

use crate::histogram::Counts;
use std::fmt::Write as _;

/// The unit of a metric; its name ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// A number of things.
    None,
}

/// The text of all metrics. The samples of a family follow its head.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    family: String,
}

/// The labels of a sample.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// Returns the content type for HTTP.
    pub const CONTENT_TYPE: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    fn begin(&mut self, name: &str, kind: &str, unit: Unit, help: &str) {
        name.clone_into(&mut self.family);
        let unit = match unit {
            Unit::Bytes => Some("bytes"),
            Unit::Seconds => Some("seconds"),
            Unit::None => None,
        };
        self.line(format_args!("# TYPE {name} {kind}"));
        if let Some(unit) = unit {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
        self.line(format_args!("# HELP {name} {}", Escaped(help)));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _never = self.text.write_fmt(line);
        self.text.push('\n');
    }

    /// Begins a family of counters, whose name has no `_total`.
    pub fn counters(&mut self, name: &str, unit: Unit, help: &str) {
        self.begin(name, "counter", unit, help);
    }

    /// Begins a family of gauges.
    pub fn gauges(&mut self, name: &str, unit: Unit, help: &str) {
        self.begin(name, "gauge", unit, help);
    }

    /// Begins a family of histograms of durations.
    pub fn histograms(&mut self, name: &str, help: &str) {
        self.begin(name, "histogram", Unit::Seconds, help);
    }

    /// Adds a counter to the present family.
    pub fn counter(&mut self, labels: Labels<'_>, value: f64) {
        self.sample("_total", labels, None, value);
    }

    /// Adds a gauge to the present family.
    pub fn gauge(&mut self, labels: Labels<'_>, value: f64) {
        self.sample("", labels, None, value);
    }

    /// Adds a histogram to the present family.
    pub fn histogram(&mut self, labels: Labels<'_>, counts: &Counts) {
        for (bound, count) in counts.cumulative() {
            self.sample("_bucket", labels, Some(&bound.as_secs_f64().to_string()), count as f64);
        }
        self.sample("_bucket", labels, Some("+Inf"), counts.count() as f64);
        self.sample("_count", labels, None, counts.count() as f64);
        self.sample("_sum", labels, None, counts.sum().as_secs_f64());
    }

    fn sample(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: f64) {
        let labels = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let labels: Vec<String> =
            labels.map(|(name, value)| format!("{name}=\"{}\"", Escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let family = std::mem::take(&mut self.family);
        self.line(format_args!("{family}{suffix}{labels} {value}"));
        self.family = family;
    }

    /// Returns the complete text.
    pub fn finish(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }
}

/// A string with the escapes of the format.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            c => f.write_char(c),
        })
    }
}
