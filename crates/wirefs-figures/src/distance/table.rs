//! Reads a table of `docs/measurements/workloads.md`.

/// One table of the bench.
#[derive(Clone, Debug)]
pub(super) struct Table<'a> {
    columns: Vec<&'a str>,
    rows: Vec<Vec<&'a str>>,
}

/// One row of it.
#[derive(Clone, Debug)]
pub(super) struct Row<'a> {
    columns: &'a [&'a str],
    cells: &'a [&'a str],
}

/// A measured duration, with its text in the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Duration<'a> {
    /// The work ended after so many seconds.
    Took { seconds: f64, text: &'a str },
    /// The work was stopped after so many seconds.
    StoppedAfter { seconds: f64, text: &'a str },
}

/// Returns the first table below the heading `### TITLE`.
pub(super) fn at<'a>(text: &'a str, title: &str) -> Option<Table<'a>> {
    let mut lines = text.lines().skip_while(|line| line.strip_prefix("### ") != Some(title));
    let columns = cells(lines.find(|line| line.starts_with('|'))?);
    let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect();
    Some(Table { columns, rows })
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

impl<'a> Table<'a> {
    /// Returns the row of this work.
    pub(super) fn row(&'a self, work: &str) -> Option<Row<'a>> {
        let cells = self.rows.iter().find(|cells| cells.first() == Some(&work))?;
        Some(Row { columns: &self.columns, cells })
    }
}

impl<'a> Row<'a> {
    /// Returns the duration in the column of this peer. `None`: there is no such column, or nothing was measured.
    pub(super) fn duration(&self, peer: &str) -> Option<Duration<'a>> {
        let nth = self.columns.iter().position(|column| *column == peer)?;
        let cell = self.cells.get(nth)?;
        let first = cell.split('·').next()?.trim();
        match first.strip_prefix("> ").and_then(|rest| rest.strip_suffix(" (stopped)")) {
            Some(text) => Some(Duration::StoppedAfter { seconds: seconds(text)?, text }),
            None => Some(Duration::Took { seconds: seconds(first)?, text: first }),
        }
    }
}

impl Duration<'_> {
    pub(super) fn seconds(&self) -> f64 {
        match self {
            Duration::Took { seconds, .. } | Duration::StoppedAfter { seconds, .. } => *seconds,
        }
    }
}

/// Parses `24.1 ms` or `17.7 s`.
fn seconds(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let number: f64 = number.parse().ok()?;
    match unit {
        "ms" => Some(number / 1_000.0),
        "s" => Some(number),
        _ => None,
    }
}
