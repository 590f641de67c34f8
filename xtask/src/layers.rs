//! `cargo xtask layers`: compares the crate table of `ARCHITECTURE.md` with the manifests.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::layers::manifest::{DependencyKind, Manifest};
use crate::layers::table::{AllowedCrates, CrateRow, CrateTable, Floor, PURE_FLOOR_MAX};
use crate::tree::Tree;

mod manifest;
pub(crate) mod table;
#[cfg(test)]
mod tests;

/// The page with the table.
pub(crate) const PAGE: &str = "ARCHITECTURE.md";

/// Compares the table with the manifests.
///
/// # Errors
/// Fails if the page or its table is missing, or if a manifest is not valid TOML.
pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let table = CrateTable::read(tree)?;
    let manifests = Manifest::read_all(tree)?;
    let mut findings = directions(&table);
    findings.extend(cycles(&table));
    findings.extend(missing(&table, &manifests));
    for manifest in &manifests {
        if let Some(row) = table.rows.get(&manifest.package) {
            findings.extend(edges(&table, row, manifest));
        }
    }
    Ok(findings)
}

/// Checks the table itself: dependencies point to existing rows, on the same floor or below.
fn directions(table: &CrateTable) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, row) in &table.rows {
        for target in row.allowed.names() {
            let Some(below) = table.rows.get(target) else {
                let message = format!("{name} may depend on {target}, which has no row");
                findings.push(Finding::error(PAGE, row.line, message, "correct the name or add its row"));
                continue;
            };
            if below.floor > row.floor {
                let message = format!("the dependency of {name} on {target} points up");
                findings.push(Finding::error(
                    PAGE,
                    row.line,
                    message,
                    "reverse it, or move the shared code down",
                ));
            }
        }
    }
    findings
}

/// Checks that the dependencies on one floor have no cycle.
fn cycles(table: &CrateTable) -> Vec<Finding> {
    let closes =
        |&(name, row): &(&String, &CrateRow)| row.allowed.names().any(|next| reaches(table, next, name));
    let circular = table.rows.iter().filter(closes);
    let finding = |(name, row): (&String, &CrateRow)| {
        Finding::error(
            PAGE,
            row.line,
            format!("{name} depends on itself"),
            "remove one dependency of the cycle",
        )
    };
    circular.map(finding).collect()
}

fn reaches(table: &CrateTable, from: &str, goal: &str) -> bool {
    let mut seen = Vec::new();
    let mut pending = vec![from];
    while let Some(name) = pending.pop() {
        if name == goal {
            return true;
        }
        if !seen.contains(&name) {
            seen.push(name);
            pending.extend(table.rows.get(name).into_iter().flat_map(|row| row.allowed.names()));
        }
    }
    false
}

/// Checks that each crate has a row and each row a crate.
fn missing(table: &CrateTable, manifests: &[Manifest]) -> Vec<Finding> {
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
        findings.push(Finding::error(&manifest.path, 1, message, "give folder and crate the same name"));
    }
    findings
}

/// Checks the dependencies of one manifest against its row.
fn edges(table: &CrateTable, row: &CrateRow, manifest: &Manifest) -> Vec<Finding> {
    let mut findings = Vec::new();
    for dependency in &manifest.dependencies {
        let target = dependency.package.as_str();
        let violation = match (table.rows.get(target), dependency.kind) {
            (Some(below), DependencyKind::Build) => internal(row, target, below),
            (Some(below), DependencyKind::Dev) => internal_for_tests(row, target, below),
            (None, DependencyKind::Build) => external(table, row, target),
            (None, DependencyKind::Dev) => None,
        };
        if let Some((why, fix)) = violation {
            let line = manifest.line_of(&dependency.key);
            findings.push(Finding::error(
                &manifest.path,
                line,
                format!("{} -> {target}: {why}", manifest.package),
                fix,
            ));
        }
    }
    findings
}

type Violation = Option<(String, String)>;

fn internal(row: &CrateRow, target: &str, below: &CrateRow) -> Violation {
    if below.floor == Floor::Proof && row.floor != Floor::Proof {
        let fix = "shipped crates never depend on proof crates; make it a dev-dependency";
        return Some((format!("{target} is never shipped"), fix.into()));
    }
    let is_allowed = match &row.allowed {
        AllowedCrates::Any => true,
        AllowedCrates::Only(names) => names.iter().any(|name| name == target),
    };
    (!is_allowed).then(|| {
        let fix = format!("remove it, or, if the design allows it, add it to the table of {PAGE}");
        ("the table does not allow this dependency".into(), fix)
    })
}

fn internal_for_tests(row: &CrateRow, target: &str, below: &CrateRow) -> Violation {
    // A test may use a crate of the same floor: the other side of a protocol.
    let points_up = below.floor != Floor::Proof && below.floor > row.floor;
    if !points_up { None } else { internal(row, target, below) }
}

fn external(table: &CrateTable, row: &CrateRow, target: &str) -> Violation {
    let Floor::Number(floor) = row.floor else {
        return None;
    };
    if floor > PURE_FLOOR_MAX || table.pure_external.iter().any(|name| name == target) {
        return None;
    }
    let fix = format!("remove it, or list it in {PAGE} among the outside crates of floors 0 to 2");
    Some((format!("floor {floor} does no I/O and allows few external crates"), fix))
}
