//! What a file is: its identity and its attributes, as `stat[n]` carries them.

use crate::time::Timestamp;

/// What kind of object a name stands for.
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

    /// The kind with this wire code.
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(code)).copied()
    }

    /// The kind that the file type bits of a POSIX `st_mode` name.
    pub fn from_mode(mode: u32) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.mode_bits() == mode & 0o170_000)
    }

    /// The file type bits of `st_mode`.
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

/// Which object it is, whatever its name: file system, inode, generation. Two objects that ever lived in one export
/// have different ids (as far as the server's file system tells birth times apart).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The file system within the export; 0 is the one that the export's root is on.
    pub fs: u32,
    /// The inode number.
    pub ino: u64,
    /// Tells apart objects that used one inode number after each other.
    pub generation: u32,
}

impl FileId {
    /// The number of no file system: no server gives out an id that has it.
    pub const PROVISIONAL: u32 = u32::MAX;

    /// What the change with this number creates, in requests that are sent behind it before its reply has come.
    pub fn provisional(number: u64) -> FileId {
        FileId { fs: FileId::PROVISIONAL, ino: number, generation: 0 }
    }

    /// The number of the change that creates the object, if that is how the id names it.
    pub fn provisional_number(self) -> Option<u64> {
        (self == FileId::provisional(self.ino)).then_some(self.ino)
    }
}

/// The attributes of an object, in POSIX terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stat {
    /// Which object.
    pub id: FileId,
    /// Its kind.
    pub kind: Kind,
    /// Changes whenever contents or attributes do; compares for equality only (the source's `qid.vers`, wider).
    pub version: u64,
    /// Permission bits, `0..=0o7777`; the file type is in `kind`.
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
    /// Whether extended attributes (ACLs among them) are known to be absent. False also when nobody looked.
    pub without_xattrs: bool,
    /// Whether the server will recall the object before it changes. Decided for each reply anew, and no attribute of the
    /// object: [`Stat::unleased`] compares what is.
    pub leased: bool,
}

impl Stat {
    /// An object of which nothing is known but which it is and its kind: all else is 0, or not known.
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

    /// POSIX `st_mode`: type and permission bits together.
    pub fn st_mode(&self) -> u32 {
        self.kind.mode_bits() | (self.mode & 0o7777)
    }

    /// The attributes alone, without what the server promised about them: what to compare when a change is looked for.
    #[must_use]
    pub fn unleased(self) -> Stat {
        Stat { leased: false, ..self }
    }
}

/// A time to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetTime {
    /// The server's present time.
    Now,
    /// This time.
    At(Timestamp),
}

/// Which attributes to change, and to what; absent ones stay (the source's Wstat).
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
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        *self == SetStat::default()
    }
}

/// Figures of the file system behind an object, as `statvfs` has them.
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
    /// Where the listing goes on after this entry; opaque, chosen by the server, never 0.
    pub next: u64,
    /// The object's attributes, of the link itself when it is one.
    pub stat: Stat,
}

/// On whose behalf an object is created. Counts only at a server that may act for others (one run by root).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cred {
    /// The caller's user id.
    pub uid: u32,
    /// The caller's group id.
    pub gid: u32,
    /// The caller's umask, applied by the server, where a default ACL may replace it.
    pub umask: u32,
}

/// A byte-range lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockRange {
    /// What kind of lock.
    pub kind: LockKind,
    /// First byte.
    pub start: u64,
    /// Last byte, included; `u64::MAX` for "to the end, however long".
    pub end: u64,
    /// The process that holds or wants it, on its own machine; for people only.
    pub pid: u32,
}

/// The kinds of a lock request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LockKind {
    /// Shared.
    Read = 0,
    /// Exclusive.
    Write = 1,
    /// None: releases.
    Unlock = 2,
}

/// The two lock families, which do not see each other (as on a local Linux file system).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LockFamily {
    /// `fcntl` byte ranges.
    Posix = 0,
    /// `flock` on the whole open file.
    Flock = 1,
}
