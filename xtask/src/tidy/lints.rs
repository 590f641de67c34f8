//! What panics, what is unfinished, and lints that are switched off.

use crate::finding::Finding;
use crate::rust::{RustFile, words};
use crate::tree::Tree;

const UNFINISHED: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];
const PANICS: [(&str, &str); 2] = [(".unwrap()", "clippy::unwrap_used"), (".expect(", "clippy::expect_used")];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.rust {
        findings.extend(unfinished(file));
        findings.extend(panics(file).map(|(line, what)| {
            let mend = "give back an error; where it cannot happen, #[expect(…, reason = \"the invariant\")]";
            Finding::error(&file.path, line, format!("{what} outside tests"), mend)
        }));
        findings.extend(switched_off(file));
    }
    findings
}

fn unfinished(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in UNFINISHED {
        let word = name.trim_end_matches('!');
        let is_macro =
            |at: &usize| file.mask.code.get(at + word.len()..).is_some_and(|rest| rest.starts_with('!'));
        for at in words(&file.mask.code, word).filter(is_macro) {
            findings.push(Finding::error(&file.path, file.line(at), name, "finish it or take it out"));
        }
    }
    findings
}

/// Each `unwrap` and `expect` outside tests that no `#[expect]` with a reason covers: line and what.
pub(crate) fn panics(file: &RustFile) -> impl Iterator<Item = (usize, &'static str)> {
    PANICS.into_iter().flat_map(move |(call, lint)| {
        let found = file.mask.code.match_indices(call).map(|(at, _)| at);
        let counts = move |at: &usize| {
            !file.is_test(*at) && !file.is_covered(*at, |attribute| attribute.expects(&[lint]))
        };
        found.filter(counts).map(move |at| (file.line(at), call))
    })
}

/// Outside tests a lint is relaxed by `expect` with a reason: it says why, and it says when it is stale.
fn switched_off(file: &RustFile) -> Vec<Finding> {
    let relaxed = file.attributes.iter().filter(|attribute| matches!(attribute.name(), "allow" | "expect"));
    let bad = relaxed.filter(|attribute| {
        !file.is_test(attribute.span.start) && (attribute.name() == "allow" || !attribute.has_reason())
    });
    bad.map(|attribute| {
        let line = file.line(attribute.span.start);
        let mend = "write #[expect(…, reason = \"…\")], or relax it in the root with its reason";
        Finding::error(&file.path, line, format!("#[{}] gives no reason", attribute.content), mend)
    })
    .collect()
}
