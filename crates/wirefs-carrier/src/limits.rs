//! Limits of the carriers.

use std::time::Duration;

use wirefs_op::limits::{DATA_BYTES_MAX, MESSAGE_BYTES_MAX};

/// The smallest read, in bytes; an idle carrier's receive buffer.
pub(crate) const READ_BYTES_MIN: usize = 16 * 1024;
/// The largest read, in bytes.
pub(crate) const READ_BYTES_MAX: usize = 512 * 1024;
/// The receive buffer of a busy carrier, in bytes. One held body keeps at most this much memory alive.
pub const RECEIVE_BYTES_MAX: usize = wirefs_slab::SLAB_BYTES;
/// Larger bodies share the receive buffer, smaller ones are copied, in bytes: so a held body is at least 1/64 of the
/// memory that it keeps alive.
pub(crate) const COPY_BYTES_MAX: usize = RECEIVE_BYTES_MAX / 64;
/// Slices in one gathering write: two per frame.
pub(crate) const WRITE_SLICES_MAX: usize = 64;
/// Bulk bytes given to the sink before the queue checks for urgent frames again.
pub(crate) const BULK_BATCH_BYTES: usize = 256 * 1024;
/// Bytes that one thread writes inline, for itself and others, before the writer thread takes over.
pub(crate) const INLINE_BYTES_MAX: u64 = 1024 * 1024;
/// Bulk bytes in a send queue above which [`crate::SendQueue::push_wait`] blocks.
pub const SEND_QUEUE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Unsent bytes in the kernel at which a TCP carrier counts as blocked (`TCP_NOTSENT_LOWAT`). A small frame waits for
/// no more than these.
pub(crate) const NOTSENT_BYTES_MAX: u32 = 128 * 1024;
/// A TCP carrier with unacknowledged data is lost after this time (`TCP_USER_TIMEOUT`).
pub(crate) const TCP_SILENCE_MAX: Duration = Duration::from_secs(30);
/// Idle time before the first TCP keepalive probe.
pub(crate) const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// The interval of keepalive probes.
pub(crate) const KEEPALIVE_STEP: Duration = Duration::from_secs(5);
/// Default timeout of connecting.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time of a lingering close, in which a peer can read the last message.
pub(crate) const LINGER_TIME: Duration = Duration::from_secs(5);
/// Bytes that a peer may still send meanwhile.
pub(crate) const LINGER_BYTES_MAX: usize = 256 * 1024;
/// Lingering closes of a process at a time.
pub(crate) const LINGERING_MAX: usize = 64;
/// Accepted connections whose handshake is unfinished. With more, the oldest one of the host with the most is closed.
pub const PENDING_MAX: usize = 256;

const _: () = assert!(
    RECEIVE_BYTES_MAX >= READ_BYTES_MAX + MESSAGE_BYTES_MAX,
    "a receive buffer holds an unfinished message and the next read"
);
const _: () = assert!(BULK_BATCH_BYTES >= DATA_BYTES_MAX, "a batch holds at least one full frame");
const _: () = assert!(SEND_QUEUE_BYTES_MAX >= 4 * BULK_BATCH_BYTES, "the send queue can keep the sink busy");
