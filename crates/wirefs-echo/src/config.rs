//! What a store is made from.

use crate::host::HostConfig;
use crate::limits::{HOSTS_MAX, PACKET_BYTES_MAX, PACKET_BYTES_MIN, WINDOW_PACKETS_MAX};
use crate::packet::{OVERHEAD_BYTES, Origin};
use crate::rate::Rate;
use crate::redundancy::{Redundancy, Shape};
use crate::seal::{Cipher, Key};

/// How honest the store is about where the data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// `--keep=index`: nothing of the contents, but of each block enough to notice a loss, repair it, and name it.
    Index,
    /// `--keep=root`: nothing of any block. Beside what is known of the hosts there are the key, one bit for each packet
    /// that may be under way to each host (so many), and for some seconds the ids of blocks that were dropped. A loss is
    /// counted when it happens, but which block it was shows when somebody asks for it; copies are not repaired.
    Root {
        /// Packets to one host that can be told apart from replayed ones; what is under way longer is lost.
        window_packets: usize,
    },
}

/// What a store is made from.
#[derive(Clone, Debug)]
pub struct Config {
    /// The secret under which everything is sealed.
    pub key: Key,
    /// What no other run with this key ever used.
    pub origin: Origin,
    /// How it is sealed.
    pub cipher: Cipher,
    /// The hosts that answer; [`HostId`](crate::HostId) counts them from 0.
    pub hosts: Vec<HostConfig>,
    /// What is remembered.
    pub keep: Keep,
    /// How a block survives the loss of packets.
    pub redundancy: Redundancy,
    /// How much is sent to each host.
    pub rate: Rate,
    /// The payload of an echo packet at most, in bytes: what passes all ways unfragmented.
    pub packet_bytes: usize,
    /// The memory for contents used last (`--ram`), in bytes; 0 for none.
    pub ram_bytes: usize,
}

/// What is wrong with a [`Config`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// There must be at least one host and at most [`HOSTS_MAX`].
    Hosts {
        /// How many were named.
        count: usize,
    },
    /// The packet size is not within [`PACKET_BYTES_MIN`] and [`PACKET_BYTES_MAX`].
    PacketBytes {
        /// What was asked for.
        bytes: usize,
    },
    /// A block would take no packet, or more than [`LANES_MAX`](crate::limits::LANES_MAX).
    Redundancy,
    /// The window is empty or larger than [`WINDOW_PACKETS_MAX`].
    Window {
        /// What was asked for.
        packets: usize,
    },
    /// The key is not one for the cipher.
    Key,
}

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Misuse::Hosts { count } => write!(f, "{count} hosts; a store has 1 to {HOSTS_MAX}"),
            Misuse::PacketBytes { bytes } => {
                write!(f, "packets of {bytes} bytes; they have {PACKET_BYTES_MIN} to {PACKET_BYTES_MAX}")
            }
            Misuse::Redundancy => write!(f, "a block takes 1 to {} packets", crate::limits::LANES_MAX),
            Misuse::Window { packets } => {
                write!(f, "a window of {packets} packets; it has 1 to {WINDOW_PACKETS_MAX}")
            }
            Misuse::Key => f.write_str("the key does not fit the cipher"),
        }
    }
}

impl std::error::Error for Misuse {}

impl Config {
    /// Checks it, and gives the shape of its redundancy.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn check(&self) -> Result<Shape, Misuse> {
        if !(1..=HOSTS_MAX).contains(&self.hosts.len()) {
            return Err(Misuse::Hosts { count: self.hosts.len() });
        }
        if !(PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&self.packet_bytes) {
            return Err(Misuse::PacketBytes { bytes: self.packet_bytes });
        }
        if let Keep::Root { window_packets } = self.keep
            && !(1..=WINDOW_PACKETS_MAX).contains(&window_packets)
        {
            return Err(Misuse::Window { packets: window_packets });
        }
        self.redundancy.shape().ok_or(Misuse::Redundancy)
    }

    /// The bytes of the largest piece.
    pub(crate) fn piece_bytes_max(&self) -> usize {
        self.packet_bytes.saturating_sub(OVERHEAD_BYTES)
    }
}
