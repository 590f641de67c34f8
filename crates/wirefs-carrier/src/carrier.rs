//! What every carrier is: a source and a sink of frames, a closer, and a word about the peer.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wirefs_op::Frame;

use crate::closer::Closer;
use crate::direct::Direct;
use crate::gauge::Gauge;
use crate::lost::CarrierLost;
use crate::tls::PublicKey;

/// Who is at the other end, for status and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInfo {
    /// The kind of carrier: `unix`, `tcp+tls`, `tcp+plain`, `ether`, `ssh`, `stdio` or `memory`.
    pub carrier: &'static str,
    /// The peer's address as a person would write it.
    pub address: String,
    /// The key that the peer proved to own, where the carrier authenticates by keys.
    pub identity: Option<PublicKey>,
    /// Set when this dial met the peer for the first time and pinned its key: the known-hosts file it now stands in.
    pub pinned_in: Option<PathBuf>,
}

impl PeerInfo {
    /// A peer that has no key.
    pub(crate) fn plain(carrier: &'static str, address: impl Into<String>) -> Self {
        Self { carrier, address: address.into(), identity: None, pinned_in: None }
    }
}

/// One connection to a peer. Its two directions are independent and usually live in two threads.
pub struct Carrier {
    /// Where the peer's messages come from.
    pub source: Box<dyn FrameSource>,
    /// Where messages to the peer go; most callers put an [`crate::Outbox`] in front of it.
    pub sink: Box<dyn FrameSink>,
    /// Ends both directions, from any thread.
    pub closer: Closer,
    /// Who the peer is.
    pub peer: PeerInfo,
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carrier").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// The receiving direction.
pub trait FrameSource: Send {
    /// Blocks for the next message and returns its body, without the size word. `None`: the peer closed between two
    /// messages.
    ///
    /// # Errors
    /// The carrier is lost; no later call succeeds.
    ///
    /// # Cost
    /// One system call brings as many messages as have arrived. A body over 32 KiB shares the receive buffer (no
    /// copy), and so keeps [`crate::RECEIVE_BYTES_MAX`] alive for as long as it is held.
    fn receive(&mut self) -> Result<Option<Bytes>, CarrierLost>;
}

/// How far a [`FrameSink::send`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendProgress {
    /// All frames are with the kernel; the queue is empty.
    Drained,
    /// The kernel takes no more now; see [`FrameSink::wait_writable`]. A frame may be half written: the sink holds its
    /// rest, and the next call continues with it.
    Blocked,
}

/// The sending direction.
pub trait FrameSink: Send {
    /// Writes as much as fits and never blocks. Frames are popped from the front as they are taken, in order.
    ///
    /// # Errors
    /// The carrier is lost; frames taken before may or may not have arrived.
    ///
    /// # Cost
    /// About one system call per 32 frames; frame data is not copied, except for encryption.
    fn send(&mut self, queue: &mut VecDeque<Frame>) -> Result<SendProgress, CarrierLost>;

    /// Blocks until another [`send`](Self::send) can make progress, at most `timeout`. False: the time passed.
    ///
    /// # Errors
    /// The carrier is lost.
    fn wait_writable(&mut self, timeout: Duration) -> Result<bool, CarrierLost>;

    /// Looks at what keeps the connection from sending more, where the kernel says.
    fn gauge(&self) -> Option<Gauge> {
        None
    }

    /// The way to the peer by calls, where it is in this process.
    fn direct(&self) -> Option<Arc<dyn Direct>> {
        None
    }
}
