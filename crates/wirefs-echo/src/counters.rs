//! Counters, capacity and memory use of a store.

use crate::packet::OVERHEAD_BYTES;

/// Packet counts since the store was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EchoCounters {
    /// Packets with a piece of a block that came back and were sent again.
    pub circulated: u64,
    /// First transmissions: packets of new blocks, and rebuilt packets.
    pub launched: u64,
    /// Padding probes sent. They carry no block.
    pub probes: u64,
    /// Packets held for a part of a cycle to keep copies apart.
    pub held: u64,
    /// Packets that were declared lost and arrived later.
    pub late: u64,
    /// Packets rebuilt from other packets of the block, or from the cache.
    pub rebuilt: u64,
    /// Rejected packets. A rejected packet changes nothing but these counters.
    pub refused: RefusedPackets,
}

/// Rejected packets by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedPackets {
    /// Shorter than the packet overhead.
    pub too_short: u64,
    /// Of another store, or of an earlier run.
    pub foreign: u64,
    /// Addressed to another host than the one that returned it.
    pub misplaced: u64,
    /// Forged or damaged: the AEAD tag does not match.
    pub forged: u64,
    /// Authentic, but the sealed header is invalid.
    pub malformed: u64,
    /// Received before: replayed, duplicated by the network, or of an earlier cycle.
    pub replayed: u64,
    /// Older than the age limit (`--keep=root`).
    pub stale: u64,
    /// Of a dropped block.
    pub dropped: u64,
}

/// Capacity and use of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Maximum number of packets at all hosts.
    pub packets_max: u64,
    /// Packets of blocks, those at silent hosts included.
    pub packets: u64,
    /// Packets that can still be added.
    pub packets_free: u64,
    /// The part of `packets_max` that may wait in receive buffers instead of the network.
    pub parked_max: u64,
    /// Packets that one block takes.
    pub packets_per_block: u64,
    /// Size of the largest block in bytes.
    pub block_bytes_max: u64,
    /// Whether the capacity may still grow.
    pub may_grow: bool,
}

impl Capacity {
    /// Returns the maximum number of blocks.
    pub fn blocks_max(&self) -> u64 {
        self.packets_max / self.packets_per_block.max(1)
    }

    /// Returns the total size in bytes if all blocks have the largest size, as in the size column of `df`.
    pub fn bytes_max(&self) -> u64 {
        self.blocks_max() * self.block_bytes_max
    }

    /// Returns the free size in bytes, as in the available column of `df`.
    pub fn bytes_free(&self) -> u64 {
        self.packets_free / self.packets_per_block.max(1) * self.block_bytes_max
    }
}

/// Memory use of a store in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBytes {
    /// The index, or the bits of a store without one.
    pub index: usize,
    /// Contents in the send queues.
    pub send_queue: usize,
    /// Pieces that wait for the rest of their block.
    pub collected: usize,
    /// The block cache (`--ram`).
    pub ram: usize,
}

const _: () = assert!(OVERHEAD_BYTES == 56, "the documentation says so");
