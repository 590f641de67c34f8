//! The floors without I/O: what clippy's `disallowed-*` cannot say with one word.

use crate::finding::Finding;
use crate::layers::table::Table;
use crate::rust::{RustFile, words};
use crate::tree::Tree;

/// Names that bring the world in, with what to do instead.
const IMPURE: [(&str, &str); 12] = [
    ("std::fs", "let an adapter do it"),
    ("std::net", "let an adapter do it"),
    ("std::os", "let an adapter do it"),
    ("std::env", "take it as an argument"),
    ("std::process", "let an adapter do it"),
    ("std::thread", "be a machine; the driver has the threads"),
    ("std::sync::mpsc", "be a machine; the driver has the threads"),
    ("Instant", "take `now: Time` as an argument"),
    ("SystemTime", "take the time as an argument"),
    ("HashMap", "use BTreeMap: its order is the same in each run"),
    ("HashSet", "use BTreeSet: its order is the same in each run"),
    ("async", "be a machine; nothing waits here"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Ok(table) = Table::read(tree) else {
        return Vec::new();
    };
    let folders: Vec<String> = table.pure_crates().map(|name| format!("crates/{name}/")).collect();
    let is_pure = |file: &&RustFile| folders.iter().any(|folder| file.path.starts_with(folder.as_str()));
    tree.rust.iter().filter(is_pure).flat_map(in_file).collect()
}

fn in_file(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, mend) in IMPURE {
        for at in words(&file.mask.code, name).filter(|&at| !file.is_test(at)) {
            let message = format!("{name} on a floor without I/O, clock and chance");
            findings.push(Finding::error(&file.path, file.line(at), message, mend));
        }
    }
    findings
}
