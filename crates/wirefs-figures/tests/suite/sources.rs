//! docs/SOURCES.md: each row has its command, and each command exists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rows of the five tables, at least: none is lost in an edit.
const ROWS_MIN: usize = 65;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The source files of a crate, one after the other.
fn text_of(dir: &Path, text: &mut String) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text_of(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn each_row_of_the_sources_has_a_command_that_exists_and_a_result() {
    let page = std::fs::read_to_string(root().join("docs/SOURCES.md")).unwrap();
    let mut crates: BTreeMap<&str, String> = BTreeMap::new();
    let rows: Vec<_> =
        page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| source |")).collect();
    assert!(rows.len() >= ROWS_MIN, "{} rows", rows.len());
    for row in rows {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [mechanism, command, result] = cells[..] else { panic!("{row}") };
        assert!(!mechanism.is_empty() && !result.is_empty(), "{row}");
        assert!(!result.contains("worse") || result.ends_with('.'), "it has no sentence: {row}");
        let command = command.trim_matches('`');
        if let Some(test) = command.strip_prefix("cargo test -p ") {
            let (name, test) = test.split_once(' ').unwrap_or_else(|| panic!("{row}"));
            let text = crates.entry(name).or_insert_with(|| {
                let mut text = String::new();
                text_of(&root().join("crates").join(name), &mut text);
                text
            });
            assert!(text.contains(&format!("fn {test}(")), "there is no such test: {row}");
        } else {
            let target = command.strip_prefix("make ").unwrap_or_else(|| panic!("{row}"));
            let dry = Command::new("make").args(["-n", target]).current_dir(root()).output().unwrap();
            assert!(dry.status.success(), "there is no such target: {row}");
        }
    }
}
