//! The crate table as `ARCHITECTURE.md` gives it.

use std::collections::BTreeMap;

use anyhow::{Context, bail};

use super::PAGE;
use crate::tree::Tree;

/// Up to this floor nothing does I/O.
pub(crate) const PURE_FLOOR_MAX: u8 = 2;

/// Before the list of crates from outside that the floors without I/O may use.
const PURE_OUTSIDE_INTRO: &str = "Outside crates on floors 0 to 2:";

/// Where a crate stands. Proof stands above all: it sees everything, and nothing that ships sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Floor {
    /// A floor of what ships, counted from 0.
    Number(u8),
    /// Tests and tools.
    Proof,
}

/// What a crate may depend on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum May {
    /// All crates.
    Any,
    /// These.
    Only(Vec<String>),
}

impl May {
    /// The crates named.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        match self {
            May::Any => [].iter(),
            May::Only(names) => names.iter(),
        }
        .map(String::as_str)
    }
}

/// One row.
#[derive(Debug)]
pub(crate) struct Row {
    /// Its line in the page, from 1.
    pub(crate) line: usize,
    /// The second cell.
    pub(crate) floor: Floor,
    /// The third cell.
    pub(crate) may: May,
}

/// The table, and the list of outside crates beneath it.
pub(crate) struct Table {
    /// By crate.
    pub(crate) rows: BTreeMap<String, Row>,
    /// What the floors without I/O may take from outside.
    pub(crate) pure_outside: Vec<String>,
}

impl Table {
    /// Finds the table by its header `| crate | floor | may depend on |`; further columns are for the reader.
    ///
    /// # Errors
    /// The page, the header or a floor is not there.
    pub(crate) fn read(tree: &Tree) -> anyhow::Result<Table> {
        let page = tree.file(PAGE).with_context(|| format!("{PAGE} is missing"))?;
        let mut table = Table { rows: BTreeMap::new(), pure_outside: Vec::new() };
        let mut is_inside = false;
        for (number, line) in page.text.lines().enumerate() {
            let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
            if let Some(list) = line.strip_prefix(PURE_OUTSIDE_INTRO) {
                table.pure_outside = quoted(list);
            }
            match cells.as_slice() {
                ["crate", "floor", "may depend on", ..] => is_inside = true,
                [first, ..] if is_inside && first.starts_with('-') => {}
                [name, floor, may, ..] if is_inside => {
                    let row = Row { line: number + 1, floor: floor_of(floor, number + 1)?, may: may_of(may) };
                    table.rows.insert(name.trim_matches('`').into(), row);
                }
                _ => is_inside = false,
            }
        }
        if table.rows.is_empty() {
            bail!("{PAGE} has no table that begins `| crate | floor | may depend on |`");
        }
        Ok(table)
    }

    /// The crates that do no I/O.
    pub(crate) fn pure_crates(&self) -> impl Iterator<Item = &str> {
        let is_pure = |row: &Row| matches!(row.floor, Floor::Number(floor) if floor <= PURE_FLOOR_MAX);
        self.rows.iter().filter(move |(_, row)| is_pure(row)).map(|(name, _)| name.as_str())
    }
}

fn floor_of(cell: &str, line: usize) -> anyhow::Result<Floor> {
    if cell == "proof" {
        return Ok(Floor::Proof);
    }
    let number = cell.parse().with_context(|| format!("{PAGE}:{line}: floor {cell:?} is no number"))?;
    Ok(Floor::Number(number))
}

fn may_of(cell: &str) -> May {
    if cell == "any" { May::Any } else { May::Only(quoted(cell)) }
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(String::from).collect()
}
