//! Panics, unfinished code, and disabled lints.

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
            let fix = "return an error; if it cannot happen, #[expect(…, reason = \"the invariant\")]";
            Finding::error(&file.path, line, format!("{what} outside tests"), fix)
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
            findings.push(Finding::error(&file.path, file.line(at), name, "finish or remove it"));
        }
    }
    findings
}

/// Returns the line and the call of each `unwrap` and `expect` outside tests that no `#[expect]` with a reason covers.
pub(crate) fn panics(file: &RustFile) -> impl Iterator<Item = (usize, &'static str)> {
    PANICS.into_iter().flat_map(move |(call, lint)| {
        let found = file.mask.code.match_indices(call).map(|(at, _)| at);
        let counts = move |at: &usize| {
            !file.is_test(*at) && !file.is_covered(*at, |attribute| attribute.expects(&[lint]))
        };
        found.filter(counts).map(move |at| (file.line(at), call))
    })
}

/// Outside tests, a lint may be disabled only by `expect` with a reason, which also reports when it is no longer
/// needed.
fn switched_off(file: &RustFile) -> Vec<Finding> {
    let relaxed = file.attributes.iter().filter(|attribute| matches!(attribute.name(), "allow" | "expect"));
    let bad = relaxed.filter(|attribute| {
        !file.is_test(attribute.span.start) && (attribute.name() == "allow" || !attribute.has_reason())
    });
    bad.map(|attribute| {
        let line = file.line(attribute.span.start);
        let fix = "write #[expect(…, reason = \"…\")], or relax it in the root with its reason";
        Finding::error(&file.path, line, format!("#[{}] gives no reason", attribute.content), fix)
    })
    .collect()
}
