//! Sort keys of the B-tree: the inode number, the kind of item, and an index within the kind.

use crate::codec::{Corrupt, Reader, Writer};

/// The bits of an inode number that count objects within a group.
const INDEX_BITS: u32 = 24;

/// An inode number. Objects of one directory share a group, so their heads are adjacent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ino(pub(crate) u64);

/// The owner of items that belong to no object.
pub(crate) const SYSTEM: Ino = Ino(0);
/// The root directory, in the first group.
pub(crate) const ROOT: Ino = Ino(1 << INDEX_BITS);
/// The first group after that of the root directory.
pub(crate) const FIRST_GROUP: u64 = 2;

impl Ino {
    /// The first number of a group, which is that of the directory itself; `None` past the last group.
    pub(crate) fn first_of(group: u64) -> Option<Ino> {
        (group < 1 << (64 - INDEX_BITS)).then_some(Ino(group << INDEX_BITS))
    }

    /// The next number in the group; `None` at its end.
    pub(crate) fn next(self) -> Option<Ino> {
        let next = self.0.checked_add(1)?;
        (next >> INDEX_BITS == self.0 >> INDEX_BITS).then_some(Ino(next))
    }
}

/// The kinds of items, in sort order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Part {
    /// The head of an object.
    Head = 0,
    /// An extended attribute; the index is derived from the hash of its name.
    Xattr = 1,
    /// A directory entry; the index is derived from the hash of its name.
    Entry = 2,
    /// A run of contents blocks; the index is its number.
    Run = 3,
    /// Of [`SYSTEM`]: an unlinked object whose items are not all removed; the index is its inode number.
    Orphan = 4,
    /// In the checkpoint table: a checkpoint; the inode number is its serial.
    Checkpoint = 5,
    /// In the checkpoint table: a tree that is being destroyed; the inode number is the id of its root.
    DestroyedTree = 6,
}

impl Part {
    const ALL: [Part; 7] = [
        Part::Head,
        Part::Xattr,
        Part::Entry,
        Part::Run,
        Part::Orphan,
        Part::Checkpoint,
        Part::DestroyedTree,
    ];
}

/// The position of an item in the B-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) ino: Ino,
    pub(crate) part: Part,
    pub(crate) sub: u64,
}

impl Key {
    pub(crate) const MIN: Key = Key { ino: SYSTEM, part: Part::Head, sub: 0 };

    pub(crate) fn new(ino: Ino, part: Part, sub: u64) -> Key {
        Key { ino, part, sub }
    }

    pub(crate) fn head(ino: Ino) -> Key {
        Key::new(ino, Part::Head, 0)
    }

    pub(crate) fn orphan(ino: Ino) -> Key {
        Key::new(SYSTEM, Part::Orphan, ino.0)
    }

    /// Encodes the key; `before` is the inode number of the preceding key in the block.
    pub(crate) fn put(self, writer: &mut Writer, before: &mut Ino) {
        writer.number(self.ino.0.wrapping_sub(before.0));
        writer.byte(self.part as u8);
        writer.number(self.sub);
        *before = self.ino;
    }

    pub(crate) fn take(reader: &mut Reader, before: &mut Ino) -> Result<Key, Corrupt> {
        let step = reader.number()?;
        let ino = Ino(before.0.checked_add(step).ok_or(reader.corrupt("an inode number out of range"))?);
        let code = usize::from(reader.byte()?);
        let part = Part::ALL.get(code).copied().ok_or(reader.corrupt("an unknown kind of item"))?;
        let key = Key { ino, part, sub: reader.number()? };
        *before = ino;
        Ok(key)
    }
}
