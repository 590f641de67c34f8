//! Limits of the store.

use wirefs_cache::PIECE_BYTES;

/// A segment is closed when it is longer than this, in bytes, or than an eighth of the limit.
pub const SEGMENT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// The minimum limit of all segments, in bytes.
pub const DISK_CACHE_BYTES_MIN: u64 = 1024 * 1024;
/// Pieces in the index. One takes about 100 bytes of memory.
pub const PIECES_MAX: usize = 262_144;
/// The maximum length of a snapshot, in bytes.
pub const SNAPSHOT_BYTES_MAX: u64 = 160 * 1024 * 1024;
/// Listings share one checksum up to this length, in bytes.
pub const CHUNK_BYTES: usize = 1024 * 1024;
/// The longest identity of a server, in bytes.
pub const IDENTITY_BYTES_MAX: usize = 1024;

const _: () = assert!(DISK_CACHE_BYTES_MIN >= 8 * PIECE_BYTES, "a segment holds a piece");
const _: () = assert!(
    SNAPSHOT_BYTES_MAX as usize > 2 * wirefs_cache::inactive_listings::INACTIVE_BYTES_MAX,
    "the inactive list fits a snapshot, with the overhead of each listing"
);
