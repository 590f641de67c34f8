//! The encoding of identities and attributes.

#[cfg(test)]
mod tests;

use crate::stat::{Cred, FileId, FsStat, Kind, LockFamily, LockKind, LockRange, Stat};
use crate::time::Timestamp;
use crate::wire::{Malformed, Reader, Wire, Writer, wire_codes, wire_fields};

wire_codes!(Kind: u8, "no such kind", [File, Directory, Symlink, Fifo, Socket, CharDevice, BlockDevice]);
wire_codes!(LockKind: u8, "no such lock kind", [Read, Write, Unlock]);
wire_codes!(LockFamily: u8, "no such lock family", [Posix, Flock]);
wire_fields!(FileId { fs, ino, generation });
wire_fields!(Cred { uid, gid, umask });
wire_fields!(LockRange { kind, start, end, pid });
wire_fields!(FsStat {
    block_bytes,
    blocks,
    blocks_free,
    blocks_available,
    files,
    files_free,
    name_bytes_max
});

/// The bits in the last byte of a [`Stat`].
mod stat_bits {
    pub(super) const WITHOUT_XATTRS: u8 = 1;
    pub(super) const LEASED: u8 = 2;
}

impl Wire for Stat {
    fn put(&self, writer: &mut Writer) {
        use stat_bits::*;
        self.id.put(writer);
        self.kind.put(writer);
        self.version.put(writer);
        for word in [self.mode, self.nlink, self.uid, self.gid, self.rdev] {
            word.put(writer);
        }
        self.size.put(writer);
        self.blocks.put(writer);
        self.blksize.put(writer);
        for time in [self.atime, self.mtime, self.ctime] {
            time.put(writer);
        }
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        (bit(self.without_xattrs, WITHOUT_XATTRS) | bit(self.leased, LEASED)).put(writer);
    }

    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        use stat_bits::*;
        // Fields are evaluated in the order written here, which is that of the wire.
        let mut stat = Stat {
            id: Wire::take(reader)?,
            kind: Wire::take(reader)?,
            version: Wire::take(reader)?,
            mode: Wire::take(reader)?,
            nlink: Wire::take(reader)?,
            uid: Wire::take(reader)?,
            gid: Wire::take(reader)?,
            rdev: Wire::take(reader)?,
            size: Wire::take(reader)?,
            blocks: Wire::take(reader)?,
            blksize: Wire::take(reader)?,
            atime: Wire::take(reader)?,
            mtime: Wire::take(reader)?,
            ctime: Wire::take(reader)?,
            without_xattrs: false,
            leased: false,
        };
        let bits = u8::take(reader)?;
        if bits & !(WITHOUT_XATTRS | LEASED) != 0 {
            return Err(reader.malformed("unknown bits in attributes"));
        }
        stat.without_xattrs = bits & WITHOUT_XATTRS != 0;
        stat.leased = bits & LEASED != 0;
        Ok(stat)
    }
}

impl Wire for Timestamp {
    fn put(&self, writer: &mut Writer) {
        self.secs.put(writer);
        self.nanos.put(writer);
    }
    fn take(reader: &mut Reader) -> Result<Self, Malformed> {
        let (secs, nanos) = (i64::take(reader)?, u32::take(reader)?);
        if nanos >= 1_000_000_000 {
            return Err(reader.malformed("nanoseconds of a second or more"));
        }
        Ok(Timestamp { secs, nanos })
    }
}
