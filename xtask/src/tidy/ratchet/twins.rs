//! Public types that share a name with another one, so that a reader cannot search for either.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::rust::{is_word, words};
use crate::tree::Tree;

const KEYWORDS: [&str; 3] = ["struct", "enum", "trait"];

/// Each definition of a name after its first one.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for file in &tree.rust {
        let code = &file.mask.code;
        for keyword in KEYWORDS {
            for at in words(code, keyword).filter(|&at| !file.is_test(at) && is_public(code, at)) {
                let rest = code.get(at + keyword.len()..).unwrap_or_default().trim_start();
                let name = rest.get(..rest.find(|c| !is_word(c)).unwrap_or(rest.len())).unwrap_or_default();
                // A macro has a parameter there.
                if name.is_empty() {
                    continue;
                }
                if let Some(other) = first.insert(name, &file.path) {
                    let message = format!("{name} is also the name of a type in {other}");
                    let mend = "say in the name where the type belongs";
                    findings.push(Finding::error(&file.path, file.line(at), message, mend));
                }
            }
        }
    }
    findings
}

/// Whether `pub` alone stands before the keyword: a type that other crates can see.
fn is_public(code: &str, at: usize) -> bool {
    code.get(..at).is_some_and(|before| {
        let before = before.trim_end();
        before.strip_suffix("pub").is_some_and(|rest| !rest.chars().next_back().is_some_and(is_word))
    })
}
