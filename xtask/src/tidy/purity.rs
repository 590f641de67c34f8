//! I/O, clocks and randomness on the pure floors: the rules that clippy's `disallowed-*` cannot express in one word.

use crate::finding::Finding;
use crate::layers::table::CrateTable;
use crate::rust::{RustFile, words};
use crate::tree::Tree;

/// Forbidden names, with their alternatives.
const IMPURE: [(&str, &str); 12] = [
    ("std::fs", "let an adapter do it"),
    ("std::net", "let an adapter do it"),
    ("std::os", "let an adapter do it"),
    ("std::env", "take it as an argument"),
    ("std::process", "let an adapter do it"),
    ("std::thread", "write a state machine; the driver has the threads"),
    ("std::sync::mpsc", "write a state machine; the driver has the threads"),
    ("Instant", "take `now: Time` as an argument"),
    ("SystemTime", "take the time as an argument"),
    ("HashMap", "use BTreeMap: its order is the same in each run"),
    ("HashSet", "use BTreeSet: its order is the same in each run"),
    ("async", "write a state machine; nothing blocks here"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Ok(table) = CrateTable::read(tree) else {
        return Vec::new();
    };
    let folders: Vec<String> = table.pure_crates().map(|name| format!("crates/{name}/")).collect();
    let is_pure = |file: &&RustFile| folders.iter().any(|folder| file.path.starts_with(folder.as_str()));
    tree.rust.iter().filter(is_pure).flat_map(in_file).collect()
}

fn in_file(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, fix) in IMPURE {
        for at in words(&file.mask.code, name).filter(|&at| !file.is_test(at)) {
            let message = format!("{name} on a floor without I/O, clock and randomness");
            findings.push(Finding::error(&file.path, file.line(at), message, fix));
        }
    }
    findings
}
