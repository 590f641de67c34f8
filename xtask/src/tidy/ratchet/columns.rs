//! Lines of Markdown that are wider than a reader's window. A table row cannot be broken, and a code block shows what it shows.

use crate::finding::Finding;
use crate::tree::Tree;

use super::prose;

const COLUMNS_MAX: usize = 120;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in tree.files.iter().filter(|file| prose::is_page(&file.path)) {
        let mut is_code = false;
        for (number, line) in page.text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let columns = line.chars().count();
            if columns > COLUMNS_MAX && !is_code && !line.trim_start().starts_with('|') {
                let message = format!("{columns} columns of at most {COLUMNS_MAX}");
                findings.push(Finding::error(&page.path, number + 1, message, "break the line"));
            }
        }
    }
    findings
}
