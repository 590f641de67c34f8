//! Every limit of the block tree, named once, with the relations between them checked at compile time.

use wirefs_op::limits::{NAME_BYTES_MAX, XATTR_BYTES_MAX};

/// The smallest payload that a store may carry in one block, in bytes: what an echo over IPv6's smallest MTU holds.
pub const PAYLOAD_BYTES_MIN: usize = 1200;
/// The largest payload that is used, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024;
/// Head and link blocks are at most so large, in bytes, however large the payload: each change writes a path of them.
pub const NODE_BYTES_MAX: usize = 8 * 1024;
/// A file of at most so many bytes sits in its head block, where that has room for it.
pub const INLINE_BYTES_MAX: usize = 4096;
/// What a head takes beside the bytes that sit in it, with its key and the block's own fields, at most, in bytes.
pub const HEAD_ROOM_BYTES: usize = 160;
/// What a contents block takes beside its data, at most, in bytes: its code and its key.
pub const CONTENTS_ROOM_BYTES: usize = 22;
/// An encoded block id, in bytes at most: the step of the counter and the node.
pub const ID_BYTES_MAX: usize = 11;
/// Levels of link blocks at most. Sixteen times a fan-out of twenty is more than all block ids.
pub const LEVELS_MAX: u8 = 16;
/// Contents blocks that one run names.
pub const RUN_PIECES: u64 = 32;
/// Names of one directory, or attributes of one object, whose hashes are the same, at most.
pub const TWINS_MAX: u64 = 255;
/// Extended attributes of one object.
pub const XATTRS_MAX: u32 = 1024;
/// An attribute's value of at most so many bytes sits beside its object's head.
pub const XATTR_INLINE_BYTES_MAX: usize = 256;
/// Runs that one step of a search for a hole looks at.
pub const SEEK_RUNS_MAX: usize = 64;
/// The largest file, in bytes: offsets are signed in POSIX.
pub const SIZE_MAX: u64 = i64::MAX as u64;
/// Checkpoints at a time.
pub const CHECKPOINTS_MAX: usize = 256;
/// Runs of contents that one change removes at most; more are removed by the changes after it.
pub const RUNS_REMOVED_MAX: usize = 64;
/// Blocks of a checkpoint that is being dropped, looked at in one step of collection.
pub const REAP_BLOCKS_MAX: usize = 128;
/// Names of objects that wait to be removed, known at a time; the rest stay in the tree until these are done.
pub const BACKLOG_MAX: usize = 1024;
/// Blocks that one step of a sweep looks at.
pub const STRAYS_BATCH: usize = 256;
/// Bytes of contents that one request has in memory at a time.
pub const WINDOW_BYTES_MAX: usize = 1024 * 1024;
/// Entries of a directory that one piece of a listing looks at, at most.
pub const LISTING_ENTRIES_MAX: usize = 1024;
/// Neighbouring head blocks that are retrieved at once while a range of keys is walked.
pub const AHEAD_MAX: usize = 16;
/// Head blocks behind one that is waited for, which are taken where they come by.
pub const HINTS_MAX: usize = 8;
/// Bytes copied by one request at most; whoever wants more asks again.
pub const COPY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Ids that are skipped when a tree is opened: more than changes can have used that came to nothing.
pub const IDS_SKIPPED: u64 = 1 << 24;
/// How often a reader begins again because what it reads was changed, before it asks the changes to wait.
pub const READ_TRIES_MAX: usize = 4;
/// Times that one operation may wait for blocks: the levels of a few trees for each of many names.
pub const ROUNDS_MAX: usize = 4096;
/// Blocks kept free for changes that make room, where a store needs no more.
pub const RESERVED_BLOCKS: u64 = 64;
/// Blocks that a comparison of two trees waits for at once.
pub const COMPARED_AHEAD_MAX: usize = 256;
/// Items that may differ where two trees are compared.
pub const DIFFERENCES_MAX: usize = 100_000;

const _: () = assert!(NODE_BYTES_MAX <= PAYLOAD_BYTES_MAX, "a node is a block");
const _: () = assert!(RUN_PIECES <= 32, "a run says in 32 bits which pieces are there");
const _: () = assert!(
    (RUN_PIECES as usize) * ID_BYTES_MAX + HEAD_ROOM_BYTES <= PAYLOAD_BYTES_MIN,
    "a run fits the smallest block"
);
const _: () = assert!(
    XATTR_BYTES_MAX.div_ceil(PAYLOAD_BYTES_MIN - CONTENTS_ROOM_BYTES) * ID_BYTES_MAX
        + NAME_BYTES_MAX
        + HEAD_ROOM_BYTES
        <= PAYLOAD_BYTES_MIN,
    "the largest attribute's contents are named in the smallest block"
);
