//! The events that a node reports to its driver.

use std::time::Duration;

use bytes::Bytes;

use crate::address::{CardAddress, CircuitId, GroupId, NetworkPath, PeerKey};

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CircuitOutput {
    /// A handshake completed: both sides have proved their keys. Circuits may be opened.
    Established {
        /// The group.
        group: GroupId,
        /// The key of the peer.
        peer: PeerKey,
        /// Whether this node dialed the peer.
        is_initiator: bool,
    },
    /// A dial failed; the group id is free again.
    Failed {
        /// The group.
        group: GroupId,
        /// The reason.
        reason: DialFault,
    },
    /// A group and its circuits closed; the group id is free again soon.
    Closed {
        /// The group.
        group: GroupId,
        /// The reason.
        reason: CloseReason,
    },
    /// A path became live.
    PathUp {
        /// The group.
        group: GroupId,
        /// The path.
        path: NetworkPath,
    },
    /// A path died; its data is retransmitted on other paths.
    PathDown {
        /// The group.
        group: GroupId,
        /// The path.
        path: NetworkPath,
    },
    /// The peer opened a circuit.
    Opened(CircuitId),
    /// A circuit has data to read. Reported once until all of it is read.
    Readable(CircuitId),
    /// A circuit with a partial write has buffer space again.
    Writable(CircuitId),
    /// The peer has acknowledged everything written to a circuit, including its end.
    Finished(CircuitId),
    /// The peer reset a circuit; unread data is discarded.
    Reset(CircuitId),
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The next bytes.
    Data(Bytes),
    /// No data now; [`CircuitOutput::Readable`] reports more.
    Nothing,
    /// The peer ended the circuit, and all data was read.
    End,
    /// The circuit is closed or does not exist.
    Gone,
}

/// The reason for which a dial failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialFault {
    /// No reply in time.
    Timeout,
    /// The replying node has another key than expected, or an untrusted one.
    UnexpectedKey(PeerKey),
}

/// The reason for which a group closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// This node closed it.
    Local,
    /// The peer closed it.
    Peer,
    /// Nothing was received on any path for [`IDLE_TIMEOUT`](crate::limits::IDLE_TIMEOUT).
    IdleTimeout,
    /// The peer violated the protocol.
    Fault(CircuitFault),
}

/// A protocol violation of an authenticated peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitFault {
    /// A packet does not decode.
    Malformed,
    /// A circuit number is in no table.
    CircuitNumber,
    /// It exceeded its flow-control credit.
    FlowControl,
    /// It sent data beyond the final size, or changed the final size.
    FinalSize,
    /// It acknowledged a packet that was never sent.
    UnsentPacketAcked,
    /// It caused more control parts than a correct peer can.
    Flood,
}

/// An invalid call of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitMisuse {
    /// The number or the MTU of the cards is out of range.
    Cards,
    /// A path uses an unknown card, or the number of paths is out of range.
    Paths,
    /// A table is full.
    Full,
    /// The group or circuit is closed or does not exist.
    Gone,
}

impl std::fmt::Display for CircuitMisuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CircuitMisuse::Cards => "a node has one to eight cards, each for at least 576 bytes",
            CircuitMisuse::Paths => "a dial needs one to eight paths, each over a card of the node",
            CircuitMisuse::Full => "the table is full",
            CircuitMisuse::Gone => "the group or circuit is closed",
        })
    }
}

impl std::error::Error for CircuitMisuse {}

/// The state of a path of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathState {
    /// The cards of the path.
    pub path: NetworkPath,
    /// Whether the path carries data.
    pub is_up: bool,
    /// The estimated bandwidth in bytes per second, once measured.
    pub rate: Option<u64>,
    /// The smoothed round-trip time, once measured.
    pub rtt: Option<Duration>,
    /// Bytes of our packets that were acknowledged since the group was established.
    pub arrived_bytes: u64,
    /// Bytes of our packets that were lost, and retransmitted, since the group was established.
    pub lost_bytes: u64,
}

/// A packet to send: the first bytes of the passed buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingPacket {
    /// The destination address.
    pub destination: CardAddress,
    /// The size of the packet, in bytes.
    pub bytes: usize,
    /// Whether another packet may follow at once. If not, the driver should send this one before it asks
    /// again.
    pub is_more: bool,
}
