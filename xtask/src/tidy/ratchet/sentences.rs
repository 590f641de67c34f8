//! Sentences of documents that are too long to be read once.

use crate::finding::Finding;
use crate::tree::Tree;

use super::prose;

const WORDS_MAX: usize = 30;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in tree.files.iter().filter(|file| prose::is_page(&file.path)) {
        for (line, paragraph) in prose::paragraphs(&page.text) {
            for sentence in prose::sentences(&paragraph) {
                let count =
                    sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
                if count > WORDS_MAX {
                    let begin: String = sentence.chars().take(50).collect();
                    let message = format!("a sentence of {count} words: {begin}…");
                    findings.push(Finding::error(&page.path, line, message, "make it two"));
                }
            }
        }
    }
    findings
}
