//! Qids: the identity of a file as clients see it.

use wirefs_op::wire::{Malformed, Reader, Wire, Writer};
use wirefs_op::{Kind, Stat};

/// The type bits of a directory.
pub const QID_DIRECTORY: u8 = 0x80;
/// The type bits of a symbolic link (9P2000.L).
pub const QID_SYMLINK: u8 = 0x02;

/// `type[1] version[4] path[8]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Qid {
    /// The type bits.
    pub kind: u8,
    /// Differs when contents or attributes differ.
    pub version: u32,
    /// Differs for each file.
    pub path: u64,
}

impl Qid {
    /// Returns the qid of an object with these attributes.
    pub fn of(stat: &Stat) -> Qid {
        Qid { version: stat.version as u32, ..Qid::listed(stat.kind, stat.id.ino) }
    }

    /// Returns the qid of a listed object, whose version is not known.
    pub fn listed(kind: Kind, ino: u64) -> Qid {
        let bits = match kind {
            Kind::Directory => QID_DIRECTORY,
            Kind::Symlink => QID_SYMLINK,
            Kind::File | Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice => 0,
        };
        Qid { kind: bits, version: 0, path: ino }
    }
}

impl Wire for Qid {
    fn put(&self, writer: &mut Writer) {
        self.kind.put(writer);
        self.version.put(writer);
        self.path.put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        Ok(Qid { kind: Wire::take(reader)?, version: Wire::take(reader)?, path: Wire::take(reader)? })
    }
}
