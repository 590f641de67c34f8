//! The identity and the attributes of a file, as encoded in `stat[n]`.

use crate::time::Timestamp;
use bytes::{Buf, BufMut};

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A regular file.
    File = 0,
    /// A directory.
    Directory = 1,
    /// A symbolic link.
    Symlink = 2,
    /// A named pipe.
    Fifo = 3,
    /// A socket.
    Socket = 4,
    /// A character device.
    CharDevice = 5,
    /// A block device.
    BlockDevice = 6,
}

impl Kind {
    /// All kinds, in the order of their wire codes.
    pub const ALL: [Kind; 7] = [
        Kind::File,
        Kind::Directory,
        Kind::Symlink,
        Kind::Fifo,
        Kind::Socket,
        Kind::CharDevice,
        Kind::BlockDevice,
    ];

    /// Returns the kind with this wire code.
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(code)).copied()
    }

    /// Returns the kind for the file type bits of a POSIX `st_mode`.
    pub fn from_mode(mode: u32) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.mode_bits() == mode & 0o170_000)
    }

    /// Returns the file type bits of `st_mode`.
    pub fn mode_bits(self) -> u32 {
        match self {
            Kind::File => 0o100_000,
            Kind::Directory => 0o040_000,
            Kind::Symlink => 0o120_000,
            Kind::Fifo => 0o010_000,
            Kind::Socket => 0o140_000,
            Kind::CharDevice => 0o020_000,
            Kind::BlockDevice => 0o060_000,
        }
    }
}

/// The identity of an object, independent of its names: file system, inode number, generation. Two objects
/// that ever existed in one export have different ids, as far as the server's file system distinguishes birth
/// times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The file system within the export; 0 is that of the export's root.
    pub fs: u32,
    /// The inode number.
    pub ino: u64,
    /// Distinguishes objects that used the same inode number one after the other.
    pub generation: u32,
}

impl FileId {
    /// The `fs` of provisional ids. No server assigns it to a file system.
    pub const PROVISIONAL: u32 = u32::MAX;

    /// Returns the id of the object that the change with this number creates, for requests that are sent
    /// before its reply has arrived.
    pub fn provisional(number: u64) -> FileId {
        FileId { fs: FileId::PROVISIONAL, ino: number, generation: 0 }
    }

    /// Returns the number of the change that creates the object, if the id is provisional.
    pub fn provisional_number(self) -> Option<u64> {
        (self == FileId::provisional(self.ino)).then_some(self.ino)
    }

    /// The length of an encoded id, in bytes.
    pub const BYTES: usize = 16;

    /// Encodes the id as in messages: `fs[4] ino[8] generation[4]`.
    pub fn to_bytes(self) -> [u8; FileId::BYTES] {
        let mut bytes = [0; FileId::BYTES];
        let mut to = bytes.as_mut_slice();
        to.put_u32_le(self.fs);
        to.put_u64_le(self.ino);
        to.put_u32_le(self.generation);
        bytes
    }

    /// Decodes the id at the beginning of these bytes; `None` if there are too few.
    pub fn take_bytes(from: &mut impl Buf) -> Option<FileId> {
        Some(FileId {
            fs: from.try_get_u32_le().ok()?,
            ino: from.try_get_u64_le().ok()?,
            generation: from.try_get_u32_le().ok()?,
        })
    }
}

