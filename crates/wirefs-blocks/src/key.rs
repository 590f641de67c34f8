//! What a tree is sorted by: an object, a part of it, and which one of such parts.

use crate::codec::{Corrupt, Reader, Writer};

/// The bits of an inode number that count the objects of one group.
const INDEX_BITS: u32 = 24;

/// An inode number. The objects of one directory are of one group, so that their heads stand beside each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ino(pub(crate) u64);

/// What belongs to no object.
pub(crate) const SYSTEM: Ino = Ino(0);
/// The root directory, in the first group.
pub(crate) const ROOT: Ino = Ino(1 << INDEX_BITS);
/// The first group after the root directory's.
pub(crate) const FIRST_GROUP: u64 = 2;

impl Ino {
    /// The first number of a group, which is the directory's own; `None` past the last group.
    pub(crate) fn first_of(group: u64) -> Option<Ino> {
        (group < 1 << (64 - INDEX_BITS)).then_some(Ino(group << INDEX_BITS))
    }

    /// The number after this one in its group; `None` at the group's end.
    pub(crate) fn next(self) -> Option<Ino> {
        let next = self.0.checked_add(1)?;
        (next >> INDEX_BITS == self.0 >> INDEX_BITS).then_some(Ino(next))
    }
}

/// The parts of an object, in the order in which they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Part {
    /// Its head.
    Head = 0,
    /// An extended attribute, by the hash of its name.
    Xattr = 1,
    /// A directory's entry, by the hash of its name.
    Entry = 2,
    /// A run of contents blocks, by its number.
    Run = 3,
    /// Of [`SYSTEM`]: an object whose parts are still to be removed, by its inode number.
    Dead = 4,
    /// In the table of checkpoints: one of them; its serial stands for the object.
    Checkpoint = 5,
    /// In the table of checkpoints: a tree that is being dropped; the id of its root stands for the object.
    Dying = 6,
}

impl Part {
    const ALL: [Part; 7] =
        [Part::Head, Part::Xattr, Part::Entry, Part::Run, Part::Dead, Part::Checkpoint, Part::Dying];
}

/// Where an item stands in a tree.
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

    pub(crate) fn dead(ino: Ino) -> Key {
        Key::new(SYSTEM, Part::Dead, ino.0)
    }

    /// Writes it; `before` is the object of the key written before it in the same block.
    pub(crate) fn put(self, writer: &mut Writer, before: &mut Ino) {
        writer.number(self.ino.0.wrapping_sub(before.0));
        writer.byte(self.part as u8);
        writer.number(self.sub);
        *before = self.ino;
    }

    pub(crate) fn take(reader: &mut Reader, before: &mut Ino) -> Result<Key, Corrupt> {
        let step = reader.number()?;
        let ino = Ino(before.0.checked_add(step).ok_or(reader.corrupt("an object past the last"))?);
        let code = usize::from(reader.byte()?);
        let part = Part::ALL.get(code).copied().ok_or(reader.corrupt("no such part"))?;
        let key = Key { ino, part, sub: reader.number()? };
        *before = ino;
        Ok(key)
    }
}
