//! The example of a block store in `docs/FORMAT.md`: written by a store, and opened by one.

use bytes::Bytes;
use std::fs;
use wirefs_blockfs::DiskStore;
use wirefs_blocks::id::{BlockId, WriterId};
use wirefs_blocks::store::{BlockStore as _, Wanted};

const PAGE: &str = include_str!("../../../../docs/FORMAT.md");

/// Returns the bytes of the block that is fenced as ```` ```hex NAME ````; a `#` starts a comment.
fn example(name: &str) -> Vec<u8> {
    let (_, block) = PAGE.split_once(&format!("```hex {name}\n")).unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let code = block.lines().map(|line| line.split('#').next().unwrap_or_default());
    code.flat_map(str::split_whitespace).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn block_store_of_the_format_page_is_written_and_opened() {
    let dir = std::env::temp_dir().join(format!("wirefs-format-blocks-{}", std::process::id()));
    let (segment, written) = (dir.join("0000000001.log"), example("blocks"));
    let block = |counter| BlockId::new(counter, WriterId(3)).unwrap();
    let store = DiskStore::open(&dir).unwrap();
    store.register(&[(block(1), Bytes::from_static(b"hi"))]).unwrap();
    store.switch_root(block(1)).unwrap();
    store.deregister(&[block(2)]);
    drop(store);
    assert_eq!(fs::read(&segment).unwrap(), written);

    let store = DiskStore::open(&dir).unwrap();
    let mut found = Vec::new();
    store.retrieve(&Wanted::of([block(1)]), &mut |id, bytes| found.push((id, bytes.ok())));
    assert_eq!(found, [(block(1), Some(Bytes::from_static(b"hi")))]);
    assert_eq!(store.root().unwrap(), Some(block(1)));
    drop(store);
    fs::remove_dir_all(dir).unwrap();
}
