//! Structs with so many fields that they are several things.

use crate::finding::Finding;
use crate::rust::attribute::closing;
use crate::rust::{RustFile, words};
use crate::tree::Tree;

const FIELDS_MAX: usize = 12;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust.iter().flat_map(of_file).collect()
}

fn of_file(file: &RustFile) -> Vec<Finding> {
    let code = &file.mask.code;
    let mut findings = Vec::new();
    for at in words(code, "struct").filter(|&at| !file.is_test(at)) {
        let head = code.get(at..).unwrap_or_default();
        let Some(open) = head.find(['{', ';', '(']).filter(|&open| head.as_bytes().get(open) == Some(&b'{'))
        else {
            continue;
        };
        let body = code.get(at + open + 1..closing(code, at + open).saturating_sub(1)).unwrap_or_default();
        let count = fields(body);
        if count > FIELDS_MAX {
            let name = head.get(..open).unwrap_or_default().trim();
            let message = format!("{name} has {count} fields of at most {FIELDS_MAX}");
            findings.push(Finding::error(&file.path, file.line(at), message, "split it by concern"));
        }
    }
    findings
}

/// The colons of a struct's body that end a field's name: those outside brackets, and not of a path.
fn fields(body: &str) -> usize {
    let bytes = body.as_bytes();
    let mut depth = 0_usize;
    let mut count = 0;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'>' if at == 0 || bytes.get(at - 1) != Some(&b'-') => depth = depth.saturating_sub(1),
            b':' if depth == 0 => {
                let is_path = bytes.get(at + 1) == Some(&b':') || at > 0 && bytes.get(at - 1) == Some(&b':');
                count += usize::from(!is_path);
            }
            _ => {}
        }
    }
    count
}
