//! The kinds of blocks and their encoding.
//!
//! ```text
//! head      2  count  { key  length  value }*        leaves of the B-tree: items
//! index     3  level  count  { key  id }*            inner nodes: children with the first key below each
//! contents  4  key  data                             bytes of a file, and the key of the item that refers to it
//! root      1  …                                     see `root`
//! ```
//!
//! Keys ascend within a block. The inode number of a key is encoded as the difference from the preceding key.

mod root;
#[cfg(test)]
mod tests;

use crate::codec::{Corrupt, Reader, Writer};
use crate::id::BlockId;
use crate::key::{Ino, Key};
use crate::limits::LEVELS_MAX;
use bytes::Bytes;
pub(crate) use root::Root;

const ROOT_CODE: u8 = 1;
const HEAD_CODE: u8 = 2;
const INDEX_CODE: u8 = 3;
const CONTENTS_CODE: u8 = 4;
/// The minimum size of an encoded item or child, in bytes. Bounds the count field while decoding.
const ENTRY_BYTES_MIN: usize = 4;

/// One item of a head block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) key: Key,
    pub(crate) value: Bytes,
}

/// One child of an index block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    /// The first key below the child when it was written. No key below it is smaller.
    pub(crate) key: Key,
    pub(crate) id: BlockId,
}

/// A decoded block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Root(Root),
    Head(Vec<Item>),
    Index { level: u8, children: Vec<Child> },
    Contents { key: Key, data: Bytes },
}

impl Block {
    pub(crate) fn encode(&self) -> Bytes {
        let mut writer = Writer::new();
        match self {
            Block::Root(root) => {
                writer.byte(ROOT_CODE);
                root.put(&mut writer);
            }
            Block::Head(items) => {
                writer.byte(HEAD_CODE);
                writer.number(items.len() as u64);
                let mut before = Ino(0);
                for item in items {
                    put_item(item, &mut writer, &mut before);
                }
            }
            Block::Index { level, children } => {
                writer.byte(INDEX_CODE);
                writer.byte(*level);
                writer.number(children.len() as u64);
                let (mut before, mut id_before) = (Ino(0), 0);
                for child in children {
                    put_child(*child, &mut writer, &mut before, &mut id_before);
                }
            }
            Block::Contents { key, data } => {
                writer.byte(CONTENTS_CODE);
                key.put(&mut writer, &mut Ino(0));
                writer.raw(data);
            }
        }
        writer.finish()
    }

    /// Decodes a block. The result shares the memory of `bytes`.
    pub(crate) fn decode(bytes: Bytes) -> Result<Block, Corrupt> {
        let mut reader = Reader::new(bytes);
        let block = match reader.byte()? {
            ROOT_CODE => Block::Root(Root::take(&mut reader)?),
            HEAD_CODE => Block::Head(take_items(&mut reader)?),
            INDEX_CODE => {
                let level = reader.byte()?;
                if !(1..=LEVELS_MAX).contains(&level) {
                    return Err(reader.corrupt("an invalid level"));
                }
                Block::Index { level, children: take_children(&mut reader)? }
            }
            CONTENTS_CODE => {
                let key = Key::take(&mut reader, &mut Ino(0))?;
                Block::Contents { key, data: reader.rest() }
            }
            _ => return Err(reader.corrupt("an unknown kind of block")),
        };
        reader.end()?;
        Ok(block)
    }
}

/// Appends the encoding of an item; `before` is the inode number of the preceding item.
pub(crate) fn put_item(item: &Item, writer: &mut Writer, before: &mut Ino) {
    item.key.put(writer, before);
    writer.string(&item.value);
}

/// Appends the encoding of a child; `before` and `id_before` are those of the preceding child.
pub(crate) fn put_child(child: Child, writer: &mut Writer, before: &mut Ino, id_before: &mut u64) {
    child.key.put(writer, before);
    writer.id(child.id, id_before);
}

fn take_items(reader: &mut Reader) -> Result<Vec<Item>, Corrupt> {
    let count = take_count(reader)?;
    let mut items: Vec<Item> = Vec::with_capacity(count);
    let mut before = Ino(0);
    for _ in 0..count {
        let key = Key::take(reader, &mut before)?;
        if items.last().is_some_and(|last| last.key >= key) {
            return Err(reader.corrupt("keys not in ascending order"));
        }
        let len_max = reader.remaining();
        items.push(Item { key, value: reader.string(len_max)? });
    }
    Ok(items)
}

fn take_children(reader: &mut Reader) -> Result<Vec<Child>, Corrupt> {
    let count = take_count(reader)?;
    let mut children: Vec<Child> = Vec::with_capacity(count);
    let (mut before, mut id_before) = (Ino(0), 0);
    for _ in 0..count {
        let key = Key::take(reader, &mut before)?;
        if children.last().is_some_and(|last| last.key >= key) {
            return Err(reader.corrupt("keys not in ascending order"));
        }
        children.push(Child { key, id: reader.id(&mut id_before)? });
    }
    Ok(children)
}

/// Reads an entry count. Fails if it is 0 or larger than the rest of the block can hold.
fn take_count(reader: &mut Reader) -> Result<usize, Corrupt> {
    let count = reader.fitting::<usize>()?;
    if count == 0 || count > reader.remaining() / ENTRY_BYTES_MIN {
        return Err(reader.corrupt("a count larger than the block"));
    }
    Ok(count)
}
