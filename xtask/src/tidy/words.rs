//! Text that is specific to one machine.

use crate::finding::Finding;
use crate::rust::is_word;
use crate::tree::Tree;

/// Absolute paths of developers' machines, each in two parts so that this file does not contain them.
const MACHINE_PATHS: [(&str, &str); 2] = [("/work", "/"), ("/root/.ca", "rgo")];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let paths = MACHINE_PATHS.map(|(head, tail)| format!("{head}{tail}"));
    let mut findings = Vec::new();
    for file in &tree.files {
        for (number, line) in file.text.lines().enumerate() {
            for path in paths.iter().filter(|path| has_absolute(line, path)) {
                let message = format!("path {path} exists on one machine only");
                findings.push(Finding::error(
                    &file.path,
                    number + 1,
                    message,
                    "use a path relative to the project",
                ));
            }
        }
    }
    findings
}

/// Returns whether `path` occurs in `line` at the beginning of a path.
fn has_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        !before.is_some_and(|c| is_word(c) || matches!(c, '.' | '}' | ')' | '/' | '-'))
    })
}
