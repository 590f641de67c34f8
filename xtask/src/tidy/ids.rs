//! Each guarantee `S-nn` of the semantics page is cited by a test, and each cited guarantee exists.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::rust::is_word;
use crate::tree::Tree;

const PAGE: &str = "docs/SEMANTICS.md";
const PREFIX: &str = "S-";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let page = tree.file(PAGE).map_or("", |file| file.text.as_str());
    let mut stated: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, id) in ids(page) {
        stated.entry(id).or_insert_with(|| line(page, at));
    }
    let mut findings = Vec::new();
    let mut cited_by_tests = Vec::new();
    // The tests of this crate cite guarantees that do not exist.
    for file in tree.rust.iter().filter(|file| !file.path.starts_with("xtask/")) {
        for (at, id) in ids(&file.text) {
            if file.is_test(at) {
                cited_by_tests.push(id);
            }
            if !stated.contains_key(&id) {
                let message = format!("{PREFIX}{id} is not in {PAGE}");
                findings.push(Finding::error(
                    &file.path,
                    file.line(at),
                    message,
                    "state it there, or correct the number",
                ));
            }
        }
    }
    for (id, line) in stated.into_iter().filter(|(id, _)| !cited_by_tests.contains(id)) {
        let message = format!("{PREFIX}{id} is cited by no test");
        findings.push(Finding::error(
            PAGE,
            line,
            message,
            "write the test that proves it and name the id there",
        ));
    }
    findings
}

fn ids(text: &str) -> impl Iterator<Item = (usize, u32)> {
    text.match_indices(PREFIX).filter_map(|(at, _)| {
        let before = text.get(..at)?.chars().next_back();
        let digits: String =
            text.get(at + PREFIX.len()..)?.chars().take_while(char::is_ascii_digit).collect();
        let is_whole = !before.is_some_and(|c| is_word(c) || c == '-');
        is_whole.then(|| digits.parse().ok()).flatten().map(|id| (at, id))
    })
}

fn line(text: &str, at: usize) -> usize {
    text.get(..at).map_or(1, |before| before.matches('\n').count() + 1)
}
