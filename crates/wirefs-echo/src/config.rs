//! Configuration of a store.

use crate::host::HostConfig;
use crate::limits::{HOSTS_MAX, PACKET_BYTES_MAX, PACKET_BYTES_MIN, WINDOW_PACKETS_MAX};
use crate::packet::{OVERHEAD_BYTES, Origin};
use crate::rate::SendRate;
use crate::redundancy::{Redundancy, Shape};
use crate::seal::{Cipher, EchoKey};

/// The records that the store keeps in memory (`--keep`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// `--keep=index`: per block the data to detect a loss, repair it and report it. No contents.
    Index,
    /// `--keep=root`: no record of any block. The store keeps host state, the key, one bit for each packet
    /// that may be in flight, and for some seconds the ids of dropped blocks. A loss is counted when it
    /// happens, but the lost block becomes known only when a reader requests it. Copies are not repaired.
    Root {
        /// Number of packets to one host that can be told from replays. Packets in flight beyond that are
        /// lost.
        window_packets: usize,
    },
}

/// Configuration of a store.
#[derive(Clone, Debug)]
pub struct EchoConfig {
    /// The secret from which the packet keys are derived.
    pub key: EchoKey,
    /// A value that no other run with this key has used.
    pub origin: Origin,
    /// The AEAD that seals packets.
    pub cipher: Cipher,
    /// The hosts to ping; [`HostId`](crate::HostId) counts them from 0.
    pub hosts: Vec<HostConfig>,
    /// The records to keep in memory.
    pub keep: Keep,
    /// The redundancy of each block.
    pub redundancy: Redundancy,
    /// The send rate for each host.
    pub rate: SendRate,
    /// The largest payload of an echo packet in bytes, at most the path MTU without headers.
    pub packet_bytes: usize,
    /// The size of the cache for block contents (`--ram`) in bytes; 0 disables the cache.
    pub ram_bytes: usize,
}

/// An invalid [`EchoConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The number of hosts is 0 or above [`HOSTS_MAX`].
    Hosts {
        /// The number of hosts.
        count: usize,
    },
    /// The packet size is not within [`PACKET_BYTES_MIN`] and [`PACKET_BYTES_MAX`].
    PacketBytes {
        /// The requested size in bytes.
        bytes: usize,
    },
    /// A block would take no packet, or more than [`LANES_MAX`](crate::limits::LANES_MAX).
    Redundancy,
    /// The window is empty or larger than [`WINDOW_PACKETS_MAX`].
    Window {
        /// The requested number of packets.
        packets: usize,
    },
    /// The cipher rejects the key.
    Key,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConfigError::Hosts { count } => {
                write!(f, "{count} hosts are named; a store has 1 to {HOSTS_MAX}")
            }
            ConfigError::PacketBytes { bytes } => {
                write!(
                    f,
                    "the packet size is {bytes} bytes; it must be {PACKET_BYTES_MIN} to {PACKET_BYTES_MAX}"
                )
            }
            ConfigError::Redundancy => {
                write!(f, "a block must take 1 to {} packets", crate::limits::LANES_MAX)
            }
            ConfigError::Window { packets } => {
                write!(f, "the window has {packets} packets; it must have 1 to {WINDOW_PACKETS_MAX}")
            }
            ConfigError::Key => f.write_str("the cipher rejects the key"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl EchoConfig {
    /// Checks the configuration and returns the shape of its redundancy.
    ///
    /// # Errors
    /// The first [`ConfigError`] found.
    pub(crate) fn check(&self) -> Result<Shape, ConfigError> {
        if !(1..=HOSTS_MAX).contains(&self.hosts.len()) {
            return Err(ConfigError::Hosts { count: self.hosts.len() });
        }
        if !(PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&self.packet_bytes) {
            return Err(ConfigError::PacketBytes { bytes: self.packet_bytes });
        }
        if let Keep::Root { window_packets } = self.keep
            && !(1..=WINDOW_PACKETS_MAX).contains(&window_packets)
        {
            return Err(ConfigError::Window { packets: window_packets });
        }
        self.redundancy.shape().ok_or(ConfigError::Redundancy)
    }

    /// Returns the size of the largest piece in bytes.
    pub(crate) fn piece_bytes_max(&self) -> usize {
        self.packet_bytes.saturating_sub(OVERHEAD_BYTES)
    }
}
