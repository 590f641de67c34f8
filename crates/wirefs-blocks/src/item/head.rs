//! The head (inode) of an object: its attributes, and its data if it is small.

use crate::codec::{Corrupt, Reader, Writer};
use crate::key::Ino;
use bytes::Bytes;
use wirefs_op::{FileId, Kind, Stat, Timestamp};

const FRESH: u8 = 1;
const TRIMMED: u8 = 2;
const IN_PIECES: u8 = 4;
/// The unit of `st_blocks`, in bytes.
const SECTOR_BYTES: u64 = 512;

/// The place of the data of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Inline in the head. Bytes beyond its length up to the file size read as zeros.
    Inline(Bytes),
    /// In runs of contents blocks.
    Pieces,
}

/// The head of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    /// The object never had a name, so it may be linked although its link count is 0.
    pub(crate) is_fresh: bool,
    /// Runs beyond the end must be removed before the file grows.
    pub(crate) is_trimmed: bool,
    pub(crate) mode: u32,
    /// The link count of POSIX: for a directory 2 plus its subdirectories, or 0 after removal.
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    /// The size in bytes; for a directory the number of entries.
    pub(crate) size: u64,
    pub(crate) generation: u32,
    pub(crate) version: u64,
    pub(crate) atime: Timestamp,
    pub(crate) mtime: Timestamp,
    pub(crate) ctime: Timestamp,
    /// The directory in which the object last gained a name.
    pub(crate) parent: Ino,
    /// Directories: the inode number of the next object created in it.
    pub(crate) next_ino: Ino,
    pub(crate) xattrs: u32,
    /// The number of contents blocks of its data.
    pub(crate) pieces: u64,
    pub(crate) body: Body,
}

impl Head {
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// Returns the attributes for the wire. `fs` is 0 for the live tree, or the serial of a checkpoint.
    pub(crate) fn stat(&self, fs: u32, ino: Ino, piece_bytes: u64) -> Stat {
        let inline_bytes = match &self.body {
            Body::Inline(bytes) => bytes.len() as u64,
            Body::Pieces => 0,
        };
        let bytes = self.pieces.saturating_mul(piece_bytes).saturating_add(inline_bytes);
        Stat {
            id: FileId { fs, ino: ino.0, generation: self.generation },
            kind: self.kind,
            version: self.version,
            mode: self.mode,
            nlink: self.nlink,
            uid: self.uid,
            gid: self.gid,
            rdev: self.rdev,
            size: self.size,
            blocks: bytes.div_ceil(SECTOR_BYTES),
            blksize: 4096,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            without_xattrs: self.xattrs == 0,
            leased: false,
        }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut writer = Writer::new();
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        writer.byte(self.kind as u8);
        let in_pieces = self.body == Body::Pieces;
        writer.byte(bit(self.is_fresh, FRESH) | bit(self.is_trimmed, TRIMMED) | bit(in_pieces, IN_PIECES));
        for word in [self.mode, self.nlink, self.uid, self.gid, self.rdev] {
            writer.number(u64::from(word));
        }
        writer.number(self.size);
        writer.number(u64::from(self.generation));
        writer.number(self.version);
        for time in [self.atime, self.mtime, self.ctime] {
            writer.timestamp(time);
        }
        writer.number(self.parent.0);
        writer.number(self.next_ino.0);
        writer.number(u64::from(self.xattrs));
        writer.number(self.pieces);
        match &self.body {
            Body::Inline(bytes) => writer.raw(bytes),
            Body::Pieces => {}
        }
        writer.finish()
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<Head, Corrupt> {
        let mut reader = Reader::new(bytes);
        let kind = reader.kind()?;
        let flags = reader.byte()?;
        if flags & !(FRESH | TRIMMED | IN_PIECES) != 0 {
            return Err(reader.corrupt("unknown flags"));
        }
        let head = Head {
            kind,
            is_fresh: flags & FRESH != 0,
            is_trimmed: flags & TRIMMED != 0,
            mode: reader.fitting()?,
            nlink: reader.fitting()?,
            uid: reader.fitting()?,
            gid: reader.fitting()?,
            rdev: reader.fitting()?,
            size: reader.number()?,
            generation: reader.fitting()?,
            version: reader.number()?,
            atime: reader.timestamp()?,
            mtime: reader.timestamp()?,
            ctime: reader.timestamp()?,
            parent: Ino(reader.number()?),
            next_ino: Ino(reader.number()?),
            xattrs: reader.fitting()?,
            pieces: reader.number()?,
            body: if flags & IN_PIECES != 0 { Body::Pieces } else { Body::Inline(reader.rest()) },
        };
        reader.end()?;
        Ok(head)
    }
}
