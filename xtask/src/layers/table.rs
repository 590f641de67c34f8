//! The crate table of `ARCHITECTURE.md`.

use std::collections::BTreeMap;

use anyhow::{Context, bail};

use super::PAGE;
use crate::tree::Tree;

/// The highest floor without I/O.
pub(crate) const PURE_FLOOR_MAX: u8 = 2;

/// The prefix of the line that lists the external crates allowed on floors without I/O.
const PURE_EXTERNAL_PREFIX: &str = "Outside crates on floors 0 to 2:";

/// The floor of a crate. Proof crates are above all: they may use every crate, and no shipped crate may use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Floor {
    /// A floor of shipped crates, counted from 0.
    Number(u8),
    /// Tests and tools.
    Proof,
}

/// The allowed dependencies of a crate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AllowedCrates {
    /// All crates.
    Any,
    /// Only these crates.
    Only(Vec<String>),
}

impl AllowedCrates {
    /// Returns the named crates.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        match self {
            AllowedCrates::Any => [].iter(),
            AllowedCrates::Only(names) => names.iter(),
        }
        .map(String::as_str)
    }
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct CrateRow {
    /// The line in the page, from 1.
    pub(crate) line: usize,
    /// The second cell: the floor.
    pub(crate) floor: Floor,
    /// The third cell: the allowed dependencies.
    pub(crate) allowed: AllowedCrates,
}

/// The table, and the list of external crates below it.
pub(crate) struct CrateTable {
    /// The rows by crate.
    pub(crate) rows: BTreeMap<String, CrateRow>,
    /// The external crates allowed on floors without I/O.
    pub(crate) pure_external: Vec<String>,
}

impl CrateTable {
    /// Finds the table by its header `| crate | floor | may depend on |`; further columns are ignored.
    ///
    /// # Errors
    /// Fails if the page, the header or a floor is missing.
    pub(crate) fn read(tree: &Tree) -> anyhow::Result<CrateTable> {
        let page = tree.file(PAGE).with_context(|| format!("{PAGE} is missing"))?;
        let mut table = CrateTable { rows: BTreeMap::new(), pure_external: Vec::new() };
        let mut is_inside = false;
        for (number, line) in page.text.lines().enumerate() {
            let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
            if let Some(list) = line.strip_prefix(PURE_EXTERNAL_PREFIX) {
                table.pure_external = quoted(list);
            }
            match cells.as_slice() {
                ["crate", "floor", "may depend on", ..] => is_inside = true,
                [first, ..] if is_inside && first.starts_with('-') => {}
                [name, floor, allowed, ..] if is_inside => {
                    let row = CrateRow {
                        line: number + 1,
                        floor: floor_of(floor, number + 1)?,
                        allowed: allowed_of(allowed),
                    };
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

    /// Returns the crates on floors without I/O.
    pub(crate) fn pure_crates(&self) -> impl Iterator<Item = &str> {
        let is_pure = |row: &CrateRow| matches!(row.floor, Floor::Number(floor) if floor <= PURE_FLOOR_MAX);
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

fn allowed_of(cell: &str) -> AllowedCrates {
    if cell == "any" { AllowedCrates::Any } else { AllowedCrates::Only(quoted(cell)) }
}

/// Returns the text parts between backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(String::from).collect()
}
