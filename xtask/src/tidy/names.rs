//! Names of files and modules.

use crate::finding::Finding;
use crate::rust::words;
use crate::tree::Tree;

/// Names that do not describe the contents.
const BANNED: [&str; 9] = ["utils", "util", "common", "helpers", "misc", "base", "types", "handler", "impl"];

const FIX: &str = "name it after the one concept that it holds";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.rust {
        if file.name() == "mod" {
            let message = "mod.rs is not used here";
            findings.push(Finding::error(&file.path, 1, message, "make foo/mod.rs a foo.rs beside foo/"));
        }
        let parts = file.path.trim_end_matches(".rs").split('/');
        for part in parts.filter(|part| BANNED.contains(part)) {
            findings.push(Finding::error(&file.path, 1, format!("banned name {part:?}"), FIX));
        }
        for name in BANNED {
            let is_inline = |at: &usize| {
                let after = file.mask.code.get(at + name.len()..).unwrap_or_default();
                let before = file.mask.code.get(..*at).unwrap_or_default();
                before.trim_end().ends_with("mod") && after.trim_start().starts_with('{')
            };
            for at in words(&file.mask.code, name).filter(is_inline) {
                let message = format!("banned module name {name:?}");
                findings.push(Finding::error(&file.path, file.line(at), message, FIX));
            }
        }
    }
    findings
}
