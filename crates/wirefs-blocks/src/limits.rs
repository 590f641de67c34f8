//! All limits of the block tree, with compile-time checks of their relations.

use wirefs_op::limits::{NAME_BYTES_MAX, XATTR_BYTES_MAX};

/// The minimum block payload of a store, in bytes: the payload of an echo packet at the minimum MTU of IPv6.
pub const PAYLOAD_BYTES_MIN: usize = 1200;
/// The maximum block payload, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024;
/// The maximum size of head and index blocks, in bytes. It bounds write amplification: each change writes a
/// path of them.
pub const NODE_BYTES_MAX: usize = 8 * 1024;
/// The maximum size of an inline file, in bytes.
pub const INLINE_BYTES_MAX: usize = 4096;
/// The maximum overhead of a head beside its inline data, including its key and the fields of the block, in
/// bytes.
pub const HEAD_ROOM_BYTES: usize = 160;
/// The maximum overhead of a contents block (code and key), in bytes.
pub const CONTENTS_ROOM_BYTES: usize = 22;
/// The maximum size of an encoded block id (counter difference and node), in bytes.
pub const ID_BYTES_MAX: usize = 11;
/// The maximum height of the B-tree. Sixteen levels with a fan-out of twenty exceed the number of block ids.
pub const LEVELS_MAX: u8 = 16;
/// The contents blocks in a run.
pub const RUN_PIECES: u64 = 32;
/// The maximum number of directory entries, or attributes of an object, with equal name hashes.
pub const HASH_COLLISIONS_MAX: u64 = 255;
/// The maximum number of extended attributes of an object.
pub const XATTRS_MAX: u32 = 1024;
/// The maximum size of an inline attribute value, in bytes.
pub const XATTR_INLINE_BYTES_MAX: usize = 256;
/// The runs that one step of `SEEK_HOLE` reads.
pub const SEEK_RUNS_MAX: usize = 64;
/// The maximum file size, in bytes: POSIX offsets are signed.
pub const SIZE_MAX: u64 = i64::MAX as u64;
/// The maximum number of checkpoints.
pub const CHECKPOINTS_MAX: usize = 256;
/// The runs that one change removes at most; later changes remove the rest.
pub const RUNS_REMOVED_MAX: usize = 64;
/// The blocks of a destroyed tree that one step of collection reads.
pub const REAP_BLOCKS_MAX: usize = 128;
/// The orphans in memory; further ones are read from the tree when these are done.
pub const BACKLOG_MAX: usize = 1024;
/// The blocks that one step of a sweep reads.
pub const SWEEP_BATCH: usize = 256;
/// The file data that one request holds in memory, in bytes.
pub const WINDOW_BYTES_MAX: usize = 1024 * 1024;
/// A sequential reader requests blocks ahead once in each such part of a file, in bytes.
pub const READ_AHEAD_STEP_BYTES: u64 = 64 * 1024;
/// The directory entries that one step of a listing reads.
pub const LISTING_ENTRIES_MAX: usize = 1024;
/// The adjacent head blocks that a scan retrieves in parallel.
pub const READAHEAD_MAX: usize = 16;
/// The head blocks that are requested as hints after a required one.
pub const HINTS_MAX: usize = 8;
/// The maximum number of bytes that one request copies; the client repeats the request for more.
pub const COPY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Ids skipped when a tree is opened: more than aborted changes can have used.
pub const IDS_SKIPPED: u64 = 1 << 24;
/// The optimistic attempts of a reader before it blocks changes.
pub const READ_TRIES_MAX: usize = 4;
/// The maximum number of retrievals in one operation: a few tree heights for each of many path components.
pub const ROUNDS_MAX: usize = 4096;
/// Blocks reserved for changes that free space, unless the store needs fewer.
pub const RESERVED_BLOCKS: u64 = 64;
/// The blocks that a comparison of two trees retrieves in parallel.
pub const COMPARE_BATCH: usize = 256;
/// The maximum number of differing items in a comparison.
pub const DIFFERENCES_MAX: usize = 100_000;

const _: () = assert!(NODE_BYTES_MAX <= PAYLOAD_BYTES_MAX, "a node is a block");
const _: () = assert!(RUN_PIECES <= 32, "a run marks its pieces in 32 bits");
const _: () = assert!(
    (RUN_PIECES as usize) * ID_BYTES_MAX + HEAD_ROOM_BYTES <= PAYLOAD_BYTES_MIN,
    "a run fits the smallest block"
);
const _: () = assert!(
    XATTR_BYTES_MAX.div_ceil(PAYLOAD_BYTES_MIN - CONTENTS_ROOM_BYTES) * ID_BYTES_MAX
        + NAME_BYTES_MAX
        + HEAD_ROOM_BYTES
        <= PAYLOAD_BYTES_MIN,
    "the ids of the contents blocks of the largest attribute fit the smallest block"
);
