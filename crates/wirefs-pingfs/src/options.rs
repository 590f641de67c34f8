//! What a store is to be like.

use std::net::SocketAddr;

use wirefs_echo::{Keep, Redundancy};

use crate::limits::{BUFFER_BYTES, PAYLOAD_BYTES};

/// How much is sent to each host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As much as it answers without delay and loss, found and held; never more than the default limits.
    #[default]
    Found,
    /// The same with a limit of the user's, in packets a second.
    FoundBelow(u32),
    /// So many packets a second.
    Fixed(u32),
}

/// What is remembered of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Honesty {
    /// Of each block enough to notice a loss, repair it, and name it; nothing of the contents.
    #[default]
    Index,
    /// The root's id and the key, as in the source. Losses are noticed by whoever asks for the block.
    Root,
}

/// What a store is to be like.
#[derive(Clone, Debug)]
pub struct EchoOptions {
    /// The hosts that are pinged; ports mean nothing.
    pub hosts: Vec<SocketAddr>,
    /// How a block survives the loss of packets.
    pub redundancy: Redundancy,
    /// What is remembered of blocks.
    pub honesty: Honesty,
    /// How much is sent to each host.
    pub pace: Pace,
    /// The payload of an echo packet at most, in bytes; less where a way passes less.
    pub payload_bytes_max: usize,
    /// The size of blocks, in bytes, where it must be a certain one: that of a tree that is loaded.
    pub block_bytes: Option<usize>,
    /// The receive buffer of each host at most, in bytes of the kernel's accounting.
    pub buffer_bytes: usize,
    /// Packets of each host that may wait in that buffer instead of the network; `None`: a few thousand for near hosts,
    /// since the wire to them holds nothing, and none for others.
    pub parked_packets: Option<u64>,
}

impl EchoOptions {
    /// The defaults for these hosts.
    pub fn new(hosts: Vec<SocketAddr>) -> EchoOptions {
        EchoOptions {
            hosts,
            redundancy: Redundancy::Copies(1),
            honesty: Honesty::Index,
            pace: Pace::Found,
            payload_bytes_max: PAYLOAD_BYTES,
            block_bytes: None,
            buffer_bytes: BUFFER_BYTES,
            parked_packets: None,
        }
    }

    pub(crate) fn keep(&self) -> Keep {
        match self.honesty {
            Honesty::Index => Keep::Index,
            Honesty::Root => Keep::Root { window_packets: crate::limits::WINDOW_PACKETS },
        }
    }
}
