//! Options of a store.

use std::net::SocketAddr;

use wirefs_echo::{Keep, Redundancy};

use crate::limits::{BUFFER_BYTES, PAYLOAD_BYTES};

/// The send rate to each host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateOption {
    /// The highest rate without delay and loss, up to the default limit.
    #[default]
    Adaptive,
    /// The same with this limit in packets per second.
    AdaptiveBelow(u32),
    /// A fixed rate in packets per second.
    Fixed(u32),
}

/// The records of blocks in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepOption {
    /// Per block the data to detect a loss, repair it and report it; no contents.
    #[default]
    Index,
    /// The root's id and the key, as in the original PingFS. A loss is detected by a reader that requests the
    /// block.
    Root,
}

/// Options of a store.
#[derive(Clone, Debug)]
pub struct EchoOptions {
    /// The hosts to ping; ports are ignored.
    pub hosts: Vec<SocketAddr>,
    /// The redundancy of blocks.
    pub redundancy: Redundancy,
    /// The records of blocks in memory.
    pub keep: KeepOption,
    /// The send rate to each host.
    pub rate: RateOption,
    /// The largest payload of an echo packet in bytes; less where a path MTU is smaller.
    pub payload_bytes_max: usize,
    /// The required block size in bytes, if any: that of a tree to be loaded.
    pub block_bytes: Option<usize>,
    /// The largest receive buffer of each host, in bytes of the kernel's accounting.
    pub buffer_bytes: usize,
    /// Packets per host that may wait in that buffer instead of the network. `None`: the default for near
    /// hosts, whose path holds nothing, and that for far hosts.
    pub parked_packets: Option<u64>,
}

impl EchoOptions {
    /// Returns the default options for these hosts.
    pub fn new(hosts: Vec<SocketAddr>) -> EchoOptions {
        EchoOptions {
            hosts,
            redundancy: Redundancy::Copies(1),
            keep: KeepOption::Index,
            rate: RateOption::Adaptive,
            payload_bytes_max: PAYLOAD_BYTES,
            block_bytes: None,
            buffer_bytes: BUFFER_BYTES,
            parked_packets: None,
        }
    }

    pub(crate) fn keep_mode(&self) -> Keep {
        match self.keep {
            KeepOption::Index => Keep::Index,
            KeepOption::Root => Keep::Root { window_packets: crate::limits::WINDOW_PACKETS },
        }
    }
}
