//! `cargo xtask layers`: the crate table of `ARCHITECTURE.md` against what the manifests say.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::layers::manifest::{Manifest, Section};
use crate::layers::table::{Floor, May, PURE_FLOOR_MAX, Row, Table};
use crate::tree::Tree;

mod manifest;
pub(crate) mod table;
#[cfg(test)]
mod tests;

/// The page that holds the table.
pub(crate) const PAGE: &str = "ARCHITECTURE.md";

/// Compares table and manifests.
///
/// # Errors
/// The page or its table is missing, or a manifest is not TOML.
pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let table = Table::read(tree)?;
    let manifests = Manifest::read_all(tree)?;
    let mut findings = arrows(&table);
    findings.extend(circles(&table));
    findings.extend(missing(&table, &manifests));
    for manifest in &manifests {
        if let Some(row) = table.rows.get(&manifest.package) {
            findings.extend(edges(&table, row, manifest));
        }
    }
    Ok(findings)
}

/// The table itself: arrows point down or stay on their floor, and to rows that exist.
fn arrows(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, row) in &table.rows {
        for target in row.may.names() {
            let Some(below) = table.rows.get(target) else {
                let message = format!("{name} may depend on {target}, which has no row");
                findings.push(Finding::error(PAGE, row.line, message, "correct the name or add its row"));
                continue;
            };
            if below.floor > row.floor {
                let message = format!("the arrow from {name} to {target} points up");
                findings.push(Finding::error(
                    PAGE,
                    row.line,
                    message,
                    "turn it, or move what is shared down",
                ));
            }
        }
    }
    findings
}

/// Arrows on one floor must not close a circle.
fn circles(table: &Table) -> Vec<Finding> {
    let closes = |&(name, row): &(&String, &Row)| row.may.names().any(|next| reaches(table, next, name));
    let circular = table.rows.iter().filter(closes);
    let finding = |(name, row): (&String, &Row)| {
        Finding::error(
            PAGE,
            row.line,
            format!("{name} depends on itself"),
            "take one arrow of the circle out",
        )
    };
    circular.map(finding).collect()
}

fn reaches(table: &Table, from: &str, goal: &str) -> bool {
    let mut seen = Vec::new();
    let mut waiting = vec![from];
    while let Some(name) = waiting.pop() {
        if name == goal {
            return true;
        }
        if !seen.contains(&name) {
            seen.push(name);
            waiting.extend(table.rows.get(name).into_iter().flat_map(|row| row.may.names()));
        }
    }
    false
}

/// Each crate has a row and each row a crate.
fn missing(table: &Table, manifests: &[Manifest]) -> Vec<Finding> {
    let known: BTreeMap<&str, &Manifest> =
        manifests.iter().map(|manifest| (manifest.package.as_str(), manifest)).collect();
    let mut findings = Vec::new();
    for manifest in manifests.iter().filter(|manifest| !table.rows.contains_key(&manifest.package)) {
        let message = format!("crate {} has no row in the table of {PAGE}", manifest.package);
        findings.push(Finding::error(&manifest.path, 1, message, "add the row: crate, floor, may depend on"));
    }
    for (name, row) in table.rows.iter().filter(|(name, _)| !known.contains_key(name.as_str())) {
        let message = format!("{name} has a row but no crate");
        findings.push(Finding::error(PAGE, row.line, message, "remove the row or add the crate"));
    }
    for manifest in manifests.iter().filter(|manifest| manifest.folder() != manifest.package) {
        let message = format!("crate {} lies in folder {}", manifest.package, manifest.folder());
        findings.push(Finding::error(&manifest.path, 1, message, "folder and crate have one name"));
    }
    findings
}

/// What one manifest depends on, against its row.
fn edges(table: &Table, row: &Row, manifest: &Manifest) -> Vec<Finding> {
    let mut findings = Vec::new();
    for dependency in &manifest.dependencies {
        let target = dependency.package.as_str();
        let refusal = match (table.rows.get(target), dependency.section) {
            (Some(below), Section::Build) => inside(row, target, below),
            (Some(below), Section::Dev) => inside_for_tests(row, target, below),
            (None, Section::Build) => outside(table, row, target),
            (None, Section::Dev) => None,
        };
        if let Some((why, mend)) = refusal {
            let line = manifest.line_of(&dependency.key);
            findings.push(Finding::error(
                &manifest.path,
                line,
                format!("{} -> {target}: {why}", manifest.package),
                mend,
            ));
        }
    }
    findings
}

type Refusal = Option<(String, String)>;

fn inside(row: &Row, target: &str, below: &Row) -> Refusal {
    if below.floor == Floor::Proof && row.floor != Floor::Proof {
        let mend = "what ships never depends on proof; make it a dev-dependency";
        return Some((format!("{target} is never shipped"), mend.into()));
    }
    let is_allowed = match &row.may {
        May::Any => true,
        May::Only(names) => names.iter().any(|name| name == target),
    };
    (!is_allowed).then(|| {
        let mend = format!("do without it, or, if the design says so, allow it in the table of {PAGE}");
        ("the table does not allow this dependency".into(), mend)
    })
}

fn inside_for_tests(row: &Row, target: &str, below: &Row) -> Refusal {
    // A core may be proved together with one beside it: the two sides of a protocol.
    let points_up = below.floor != Floor::Proof && below.floor > row.floor;
    if !points_up { None } else { inside(row, target, below) }
}

fn outside(table: &Table, row: &Row, target: &str) -> Refusal {
    let Floor::Number(floor) = row.floor else {
        return None;
    };
    if floor > PURE_FLOOR_MAX || table.pure_outside.iter().any(|name| name == target) {
        return None;
    }
    let mend = format!("do without it, or name it in {PAGE} among the outside crates of floors 0 to 2");
    Some((format!("floor {floor} does no I/O and takes few crates from outside"), mend))
}
