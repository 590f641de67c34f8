//! Limits on the length of certain pages and on the size of files.

use crate::finding::Finding;
use crate::tree::Tree;

const LINES_MAX: [(&str, usize); 2] = [("README.md", 150), ("ARCHITECTURE.md", 300)];
const MAKEFILE_LINES_MAX: usize = 40;
const FILE_BYTES_MAX: u64 = 1024 * 1024;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, lines_max) in LINES_MAX.into_iter().chain([("Makefile", MAKEFILE_LINES_MAX)]) {
        let lines = tree.file(path).map_or(0, |file| file.text.lines().count());
        if lines > lines_max {
            let message = format!("{lines} lines of at most {lines_max}");
            findings.push(Finding::error(path, lines_max + 1, message, "move detail to docs/ or xtask"));
        }
    }
    for file in tree.files.iter().filter(|file| file.bytes > FILE_BYTES_MAX) {
        let message = format!("{} bytes; a file has at most {FILE_BYTES_MAX}", file.bytes);
        findings.push(Finding::error(&file.path, 1, message, "make it in the test that needs it"));
    }
    findings
}
