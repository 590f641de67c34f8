//! `cargo xtask tidy`: the rules of style that a machine can check.

use crate::finding::Finding;
use crate::tree::Tree;

mod documents;
mod ids;
mod lints;
mod names;
mod purity;
mod ratchet;
mod sizes;
mod suites;
#[cfg(test)]
mod tests;
mod unsafety;
mod words;

pub(crate) use lints::panics;
pub(crate) use sizes::{FUNCTION_LINES_MAX, lines_of};

/// Runs every rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let rules = [sizes::check, names::check, lints::check, suites::check, unsafety::check, purity::check];
    let documents = [documents::check, ids::check, words::check, ratchet::check];
    rules.iter().chain(&documents).flat_map(|rule: &fn(&Tree) -> Vec<Finding>| rule(tree)).collect()
}
