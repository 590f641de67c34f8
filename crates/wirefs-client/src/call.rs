//! Calls and answers: the vocabulary between a file system front end and the core.
//! Shaped after the low-level FUSE operations, but free of its numbers, so that other front ends can speak it.

use bytes::Bytes;
use std::ops::Deref;
use std::time::Duration;
pub use wirefs_cache::{ROOT, TreeNodeId};
use wirefs_op::{Cred, Errno, FsStat, LockFamily, LockRange, SetStat, Stat};

/// An open file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u64);

/// In place of an open directory's where the kernel reads directories without opening them.
pub const STATELESS: Handle = Handle(0);

/// One waiting call, chosen by the front end; the answer carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// The calling process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Process id; 0 for the kernel itself.
    pub pid: u32,
}

impl Caller {
    /// The credentials of the caller, for an object that a process with this umask makes.
    pub(crate) fn cred(self, umask: u32) -> Cred {
        Cred { uid: self.uid, gid: self.gid, umask }
    }
}

/// How a file is opened: the bits of `open(2)` that matter past the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenHow {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// Each write goes to the end, wherever that is by then.
    pub append: bool,
    /// Cut to nothing.
    pub truncate: bool,
    /// `O_EXCL`: must not exist yet (only with create).
    pub exclusive: bool,
    /// `O_DIRECT`: the program wants no cache between.
    pub direct: bool,
    /// `O_SYNC` or `O_DSYNC`: each write returns when it is on stable storage.
    pub sync: bool,
}

impl OpenHow {
    /// Whether nothing is changed by opening it or through it.
    pub fn only_reads(self) -> bool {
        !self.write && !self.truncate
    }
}

/// The bytes of a write.
#[derive(Clone, Copy, Debug)]
pub enum WriteData<'a> {
    /// In a buffer that is used again once the call was handed over.
    Lent(&'a [u8]),
    /// To be kept without a copy.
    Shared(&'a Bytes),
}

impl WriteData<'_> {
    /// The bytes, to keep.
    ///
    /// # Cost
    /// A copy of what is lent.
    pub fn to_bytes(self) -> Bytes {
        match self {
            WriteData::Lent(data) => Bytes::copy_from_slice(data),
            WriteData::Shared(data) => data.clone(),
        }
    }
}

impl Deref for WriteData<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            WriteData::Lent(data) => data,
            WriteData::Shared(data) => data,
        }
    }
}

/// Equal bytes, in either form.
impl PartialEq for WriteData<'_> {
    fn eq(&self, other: &WriteData<'_>) -> bool {
        **self == **other
    }
}

impl Eq for WriteData<'_> {}

