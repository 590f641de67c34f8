//! Limits of the journal's size and of the changes in flight.

use wirefs_op::limits::{LEDGER_MAX, MESSAGE_BYTES_MAX, REQUESTS_MAX};

/// The length of a segment, in bytes. Only its first record may make it longer.
pub const SEGMENT_BYTES: u64 = 16 * 1024 * 1024;
/// The unit in which a disk writes or does not write, in bytes. An unwritten sector of a new file reads as zeros.
pub const SECTOR_BYTES: usize = 512;
/// Write-out of a segment starts after each such number of bytes: few, because a caller of `fsync` waits for the rest.
pub const WRITE_OUT_BYTES: u64 = 4 * 1024 * 1024;
/// Segments that the local disk has not synced or not removed before callers that change something wait. They hold 1 GiB: more than a line of
/// 1 Gbit/s brings to a server in the 5 s between two syncs of the server.
pub const BACKLOG_SEGMENTS_MAX: usize = 64;
/// The longest body of an entry, in bytes: a message without its size word.
pub const BODY_BYTES_MAX: usize = MESSAGE_BYTES_MAX;
/// The longest name in a header (server, directory, source as the user wrote it), in bytes.
pub const NAME_BYTES_MAX: usize = 64 * 1024;
/// Changes in flight in a delivery.
pub const IN_FLIGHT_MAX: usize = 1024;
/// Bytes in flight in a delivery, above which no other change is sent.
pub const IN_FLIGHT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Changes after which a delivery announces to the server which replies have arrived.
pub const ANNOUNCE_EACH: u64 = 1024;

const _: () = assert!(IN_FLIGHT_MAX < REQUESTS_MAX, "each change in flight has a tag, and so has the commit");
const _: () = assert!(
    IN_FLIGHT_MAX as u64 + ANNOUNCE_EACH < LEDGER_MAX,
    "a change waits for the oldest one in flight before it is too far above the announced number"
);
const _: () = assert!(WRITE_OUT_BYTES <= SEGMENT_BYTES / 2, "write-out starts before a segment is full");
const _: () = assert!(SEGMENT_BYTES > 16 * BODY_BYTES_MAX as u64, "a segment holds several records");
