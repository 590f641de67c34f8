//! Rules that the tree does not satisfy everywhere yet: each has a limit, and the limit only falls.
//!
//! `xtask/ratchets.toml` has a table for each rule: `at_most`, the number of places that are left, and a `reason` where that number stays
//! above 0. More places than that fail the check; so do fewer, until the limit is lowered.

use serde::Deserialize;

use crate::finding::Finding;
use crate::tree::Tree;

mod columns;
mod names;
mod openings;
mod prose;
mod rooms;
mod sentences;
mod structs;
#[cfg(test)]
mod tests;
mod twins;

const LIMITS: &str = "xtask/ratchets.toml";
/// Findings printed for each rule that is exceeded.
const SHOWN_MAX: usize = 40;

/// The limit of one rule.
#[derive(Clone, Debug, Default, Deserialize)]
struct Limit {
    at_most: usize,
    reason: Option<String>,
}

/// A rule: its name in the file of limits, and what it finds.
type Rule = (&'static str, fn(&Tree) -> Vec<Finding>);

const RULES: [Rule; 9] = [
    ("banned-names", names::check),
    ("banned-openings", openings::check),
    ("long-sentences", sentences::check),
    ("wide-lines", columns::check),
    ("wide-structs", structs::check),
    ("repeated-types", twins::check),
    ("client-arrows-up", rooms::upward),
    ("client-circle", rooms::circle),
    ("client-whole", rooms::whole),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    RULES.iter().flat_map(|(name, rule)| held(tree, name, rule(tree))).collect()
}

/// The findings of a rule, as far as its limit does not cover them.
fn held(tree: &Tree, name: &str, mut found: Vec<Finding>) -> Vec<Finding> {
    let limit = match limit(tree, name) {
        Ok(limit) => limit,
        Err(message) => return vec![Finding::error(LIMITS, 1, message, "correct the file")],
    };
    if limit.at_most > 0 && limit.reason.as_ref().is_none_or(|reason| reason.trim().is_empty()) {
        let message = format!("{name}: a limit above 0 has no reason");
        return vec![Finding::error(LIMITS, 1, message, "add reason = \"…\", or correct the places")];
    }
    let (count, limit) = (found.len(), limit.at_most);
    if count < limit {
        let message = format!("{name}: {count} places are left, and the limit is {limit}");
        return vec![Finding::error(LIMITS, 1, message, format!("set at_most = {count}"))];
    }
    if count > limit {
        found.sort();
        found.truncate(SHOWN_MAX);
        let message = format!("{name}: {count} places, {limit} are allowed; {} are listed", found.len());
        found.push(Finding::error(LIMITS, 1, message, "correct those that the change added"));
        return found;
    }
    Vec::new()
}

/// A rule without a limit allows nothing.
fn limit(tree: &Tree, name: &str) -> Result<Limit, String> {
    let Some(file) = tree.file(LIMITS) else { return Ok(Limit::default()) };
    let mut limits: std::collections::BTreeMap<String, Limit> =
        toml::from_str(&file.text).map_err(|error| error.to_string())?;
    Ok(limits.remove(name).unwrap_or_default())
}