/// A call of the kernel. Names and data are borrowed from the request's buffer.
#[expect(missing_docs, reason = "the fields are the operands of the operation that the variant documents")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// Finds a name in a directory; counts one lookup on the node.
    Lookup { parent: TreeNodeId, name: &'a [u8] },
    /// Takes back `count` lookups. Never answered.
    Forget { node: TreeNodeId, count: u64 },
    /// Reads attributes; of the open file where a handle is given.
    Getattr { node: TreeNodeId, handle: Option<Handle> },
    /// Changes attributes. `kill_privileges`: setuid and setgid bits must fall (a change of size by one without the right to keep them).
    Setattr { node: TreeNodeId, handle: Option<Handle>, set: SetStat, kill_privileges: bool },
    /// Reads a symbolic link.
    Readlink { node: TreeNodeId },
    /// Makes a file, device node, pipe or socket. `mode` has the type bits.
    Mknod { parent: TreeNodeId, name: &'a [u8], mode: u32, umask: u32, rdev: u32 },
    /// Makes a directory.
    Mkdir { parent: TreeNodeId, name: &'a [u8], mode: u32, umask: u32 },
    /// Makes a symbolic link.
    Symlink { parent: TreeNodeId, name: &'a [u8], target: &'a [u8] },
    /// Removes a name of something that is not a directory.
    Unlink { parent: TreeNodeId, name: &'a [u8] },
    /// Removes an empty directory.
    Rmdir { parent: TreeNodeId, name: &'a [u8] },
    /// Renames. `flags` are those of `renameat2` (NOREPLACE 1, EXCHANGE 2, WHITEOUT 4).
    Rename { parent: TreeNodeId, name: &'a [u8], to_parent: TreeNodeId, to_name: &'a [u8], flags: u32 },
    /// Makes a hard link.
    Link { node: TreeNodeId, parent: TreeNodeId, name: &'a [u8] },
    /// Opens a file.
    Open { node: TreeNodeId, how: OpenHow },
    /// Makes and opens a file.
    Create { parent: TreeNodeId, name: &'a [u8], mode: u32, umask: u32, how: OpenHow },
    /// Makes and opens a file without a name in `parent`.
    Tmpfile { parent: TreeNodeId, mode: u32, umask: u32, how: OpenHow },
    /// Reads.
    Read { node: TreeNodeId, handle: Handle, offset: u64, count: u32 },
    /// Writes. `cached`: from the page cache (mmap), on behalf of nobody in particular.
    Write {
        node: TreeNodeId,
        handle: Handle,
        offset: u64,
        data: WriteData<'a>,
        cached: bool,
        kill_privileges: bool,
    },
    /// `close(2)` of one descriptor. `owner`'s POSIX locks on the file fall.
    Flush { node: TreeNodeId, handle: Handle, owner: u64 },
    /// The last descriptor of the open file is gone. `flock_owner` where flock locks of it must fall.
    Release { node: TreeNodeId, handle: Handle, flock_owner: Option<u64> },
    /// To stable storage.
    Fsync { node: TreeNodeId, handle: Handle, data_only: bool },
    /// Opens a directory.
    Opendir { node: TreeNodeId },
    /// Lists a directory from `offset` on (0 is the start, else the `next` of an entry). As many entries as fit in
    /// `bytes_max`, each costing `entry_bytes` plus its name, rounded up to 8. With `with_stats`, each entry other than
    /// `.` and `..` counts one lookup on its node. Handle 0: the directory was not opened ([`STATELESS`]).
    Readdir {
        node: TreeNodeId,
        handle: Handle,
        offset: u64,
        bytes_max: u32,
        entry_bytes: u32,
        with_stats: bool,
    },
    /// Closes a directory.
    Releasedir { node: TreeNodeId, handle: Handle },
    /// A directory's entries to stable storage.
    Fsyncdir { node: TreeNodeId, handle: Handle, data_only: bool },
    /// The whole file system to stable storage.
    Syncfs { node: TreeNodeId },
    /// Figures of the file system.
    Statfs { node: TreeNodeId },
    /// Sets an extended attribute. `flags` are those of `setxattr(2)` (CREATE 1, REPLACE 2).
    Setxattr { node: TreeNodeId, name: &'a [u8], value: &'a [u8], flags: u32, kill_sgid: bool },
    /// Reads an extended attribute; `size_max` 0 asks for its size only.
    Getxattr { node: TreeNodeId, name: &'a [u8], size_max: u32 },
    /// Lists extended attributes' names, each ended by NUL; `size_max` 0 asks for the size only.
    Listxattr { node: TreeNodeId, size_max: u32 },
    /// Removes an extended attribute.
    Removexattr { node: TreeNodeId, name: &'a [u8] },
    /// `access(2)`: only asked where the kernel does not check permissions itself. `mask` is R 4, W 2, X 1.
    Access { node: TreeNodeId, mask: u32 },
    /// Which lock would stand in the way (`F_GETLK`).
    Getlk { node: TreeNodeId, handle: Handle, owner: u64, family: LockFamily, range: LockRange },
    /// Takes or releases a lock; with `wait` the answer comes when it is there.
    Setlk { node: TreeNodeId, handle: Handle, owner: u64, family: LockFamily, range: LockRange, wait: bool },
    /// `fallocate(2)`; `mode` are its flags.
    Fallocate { node: TreeNodeId, handle: Handle, offset: u64, length: u64, mode: u32 },
    /// `lseek(2)` with `SEEK_DATA` (3) or `SEEK_HOLE` (4).
    Lseek { node: TreeNodeId, handle: Handle, offset: u64, whence: u32 },
    /// Copies within the mount, at the server.
    CopyRange {
        from: TreeNodeId,
        from_handle: Handle,
        from_offset: u64,
        to: TreeNodeId,
        to_handle: Handle,
        to_offset: u64,
        length: u64,
    },
    /// Another call's caller was interrupted by a signal; answer that one with `Interrupted` if it waits. Never answered itself.
    Interrupt { call: CallId },
}

impl Call<'_> {
    /// The nodes that the kernel names in the call, and therefore knows.
    pub(crate) fn nodes(&self) -> [Option<TreeNodeId>; 2] {
        match *self {
            Call::Forget { .. } | Call::Interrupt { .. } => [None, None],
            Call::Rename { parent, to_parent, .. } => [Some(parent), Some(to_parent)],
            Call::Link { node, parent, .. } => [Some(node), Some(parent)],
            Call::CopyRange { from, to, .. } => [Some(from), Some(to)],
            Call::Lookup { parent, .. }
            | Call::Mknod { parent, .. }
            | Call::Mkdir { parent, .. }
            | Call::Symlink { parent, .. }
            | Call::Create { parent, .. }
            | Call::Tmpfile { parent, .. }
            | Call::Unlink { parent, .. }
            | Call::Rmdir { parent, .. } => [Some(parent), None],
            Call::Getattr { node, .. }
            | Call::Setattr { node, .. }
            | Call::Readlink { node }
            | Call::Open { node, .. }
            | Call::Read { node, .. }
            | Call::Write { node, .. }
            | Call::Flush { node, .. }
            | Call::Release { node, .. }
            | Call::Fsync { node, .. }
            | Call::Opendir { node }
            | Call::Readdir { node, .. }
            | Call::Releasedir { node, .. }
            | Call::Fsyncdir { node, .. }
            | Call::Syncfs { node }
            | Call::Statfs { node }
            | Call::Setxattr { node, .. }
            | Call::Getxattr { node, .. }
            | Call::Listxattr { node, .. }
            | Call::Removexattr { node, .. }
            | Call::Access { node, .. }
            | Call::Getlk { node, .. }
            | Call::Setlk { node, .. }
            | Call::Fallocate { node, .. }
            | Call::Lseek { node, .. } => [Some(node), None],
        }
    }
}

/// A node that a name was found to be, and how long that may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The node.
    pub node: TreeNodeId,
    /// Its attributes.
    pub stat: Stat,
    /// How long the name may be taken to mean this node.
    pub entry_ttl: Duration,
    /// How long the attributes may be believed.
    pub attr_ttl: Duration,
    /// The kernel may hold the node already: a lookup's answer may renew a name that it has.
    pub is_held: bool,
}

/// Instructions for the kernel's page cache of an opened file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageCache {
    /// Keep what it has: nothing changed since.
    Keep,
    /// The same; and `close` of a descriptor of it asks nothing: no [`Call::Flush`] comes, of this open file.
    Quiet,
    /// Drop what it has.
    Drop,
    /// Keep no pages: each read comes to us (still allowing mmap).
    Bypass,
    /// The same where the kernel maps files nonetheless that it keeps no pages of (Linux 6.6); else drop what it has.
    Avoid,
    /// As [`PageCache::Bypass`], closed as [`PageCache::Quiet`] is.
    QuietBypass,
}

/// A listed entry, `.` and `..` among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: Vec<u8>,
    /// The offset to ask from for what follows this entry.
    pub next: u64,
    /// `st_ino`.
    pub ino: u64,
    /// `st_mode`; the type bits at least.
    pub st_mode: u32,
    /// With `with_stats`: what a lookup would have answered. `None` for `.` and `..`.
    pub entry: Option<Entry>,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Failed.
    Fail(Errno),
    /// Done; nothing to say.
    Done,
    /// Lookup, mknod, mkdir, symlink, link.
    Entry(Entry),
    /// Lookup: there is no such name, and that may be believed for so long.
    NoEntry(Duration),
    /// Getattr, setattr.
    Attr(Stat, Duration),
    /// Open, opendir.
    Opened(Handle, PageCache),
    /// Create, tmpfile.
    Created(Entry, Handle, PageCache),
    /// Read, readlink, getxattr, listxattr.
    Data(Bytes),
    /// Getxattr, listxattr with `size_max` 0.
    Size(u32),
    /// Write, copy range: bytes done.
    Count(u32),
    /// Readdir; an empty one is the end.
    Listing(Vec<Listed>),
    /// Readdir of a directory that is not opened: the end, of which the kernel must not conclude that it has all of the listing.
    ListingEnd,
    /// Statfs.
    FsStat(FsStat),
    /// Getlk: the lock in the way, or `None`.
    Lock(Option<LockRange>),
    /// Lseek.
    Offset(u64),
}

/// Something the kernel should forget.
#[expect(missing_docs, reason = "the fields are the operands of the operation that the variant documents")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidate {
    /// A node's attributes and, from `offset` on for `length` bytes (0: to the end), its pages. `offset` < 0: attributes only.
    Node { node: TreeNodeId, offset: i64, length: i64 },
    /// The cached listing of a directory that the kernel reads without opening it. No call in progress holds the locks that this takes.
    Listing { node: TreeNodeId },
    /// The meaning of a name. A directory may be the working directory of a program, which must not notice if the name keeps its meaning.
    Entry { parent: TreeNodeId, name: Vec<u8>, is_directory: bool },
}
