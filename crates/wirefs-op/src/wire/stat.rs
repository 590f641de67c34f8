//! The wire form of what a file is.

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
wire_fields!(Stat {
    id,
    kind,
    version,
    mode,
    nlink,
    uid,
    gid,
    rdev,
    size,
    blocks,
    blksize,
    atime,
    mtime,
    ctime,
    without_xattrs
});

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
