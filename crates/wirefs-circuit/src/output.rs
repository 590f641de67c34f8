//! What a node tells its driver.

use std::time::Duration;

use bytes::Bytes;

use crate::address::{Address, CircuitId, GroupId, NodeKey, Way};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A group stands: both sides have proved their keys. Circuits may be opened.
    Joined {
        /// The group.
        group: GroupId,
        /// Who the peer is.
        peer: NodeKey,
        /// Whether we dialled; else the peer did.
        is_dialled: bool,
    },
    /// A group that was dialled did not come to be; the id is free again.
    Failed {
        /// The group.
        group: GroupId,
        /// Why.
        why: DialFault,
    },
    /// A group that stood is over, and all its circuits with it; the id is free again soon.
    Lost {
        /// The group.
        group: GroupId,
        /// Why.
        why: Lost,
    },
    /// A path carries data from now on.
    PathUp {
        /// The group.
        group: GroupId,
        /// The path.
        way: Way,
    },
    /// A path carries nothing any more; others take over what was on it.
    PathDown {
        /// The group.
        group: GroupId,
        /// The path.
        way: Way,
    },
    /// The peer opened a circuit.
    Opened(CircuitId),
    /// A circuit has something to be read; not told again until all is read.
    Readable(CircuitId),
    /// A circuit that did not take all has room again.
    Writable(CircuitId),
    /// Everything that was written to a circuit, up to its end, is at the peer.
    Finished(CircuitId),
    /// The peer ended a circuit at once; what was not read is gone.
    Reset(CircuitId),
}

/// What a read gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The next bytes.
    Data(Bytes),
    /// Nothing now; [`Output::Readable`] tells when there is more.
    Nothing,
    /// The peer finished, and everything was read.
    End,
    /// There is no such circuit, or no more.
    Gone,
}

/// Why a dial failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialFault {
    /// Nobody answered in time.
    Silent,
    /// Who answered has another key than expected, or one that is not trusted.
    Stranger(NodeKey),
}

/// Why a group is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// We closed it.
    Closed,
    /// The peer closed it.
    PeerClosed,
    /// Nothing was heard on any path for too long.
    Silent,
    /// The peer did what it may not.
    Fault(PeerFault),
}

/// What a peer that proved its key did and may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerFault {
    /// A packet's content is nonsense.
    Malformed,
    /// A circuit's number is in no table.
    Number,
    /// It sent more than it was granted.
    Credit,
    /// It sent beyond the end that it had said.
    End,
    /// It acknowledged what was never sent.
    Acknowledged,
    /// It has us say more about circuits than there could be to say.
    Flood,
}

/// Why a driver's call cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// More cards, or smaller ones, than a node can have; or none.
    Cards,
    /// A way over a card that is none; or none, or too many.
    Ways,
    /// All groups are taken.
    Full,
    /// There is no such group or circuit, or no more.
    Gone,
}

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Misuse::Cards => "a node has one to eight cards, each for at least 576 bytes",
            Misuse::Ways => "a dial needs one to eight ways, each over a card of the node",
            Misuse::Full => "all places are taken",
            Misuse::Gone => "it is over",
        })
    }
}

impl std::error::Error for Misuse {}

/// A path of a group, as it is at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathState {
    /// From which card to where.
    pub way: Way,
    /// It carries data.
    pub is_up: bool,
    /// Its measured rate in bytes a second, once that was measured.
    pub rate: Option<u64>,
    /// Its round trip on average, once that was measured.
    pub rtt: Option<Duration>,
    /// Bytes of our packets that arrived since the group stands.
    pub arrived_bytes: u64,
    /// Bytes of those that were lost and sent anew.
    pub lost_bytes: u64,
}

/// A packet to be sent: the first bytes of the buffer that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The hardware address that it goes to.
    pub destination: Address,
    /// Its bytes.
    pub bytes: usize,
    /// Whether another may follow at once. Else it is better to send this one, and to ask again then.
    pub is_more: bool,
}
