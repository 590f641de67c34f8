//! The limits of a 9P conversation; relations between them are checked at compile time.

use wirefs_op::limits::{DATA_BYTES_MAX, TARGET_BYTES_MAX};

/// The bytes of a message besides its data, at most, for messages with data (`IOHDRSZ`).
pub const DATA_HEAD_BYTES: u32 = 24;
/// The largest message that a server agrees to, in bytes.
pub const MSIZE_MAX: u32 = DATA_BYTES_MAX as u32 + DATA_HEAD_BYTES;
/// The smallest message size that a client may ask for, in bytes: a stat with its names fits.
pub const MSIZE_MIN: u32 = 2048;
/// The longest string, in bytes: the target of a symbolic link.
pub const STRING_BYTES_MAX: usize = TARGET_BYTES_MAX;
/// The maximal number of names in a Twalk (`MAXWELEM`).
pub const WALK_NAMES_MAX: usize = 16;
/// The maximal number of fids of one conversation.
pub const FIDS_MAX: usize = 16 * 1024;
/// The maximal number of requests of one conversation that are executed or wait for that.
pub const REQUESTS_MAX: usize = 256;
/// The maximal depth of a directory that a fid stands for.
pub const DEPTH_MAX: usize = 1024;
/// The maximal number of processes that hold locks through one open file.
pub const LOCK_OWNERS_MAX: usize = 1024;
/// The bytes of a directory entry in 9P2000.L besides its name: `qid[13] offset[8] type[1] name[s]`.
pub const ENTRY_HEAD_BYTES: u32 = 24;

const _: () = assert!(
    STRING_BYTES_MAX + WALK_NAMES_MAX * 257 <= MSIZE_MAX as usize,
    "the longest request without data fits into a message"
);
