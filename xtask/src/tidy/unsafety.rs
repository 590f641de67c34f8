//! `unsafe` only in files with system calls, each with the reason why it is sound.

use crate::finding::Finding;
use crate::rust::{RustFile, words};
use crate::tree::Tree;

/// The only file of a crate that may contain `unsafe`.
const FILE_NAME: &str = "sys";
/// The number of lines above `unsafe` that are searched for its `SAFETY:` comment.
const SAFETY_LINES_ABOVE: usize = 6;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust.iter().flat_map(in_file).collect()
}

fn in_file(file: &RustFile) -> Vec<Finding> {
    let comments: Vec<&str> = file.mask.comments.lines().collect();
    let finding = |at: usize| {
        let line = file.line(at);
        if file.name() != FILE_NAME {
            let message = "unsafe outside sys.rs";
            return Some(Finding::error(
                &file.path,
                line,
                message,
                "use a safe wrapper, or move it to sys.rs",
            ));
        }
        let above = comments.get(line.saturating_sub(SAFETY_LINES_ABOVE + 1)..line).unwrap_or_default();
        let is_explained =
            above.iter().any(|comment| comment.contains("SAFETY:") || comment.contains("# Safety"));
        (!is_explained).then(|| {
            let fix = "write `// SAFETY: …` above it: which rule it could break, and why it does not";
            Finding::error(&file.path, line, "unsafe without a SAFETY: comment", fix)
        })
    };
    // A declaration (`unsafe fn`) breaks no rule by itself.
    let declares =
        |at: usize| file.mask.code.get(at + 6..).is_some_and(|rest| rest.trim_start().starts_with("fn "));
    let is_sys = file.name() == FILE_NAME;
    words(&file.mask.code, "unsafe").filter(|&at| !(is_sys && declares(at))).filter_map(finding).collect()
}
