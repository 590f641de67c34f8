//! Sentences of doc comments that begin with a relative clause where a noun belongs.

use crate::finding::Finding;
use crate::rust::RustFile;
use crate::tree::Tree;

use super::prose;

const BANNED: [&str; 4] = ["Who", "Whoever", "What", "Whatever"];
/// A whole sentence that names nothing.
const EMPTY: &str = "It.";
const MEND: &str = "begin with the noun: the caller, the request, the result";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust.iter().flat_map(of_file).collect()
}

fn of_file(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut ends_sentence = true;
    for (number, line) in file.mask.comments.lines().enumerate() {
        let Some(text) = doc_text(line) else {
            ends_sentence = true;
            continue;
        };
        if text.is_empty() {
            ends_sentence = true;
            continue;
        }
        let (text, begins_item) = prose::without_bullet(text);
        let mut begins = ends_sentence || begins_item;
        for sentence in prose::sentences(text) {
            let first = sentence.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            if begins && (BANNED.contains(&first) || sentence == EMPTY) {
                let message = format!("a sentence begins with {first:?}");
                findings.push(Finding::error(&file.path, number + 1, message, MEND));
            }
            begins = true;
        }
        ends_sentence = text.ends_with(['.', ':', '?', '!']);
    }
    findings
}

/// The text of a line that is a doc comment.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
}
