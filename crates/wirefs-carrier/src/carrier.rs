//! The parts of every carrier: a frame source, a frame sink, a closer, and information about the peer.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use wirefs_op::Frame;

use crate::closer::Closer;
use crate::gauge::Gauge;
use crate::in_process::InProcessPeer;
use crate::lost::CarrierLost;
use crate::tls::PublicKey;

/// The peer at the other end, for status and messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// The kind of carrier: `unix`, `tcp+tls`, `tcp+plain`, `ether`, `ssh`, `stdio` or `memory`.
    pub carrier: &'static str,
    /// The peer's address, as users write it.
    pub address: String,
    /// The key that the peer proved to own; `None` if the carrier has no key authentication.
    pub identity: Option<PublicKey>,
    /// The known-hosts file, if this dial pinned the peer's key for the first time.
    pub pinned_in: Option<PathBuf>,
}

impl PeerInfo {
    /// Returns the host that the peer's connections count for; `None` for the one peer of a pipe. An IPv6 network of 64
    /// bits counts as one host, since each machine has a whole one.
    pub fn host(&self) -> Option<String> {
        match self.carrier {
            "tcp+plain" | "tcp+tls" => {
                Some(self.address.parse().map_or_else(|_| self.address.clone(), host_of))
            }
            "unix" | "ether" => Some(self.address.clone()),
            _ => None,
        }
    }

    /// Returns the information about a peer without a key.
    pub(crate) fn plain(carrier: &'static str, address: impl Into<String>) -> Self {
        Self { carrier, address: address.into(), identity: None, pinned_in: None }
    }
}

/// Returns the host of a socket address.
pub(crate) fn host_of(address: SocketAddr) -> String {
    match address.ip().to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("{:x}", address.to_bits() >> 64),
    }
}

/// One connection to a peer. Its two directions are independent and usually used by two threads.
pub struct Carrier {
    /// The receiving direction.
    pub source: Box<dyn FrameSource>,
    /// The sending direction; most callers wrap it in a [`crate::SendQueue`].
    pub sink: Box<dyn FrameSink>,
    /// Ends both directions, from any thread.
    pub closer: Closer,
    /// The peer.
    pub peer: PeerInfo,
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carrier").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// The receiving direction.
pub trait FrameSource: Send {
    /// Blocks for the next message and returns its body, without the length prefix. Returns `None` if the peer closed
    /// between two messages.
    ///
    /// # Errors
    /// Fails if the carrier is lost; all later calls fail too.
    ///
    /// # Cost
    /// One system call receives all messages that have arrived. A body over 32 KiB shares the receive buffer (no copy),
    /// and keeps [`crate::RECEIVE_BYTES_MAX`] bytes alive while it is held.
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost>;
}

/// The result of a [`FrameSink::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendProgress {
    /// The kernel has all frames; the queue is empty.
    Drained,
    /// The kernel's buffer is full; see [`FrameSink::wait_writable`]. If a frame is half written, the sink keeps the
    /// rest, and the next call continues with it.
    Blocked,
}

/// The sending direction.
pub trait FrameSink: Send {
    /// Writes as much as fits and never blocks. Pops frames from the front of the queue, in order.
    ///
    /// # Errors
    /// Fails if the carrier is lost; frames popped before may or may not have arrived.
    ///
    /// # Cost
    /// About one system call per 32 frames; frame data is not copied, except for encryption.
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost>;

    /// Blocks until another [`send`](Self::send) can make progress, at most `timeout`. Returns `false` on a timeout.
    ///
    /// # Errors
    /// Fails if the carrier is lost.
    fn wait_writable(&mut self, timeout: Duration) -> Result<bool, CarrierLost>;

    /// Returns when [`free_unused`](Self::free_unused) is due, if that frees memory.
    fn free_due(&self) -> Option<Instant> {
        None
    }

    /// Frees memory that only a busy sink needs, if it was idle until `now`. Like a [`send`](Self::send) without frames, it
    /// writes as much as fits.
    ///
    /// # Errors
    /// Fails if the carrier is lost.
    fn free_unused(&mut self, _now: Instant) -> Result<SendProgress, CarrierLost> {
        self.send(&mut VecDeque::new())
    }

    /// Returns a reader of TCP send statistics, if the carrier is a TCP connection.
    fn gauge(&self) -> Option<Gauge> {
        None
    }

    /// Returns whether both directions of the carrier may have packed messages, if the sessions agree on them
    /// ([`wirefs_op::packed`]).
    fn packs(&self) -> bool {
        false
    }

    /// Returns the peer for direct calls, if it is in this process.
    fn in_process(&self) -> Option<Arc<dyn InProcessPeer>> {
        None
    }
}