/// The attributes of an object, in POSIX terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stat {
    /// The identity.
    pub id: FileId,
    /// The kind.
    pub kind: Kind,
    /// The change attribute: differs whenever contents or attributes differ; compare for equality only (RFC
    /// 8881, 5.8.1.4; `qid.vers` in 9P).
    pub version: u64,
    /// The permission bits, `0..=0o7777`; the file type is in `kind`.
    pub mode: u32,
    /// The number of hard links.
    pub nlink: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Device number of a device node, as Linux's `makedev` packs it into 32 bits; else 0.
    pub rdev: u32,
    /// Size in bytes.
    pub size: u64,
    /// Allocated blocks of 512 bytes.
    pub blocks: u64,
    /// Preferred block size for I/O, in bytes.
    pub blksize: u32,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of contents.
    pub mtime: Timestamp,
    /// Last change of attributes or contents.
    pub ctime: Timestamp,
    /// True if the object is known to have no extended attributes and no ACLs. False if it has some, or if
    /// that was not checked.
    pub without_xattrs: bool,
    /// True if the server will recall the object before it changes. This is a property of the reply, not of
    /// the object: [`Stat::unleased`] removes it.
    pub leased: bool,
}

impl Stat {
    /// Returns attributes with only the identity and kind set; all other fields are 0 or false.
    pub const fn blank(id: FileId, kind: Kind) -> Stat {
        let never = Timestamp { secs: 0, nanos: 0 };
        Stat {
            id,
            kind,
            version: 0,
            mode: 0,
            nlink: 0,
            uid: 0,
            gid: 0,
            rdev: 0,
            size: 0,
            blocks: 0,
            blksize: 0,
            atime: never,
            mtime: never,
            ctime: never,
            without_xattrs: false,
            leased: false,
        }
    }

    /// Returns the POSIX `st_mode`: type and permission bits together.
    pub fn st_mode(&self) -> u32 {
        self.kind.mode_bits() | (self.mode & 0o7777)
    }

    /// Returns the attributes without the lease flag, for comparisons.
    #[must_use]
    pub fn unleased(self) -> Stat {
        Stat { leased: false, ..self }
    }
}

/// A new value of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetTime {
    /// The server's current time.
    Now,
    /// This time.
    At(Timestamp),
}

/// The attributes to change, and their new values; absent ones stay (Twstat in 9P).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SetStat {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size in bytes: truncates or extends.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<SetTime>,
    /// Last change of contents.
    pub mtime: Option<SetTime>,
}

impl SetStat {
    /// Returns true if no attribute would change.
    pub fn is_empty(&self) -> bool {
        *self == SetStat::default()
    }
}

/// The figures of a file system, as in `statvfs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FsStat {
    /// Size of a block in bytes, the unit of the block counts.
    pub block_bytes: u32,
    /// All blocks.
    pub blocks: u64,
    /// Free blocks.
    pub blocks_free: u64,
    /// Blocks free for an ordinary user.
    pub blocks_available: u64,
    /// All inodes.
    pub files: u64,
    /// Free inodes.
    pub files_free: u64,
    /// The longest name in bytes.
    pub name_bytes_max: u32,
}

/// One entry of a directory listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name: no `/`, no NUL, never `.` or `..`.
    pub name: Vec<u8>,
    /// The position in the listing after this entry: opaque, chosen by the server, never 0.
    pub next: u64,
    /// The attributes of the object; of a symbolic link, its own.
    pub stat: Stat,
}

/// The owner of a new object. Used only by a server that may act for other users (run by root).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cred {
    /// The caller's user id.
    pub uid: u32,
    /// The caller's group id.
    pub gid: u32,
    /// The caller's umask. The server applies it, unless a default ACL replaces it.
    pub umask: u32,
}

/// A byte-range lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockRange {
    /// The kind of lock.
    pub kind: LockKind,
    /// The first byte.
    pub start: u64,
    /// The last byte, inclusive; `u64::MAX` for the end of the file at any size.
    pub end: u64,
    /// The process that holds or requests the lock, on its own machine; for people only.
    pub pid: u32,
}

/// The kind of a lock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LockKind {
    /// Shared.
    Read = 0,
    /// Exclusive.
    Write = 1,
    /// Releases the lock.
    Unlock = 2,
}

/// The two lock families, which do not conflict with each other (as on a local Linux file system).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LockFamily {
    /// `fcntl` byte ranges.
    Posix = 0,
    /// `flock` on the whole open file.
    Flock = 1,
}
