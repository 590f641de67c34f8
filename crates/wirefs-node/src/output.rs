//! What comes in and what goes out.

use crate::key::{Name, NodeKey};
use crate::member::Liveness;
use crate::record::Record;
use core::net::SocketAddr;
use wirefs_op::Time;

/// What happens to a node.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A packet came.
    Packet {
        /// From there.
        from: SocketAddr,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// Time has passed.
    Tick,
    /// How its machine does. Told to others when it matters, and not often.
    Figures {
        /// Processes that ran or wanted to, in hundredths.
        load_percent: u16,
        /// Room that is left, in bytes.
        free_bytes: u64,
        /// All room, in bytes.
        all_bytes: u64,
    },
    /// Where nodes are by the word of a registry, in place of what it said before. They are told that this one is here until
    /// they answer; nothing else is believed of them.
    Registered(&'a [SocketAddr]),
    /// It goes.
    Leave,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To all on the segment.
    Segment,
    /// To one.
    Address(SocketAddr),
}

/// What a node does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A packet to send.
    Send {
        /// Where to.
        to: Destination,
        /// Its bytes.
        packet: Vec<u8>,
    },
    /// Another node is otherwise than it was.
    Changed {
        /// Which.
        key: NodeKey,
        /// How it is now.
        state: Liveness,
    },
    /// Another has this node's name, and keeps it. This one should go, or come again with another name.
    NameTaken {
        /// The name.
        name: Name,
        /// Who has it.
        holder: NodeKey,
    },
}

/// One node of the table.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'a> {
    /// What it says of itself.
    pub record: &'a Record,
    /// How it is.
    pub state: Liveness,
    /// Since when.
    pub since: Time,
    /// Its name leads to it, and to no other.
    pub holds_name: bool,
    /// It is this one.
    pub is_own: bool,
    /// Where its last packet came from.
    pub heard_from: Option<SocketAddr>,
}

/// What was counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub sent: u64,
    /// Packets that counted.
    pub received: u64,
    /// Packets that were none.
    pub malformed: u64,
    /// Packets or records whose signature is not their node's.
    pub forged: u64,
    /// Packets that had counted already.
    pub replayed: u64,
    /// Records that were older than what is known.
    pub old: u64,
    /// Packets of nodes that are not trusted, or did not say who they are.
    pub strangers: u64,
    /// Nodes for which the table had no room.
    pub full: u64,
    /// Times that a node was suspected by this one.
    pub suspicions: u64,
    /// Times that this node said that it lives.
    pub refutations: u64,
    /// Turns to probe that it took: the periods of the protocol that passed for it.
    pub turns: u64,
}
