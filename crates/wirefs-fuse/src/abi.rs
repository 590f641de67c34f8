//! The numbers of the kernel's FUSE interface in `include/uapi/linux/fuse.h` (ABI 7.31 to 7.45). Structures are not
//! mirrored: they are read and written field by field, in the order of that header.

/// The major version of the interface.
pub(crate) const MAJOR: u32 = 7;
/// The newest minor version that this crate supports.
pub(crate) const MINOR: u32 = 45;
/// The oldest minor version that it supports (Linux 5.4).
pub(crate) const MINOR_MIN: u32 = 31;
/// The first minor version with FUSE_NOTIFY_INC_EPOCH (Linux 6.16).
pub(crate) const MINOR_INC_EPOCH: u32 = 44;
/// The first minor version with FUSE_NOTIFY_PRUNE (Linux 6.18).
pub(crate) const MINOR_PRUNE: u32 = 45;

/// `struct fuse_out_header`, in bytes.
pub(crate) const OUT_HEADER_BYTES: usize = 16;
/// `struct fuse_in_header`, in bytes.
pub(crate) const IN_HEADER_BYTES: usize = 40;
/// `struct fuse_write_in`, in bytes.
pub(crate) const WRITE_IN_BYTES: usize = 40;
/// `struct fuse_init_in` since 7.36, in bytes; before 7.36 its first 16 bytes.
pub(crate) const INIT_IN_BYTES: usize = 64;
/// `struct fuse_entry_out`, in bytes.
pub(crate) const ENTRY_OUT_BYTES: usize = 128;
/// `struct fuse_dirent` without its name, in bytes.
pub(crate) const DIRENT_BYTES: u32 = 24;
/// `struct fuse_direntplus` without its name, in bytes.
pub(crate) const DIRENTPLUS_BYTES: u32 = 152;

/// Room in a receive buffer beside the data of a write, in bytes: headers and names, at least the kernel's minimum
/// (8 KiB).
pub(crate) const READ_SLACK_BYTES: usize = 8192;

/// The kernel reads a symlink's target into a page without its last byte.
pub(crate) const TARGET_BYTES_MAX: u32 = 4095;

/// Operations.
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const SETXATTR: u32 = 21;
    pub(crate) const GETXATTR: u32 = 22;
    pub(crate) const LISTXATTR: u32 = 23;
    pub(crate) const REMOVEXATTR: u32 = 24;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const GETLK: u32 = 31;
    pub(crate) const SETLK: u32 = 32;
    pub(crate) const SETLKW: u32 = 33;
    pub(crate) const ACCESS: u32 = 34;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const IOCTL: u32 = 39;
    pub(crate) const NOTIFY_REPLY: u32 = 41;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
    pub(crate) const READDIRPLUS: u32 = 44;
    pub(crate) const RENAME2: u32 = 45;
    pub(crate) const LSEEK: u32 = 46;
    pub(crate) const COPY_FILE_RANGE: u32 = 47;
    pub(crate) const SYNCFS: u32 = 50;
    pub(crate) const TMPFILE: u32 = 51;
    pub(crate) const STATX: u32 = 52;
    pub(crate) const COPY_FILE_RANGE_64: u32 = 53;
}

/// Features that are negotiated in INIT. The upper half has its own word (`flags2`).
pub(crate) mod feature {
    pub(crate) const ASYNC_READ: u64 = 1 << 0;
    pub(crate) const POSIX_LOCKS: u64 = 1 << 1;
    pub(crate) const ATOMIC_O_TRUNC: u64 = 1 << 3;
    pub(crate) const BIG_WRITES: u64 = 1 << 5;
    pub(crate) const DONT_MASK: u64 = 1 << 6;
    pub(crate) const FLOCK_LOCKS: u64 = 1 << 10;
    pub(crate) const AUTO_INVAL_DATA: u64 = 1 << 12;
    pub(crate) const DO_READDIRPLUS: u64 = 1 << 13;
    pub(crate) const READDIRPLUS_AUTO: u64 = 1 << 14;
    pub(crate) const ASYNC_DIO: u64 = 1 << 15;
    pub(crate) const PARALLEL_DIROPS: u64 = 1 << 18;
    pub(crate) const POSIX_ACL: u64 = 1 << 20;
    pub(crate) const ABORT_ERROR: u64 = 1 << 21;
    pub(crate) const MAX_PAGES: u64 = 1 << 22;
    pub(crate) const CACHE_SYMLINKS: u64 = 1 << 23;
    pub(crate) const NO_OPENDIR_SUPPORT: u64 = 1 << 24;
    pub(crate) const EXPLICIT_INVAL_DATA: u64 = 1 << 25;
    pub(crate) const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
    pub(crate) const SETXATTR_EXT: u64 = 1 << 29;
    pub(crate) const INIT_EXT: u64 = 1 << 30;
    pub(crate) const DIRECT_IO_ALLOW_MMAP: u64 = 1 << 36;
    /// Since 7.39 (Linux 6.7).
    pub(crate) const NO_EXPORT_SUPPORT: u64 = 1 << 38;
}

