//! The example of a snapshot in `docs/FORMAT.md`: read, and written again to the same bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails panics")]

use std::fs;

use wirefs_store::{LoadedSnapshot, SourceDirectory};

const PAGE: &str = include_str!("../../../../docs/FORMAT.md");

/// The bytes of the block that is fenced as ```` ```hex NAME ````; a `#` starts a comment.
fn example(name: &str) -> Vec<u8> {
    let (_, block) = PAGE.split_once(&format!("```hex {name}\n")).unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let code = block.lines().map(|line| line.split('#').next().unwrap_or_default());
    code.flat_map(str::split_whitespace).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn snapshot_of_the_format_page_is_read_and_written_again() {
    let dir = std::env::temp_dir().join(format!("wirefs-format-snapshot-{}", std::process::id()));
    let directory = SourceDirectory::open(&dir).unwrap();
    let bytes = example("snapshot");
    fs::write(dir.join("snapshot"), &bytes).unwrap();
    let LoadedSnapshot::Valid(snapshot) = directory.take_snapshot().unwrap() else {
        panic!("it is not read")
    };
    assert_eq!(snapshot.identity, b"k");
    assert_eq!(snapshot.listings.len(), 1);
    assert!(!dir.join("snapshot").exists());
    directory.put_snapshot(&snapshot).unwrap();
    assert_eq!(fs::read(dir.join("snapshot")).unwrap(), bytes);
    fs::remove_dir_all(dir).unwrap();
}
