//! What happened, in numbers.

use crate::packet::OVERHEAD_BYTES;

/// Packets by what became of them, since the store was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets of blocks that came back and were sent on.
    pub circulated: u64,
    /// Packets sent for the first time: of new blocks, and rebuilt ones.
    pub launched: u64,
    /// Packets without content that were sent.
    pub ballast: u64,
    /// Packets held back for a part of a lap, to keep copies apart.
    pub held: u64,
    /// Packets that had been taken for lost and came after all.
    pub late: u64,
    /// Packets rebuilt from others, or from memory.
    pub rebuilt: u64,
    /// Packets refused; each changed nothing else.
    pub refused: Refused,
}

/// Packets that were not taken, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Shorter than a packet can be.
    pub too_short: u64,
    /// Of another store, or an earlier run.
    pub foreign: u64,
    /// Sent to another host than the one it came from.
    pub misplaced: u64,
    /// Forged or damaged.
    pub forged: u64,
    /// Well sealed nonsense.
    pub malformed: u64,
    /// Seen before: replayed, doubled by the network, or of an earlier lap.
    pub replayed: u64,
    /// Older than a packet may be (`--keep=root`).
    pub stale: u64,
    /// Of a block that was dropped.
    pub dropped: u64,
}

/// What fits, and what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Packets that the hosts are given at most.
    pub packets_max: u64,
    /// Packets of blocks, those that are with silent hosts included.
    pub packets: u64,
    /// Packets that may still be given to hosts.
    pub packets_free: u64,
    /// Of those at most: packets that wait in receive buffers and are not in the network.
    pub parked_max: u64,
    /// Packets that one block takes.
    pub packets_per_block: u64,
    /// Bytes of the largest block.
    pub block_bytes_max: u64,
    /// Whether more room may still be found.
    pub may_grow: bool,
}

impl Capacity {
    /// Blocks that fit at most.
    pub fn blocks_max(&self) -> u64 {
        self.packets_max / self.packets_per_block.max(1)
    }

    /// Bytes that fit at most, if all blocks are of the largest size: what `df` calls size.
    pub fn bytes_max(&self) -> u64 {
        self.blocks_max() * self.block_bytes_max
    }

    /// Bytes that fit in addition: what `df` calls available.
    pub fn bytes_free(&self) -> u64 {
        self.packets_free / self.packets_per_block.max(1) * self.block_bytes_max
    }
}

/// The memory of a store, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBytes {
    /// What is remembered of blocks: the index, or the bits of a store without one.
    pub index: usize,
    /// Contents on their way out.
    pub outbox: usize,
    /// Pieces being put together.
    pub gathered: usize,
    /// Contents that the user wants in memory.
    pub ram: usize,
}

const _: () = assert!(OVERHEAD_BYTES == 56, "the documentation says so");
