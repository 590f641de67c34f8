//! Packing of items or children into blocks.

use crate::block::{Child, Item, put_child, put_item};
use crate::codec::Writer;
use crate::key::{Ino, Key};

/// The maximum overhead of a head or index block (code, level, count), in bytes.
const FIELDS_BYTES: usize = 5;

/// An entry of a head or index block.
pub(super) trait Entry: Clone {
    /// Appends the encoding of the entry.
    fn put(&self, row: &mut Row);
    fn key(&self) -> Key;
}

/// The encoded entries of one block.
#[derive(Default)]
pub(super) struct Row {
    writer: Writer,
    before: Ino,
    id_before: u64,
}

impl Entry for Item {
    fn put(&self, row: &mut Row) {
        put_item(self, &mut row.writer, &mut row.before);
    }
    fn key(&self) -> Key {
        self.key
    }
}

impl Entry for Child {
    fn put(&self, row: &mut Row) {
        put_child(*self, &mut row.writer, &mut row.before, &mut row.id_before);
    }
    fn key(&self) -> Key {
        self.key
    }
}

/// Returns the encoded size of entries in one block, in bytes.
pub(super) fn bytes_of<E: Entry>(entries: &[E]) -> usize {
    let mut row = Row::default();
    for entry in entries {
        entry.put(&mut row);
    }
    row.writer.len() + FIELDS_BYTES
}

/// Splits entries into as few blocks as possible. The blocks have similar sizes; with `grows_at_end`, all but the last
/// one are full. Returns `None` if an entry is larger than a block.
pub(super) fn cut<E: Entry>(entries: Vec<E>, grows_at_end: bool, block_bytes: usize) -> Option<Vec<Vec<E>>> {
    let room = block_bytes - FIELDS_BYTES;
    let total = bytes_of(&entries);
    let aim = if grows_at_end { room } else { total.div_ceil(total.div_ceil(block_bytes)) };
    let mut blocks = Vec::new();
    let mut block: Vec<E> = Vec::new();
    let mut row = Row::default();
    for entry in entries {
        let before = row.writer.len();
        entry.put(&mut row);
        if !block.is_empty() && (row.writer.len() > room || before >= aim) {
            blocks.push(std::mem::take(&mut block));
            row = Row::default();
            entry.put(&mut row);
        }
        if row.writer.len() > room {
            return None;
        }
        block.push(entry);
    }
    if !block.is_empty() {
        blocks.push(block);
    }
    Some(blocks)
}
