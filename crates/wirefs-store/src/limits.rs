//! What the store may grow to.

use wirefs_cache::PIECE_BYTES;

/// A segment is closed once it is longer than this, in bytes, or than an eighth of all.
pub const SEGMENT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// The least that all segments may be bounded by, in bytes.
pub const CONTENTS_BYTES_MIN: u64 = 1024 * 1024;
/// Pieces that the store knows of, at most. One takes about 100 bytes of memory.
pub const PIECES_MAX: usize = 262_144;
/// A snapshot is no longer than this, in bytes.
pub const SNAPSHOT_BYTES_MAX: u64 = 160 * 1024 * 1024;
/// Listings are gathered up to this length before they are written with one checksum, in bytes.
pub const CHUNK_BYTES: usize = 1024 * 1024;
/// The longest identity of a server, in bytes.
pub const IDENTITY_BYTES_MAX: usize = 1024;

const _: () = assert!(CONTENTS_BYTES_MIN >= 8 * PIECE_BYTES, "a segment holds a piece");
const _: () = assert!(
    SNAPSHOT_BYTES_MAX as usize > 2 * wirefs_cache::inactive_listings::INACTIVE_BYTES_MAX,
    "what a shelf holds fits a snapshot, with what each listing costs there"
);
