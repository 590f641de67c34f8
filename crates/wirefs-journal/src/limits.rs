//! What the journal may grow to, and how much of it is under way at once.

use wirefs_op::limits::{LEDGER_MAX, MESSAGE_BYTES_MAX, REQUESTS_MAX};

/// A segment is no longer than this, in bytes, but for the record that it begins with.
pub const SEGMENT_BYTES: u64 = 16 * 1024 * 1024;
/// A disk has these, in bytes, or has not: what it was not given of a new file is zeros.
pub const SECTOR_BYTES: usize = 512;
/// So many bytes are written to a segment before the disk is told to begin with them: as few as cost nothing, since who waits waits for the
/// rest.
pub const BEGUN_BYTES: u64 = 4 * 1024 * 1024;
/// Segments of which the local disk may not have all, or that it has yet to remove, at most, before whoever changes something waits for it.
/// They are 1 GiB: as much as a disk may be late by, and more than a line of 1 Gbit/s brings to a server in the 5 s after which it is asked
/// whether its disk has it.
pub const BEHIND_SEGMENTS_MAX: usize = 64;
/// The longest record or note, in bytes: a message without its size word.
pub const BODY_BYTES_MAX: usize = MESSAGE_BYTES_MAX;
/// The longest name in a header (of the server, its directory, the source as the user wrote it), in bytes.
pub const NAME_BYTES_MAX: usize = 64 * 1024;
/// Changes that a replay has under way, at most.
pub const UNDER_WAY_MAX: usize = 1024;
/// Their bytes, at most, before another one goes.
pub const UNDER_WAY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Changes after which a replay tells the server anew which replies have come.
pub const TOLD_AGAIN: u64 = 1024;

const _: () = assert!(UNDER_WAY_MAX < REQUESTS_MAX, "each change under way has a tag, and so has the commit");
const _: () = assert!(
    UNDER_WAY_MAX as u64 + TOLD_AGAIN < LEDGER_MAX,
    "a change waits for the oldest one under way before it is too far ahead of what was told"
);
const _: () = assert!(BEGUN_BYTES <= SEGMENT_BYTES / 2, "a segment is begun before it is full");
const _: () = assert!(SEGMENT_BYTES > 16 * BODY_BYTES_MAX as u64, "a segment holds several records");