/// The valid fields of a SETATTR.
pub(crate) mod setattr {
    pub(crate) const MODE: u32 = 1 << 0;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
    pub(crate) const ATIME: u32 = 1 << 4;
    pub(crate) const MTIME: u32 = 1 << 5;
    pub(crate) const HANDLE: u32 = 1 << 6;
    pub(crate) const ATIME_NOW: u32 = 1 << 7;
    pub(crate) const MTIME_NOW: u32 = 1 << 8;
    pub(crate) const KILL_SUIDGID: u32 = 1 << 11;
}

/// Flags in the answer to OPEN, OPENDIR and CREATE.
pub(crate) mod opened {
    pub(crate) const DIRECT_IO: u32 = 1 << 0;
    pub(crate) const KEEP_CACHE: u32 = 1 << 1;
    pub(crate) const CACHE_DIR: u32 = 1 << 3;
    /// Since 7.35; older kernels ignore it.
    pub(crate) const NOFLUSH: u32 = 1 << 5;
    pub(crate) const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
}

/// GETATTR: the handle is valid.
pub(crate) const GETATTR_HANDLE: u32 = 1 << 0;
/// WRITE: from the page cache.
pub(crate) const WRITE_CACHE: u32 = 1 << 0;
/// WRITE: clear setuid and setgid bits.
pub(crate) const WRITE_KILL_SUIDGID: u32 = 1 << 2;
/// RELEASE: release the flock locks of the open file.
pub(crate) const RELEASE_FLOCK_UNLOCK: u32 = 1 << 1;
/// FSYNC, FSYNCDIR: data only.
pub(crate) const FSYNC_DATA_ONLY: u32 = 1 << 0;
/// SETXATTR: clear the setgid bit, for an access ACL.
pub(crate) const SETXATTR_KILL_SGID: u32 = 1 << 0;
/// GETLK, SETLK, SETLKW: a `flock` lock, not a POSIX one.
pub(crate) const LOCK_FLOCK: u32 = 1 << 0;

/// Lock types of `fcntl(2)` on all architectures but Alpha, PA-RISC and SPARC.
pub(crate) mod lock {
    pub(crate) const READ: u32 = 0;
    pub(crate) const WRITE: u32 = 1;
    pub(crate) const UNLOCK: u32 = 2;
    /// The kernel's "to the end of the file".
    pub(crate) const OFFSET_MAX: u64 = i64::MAX as u64;
}

/// `STATX_BASIC_STATS`: all fields of `stat(2)`, without the birth time.
pub(crate) const STATX_BASIC: u32 = 0x7ff;

/// Codes of notifications to the kernel.
pub(crate) mod notify {
    pub(crate) const INVALIDATE_INODE: i32 = 2;
    pub(crate) const INVALIDATE_ENTRY: i32 = 3;
    /// A flag of INVALIDATE_ENTRY since 7.38 (Linux 6.2; older kernels ignore it).
    pub(crate) const EXPIRE_ONLY: u32 = 1 << 0;
    /// `FUSE_NOTIFY_INC_EPOCH`: invalidates all cached names.
    pub(crate) const INC_EPOCH: i32 = 8;
    /// `FUSE_NOTIFY_PRUNE`: evicts unused inodes. It takes no directory lock.
    pub(crate) const PRUNE: i32 = 9;
}
