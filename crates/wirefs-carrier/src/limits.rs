//! Every limit of the carriers, named once.

use std::time::Duration;

use wirefs_op::limits::{DATA_BYTES_MAX, MESSAGE_BYTES_MAX};

/// The least that is asked of a carrier at once, in bytes; an idle carrier's receive buffer.
pub(crate) const READ_BYTES_MIN: usize = 16 * 1024;
/// The most that is asked of a carrier at once, in bytes.
pub(crate) const READ_BYTES_MAX: usize = 512 * 1024;
/// The receive buffer of a busy carrier, in bytes. One held body keeps at most this much memory alive.
pub const RECEIVE_BYTES_MAX: usize = wirefs_slab::SLAB_BYTES;
/// A body up to this size, in bytes, is copied out of the receive buffer instead of sharing it: so what is held is at
/// least one part in 64 of what it keeps alive.
pub(crate) const COPY_BYTES_MAX: usize = RECEIVE_BYTES_MAX / 64;
/// Slices in one gathering write: two per frame.
pub(crate) const WRITE_SLICES_MAX: usize = 64;
/// Bulk frames handed to the sink before the outbox looks for urgent ones again, in bytes.
pub(crate) const BULK_BATCH_BYTES: usize = 256 * 1024;
/// What one thread writes inline for itself and others before the writer thread takes over, in bytes.
pub(crate) const INLINE_BYTES_MAX: u64 = 1024 * 1024;
/// Bulk bytes in an outbox above which [`crate::Outbox::push_wait`] waits.
pub const OUTBOX_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes the kernel holds unsent on a TCP carrier before it counts as blocked. A small frame waits behind no more.
pub(crate) const NOTSENT_BYTES_MAX: u32 = 128 * 1024;
/// Silence of the peer's TCP, with data outstanding, after which the carrier is lost.
pub(crate) const TCP_SILENCE_MAX: Duration = Duration::from_secs(30);
/// Idle time before TCP probes the peer, and the time between two probes.
pub(crate) const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// The time between two keepalive probes.
pub(crate) const KEEPALIVE_STEP: Duration = Duration::from_secs(5);
/// Time for a connection to stand, unless the caller says otherwise.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that may be between accept and the end of their handshake; more are closed at once.
pub const PENDING_MAX: usize = 256;

const _: () = assert!(
    RECEIVE_BYTES_MAX >= READ_BYTES_MAX + MESSAGE_BYTES_MAX,
    "a receive buffer holds an unfinished message and what is asked for behind it"
);
const _: () = assert!(BULK_BATCH_BYTES >= DATA_BYTES_MAX, "a batch holds at least one full frame");
const _: () = assert!(OUTBOX_BYTES_MAX >= 4 * BULK_BATCH_BYTES, "the outbox can keep the sink busy");
