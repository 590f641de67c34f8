//! Words of a former private vocabulary in the names of items, and of files.

use crate::finding::Finding;
use crate::rust::{RustFile, is_word, words};
use crate::tree::Tree;

/// Parts of names for which the glossary has a word of the field.
const BANNED: [&str; 52] = [
    "pen",
    "letter",
    "letters",
    "desk",
    "courier",
    "errand",
    "errands",
    "chorus",
    "pulse",
    "zeal",
    "glance",
    "tempo",
    "tomb",
    "tombs",
    "bury",
    "buried",
    "dying",
    "doubt",
    "doubts",
    "doubted",
    "shelf",
    "shelve",
    "shelved",
    "unshelve",
    "foresee",
    "foresees",
    "foreseen",
    "told",
    "heard",
    "said",
    "loner",
    "solitude",
    "who",
    "whoever",
    "lap",
    "laps",
    "ballast",
    "outlet",
    "outbox",
    "rescue",
    "relief",
    "recollect",
    "neighbour",
    "neighbours",
    "displaced",
    "displace",
    "displacing",
    "gathered",
    "unopened",
    "lent",
    "way",
    "ways",
];
/// Keywords before the name of an item.
const KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "mod", "const", "static"];
const MEND: &str = "use the word of docs/GLOSSARY.md, or the field's";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust.iter().filter(|file| !file.path.starts_with("xtask/")).flat_map(of_file).collect()
}

fn of_file(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(word) = banned(file.name()) {
        findings.push(Finding::error(&file.path, 1, format!("file name with {word:?}"), MEND));
    }
    for (at, name) in defined(&file.mask.code) {
        if let Some(word) = banned(name) {
            let message = format!("{name} has {word:?} in it");
            findings.push(Finding::error(&file.path, file.line(at), message, MEND));
        }
    }
    findings
}

/// The names of items that a text defines: functions, types, modules with a body, constants.
fn defined(code: &str) -> impl Iterator<Item = (usize, &str)> {
    KEYWORDS.into_iter().flat_map(move |keyword| {
        words(code, keyword).filter_map(move |at| {
            let rest = code.get(at + keyword.len()..)?.trim_start();
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let name = rest.get(..length)?;
            (!name.is_empty()).then_some((at, name))
        })
    })
}

/// The first part of a name that is banned: parts end at `_` and before capitals.
fn banned(name: &str) -> Option<&'static str> {
    let mut parts = vec![String::new()];
    let mut was_upper = true;
    for c in name.chars() {
        let begins = c == '_' || c.is_uppercase() && !was_upper;
        if begins {
            parts.push(String::new());
        }
        if c != '_'
            && let Some(last) = parts.last_mut()
        {
            last.extend(c.to_lowercase());
        }
        was_upper = c.is_uppercase() || c == '_';
    }
    BANNED.into_iter().find(|word| parts.iter().any(|part| part == word))
}
