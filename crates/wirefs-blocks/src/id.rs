//! Block ids: never reused, and totally ordered over all nodes.

#[cfg(test)]
mod tests;

/// The bits of a [`BlockId`] that hold the node.
const NODE_BITS: u32 = 16;
/// The largest counter.
const COUNTER_MAX: u64 = u64::MAX >> NODE_BITS;

/// A machine that writes blocks of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriterId(pub u16);

/// The id of a block: a Lamport counter in the high-order bits and the writing node in the low-order bits. A
/// larger id is newer.
///
/// INVARIANT: the counter is not 0, so 0 is not a valid id.
///
/// # Source
/// PingFS, "Consistency": the counter in the high-order bits, the machine's id in the low-order ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(u64);

impl BlockId {
    /// Builds an id; `None` if the counter is 0 or too large.
    pub fn new(counter: u64, node: WriterId) -> Option<BlockId> {
        (1..=COUNTER_MAX).contains(&counter).then(|| BlockId(counter << NODE_BITS | u64::from(node.0)))
    }

    /// Decodes an id; `None` if its counter is 0.
    pub fn from_bits(bits: u64) -> Option<BlockId> {
        (bits >> NODE_BITS > 0).then_some(BlockId(bits))
    }

    /// The id as an integer with the same order.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The counter: larger than that of every block that the writing node had observed.
    pub fn counter(self) -> u64 {
        self.0 >> NODE_BITS
    }

    /// The node that wrote the block.
    pub fn node(self) -> WriterId {
        WriterId((self.0 & u64::from(u16::MAX)) as u16)
    }
}

impl std::fmt::Debug for BlockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.counter(), self.node().0)
    }
}

impl std::fmt::Display for BlockId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Allocates block ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdAllocator {
    node: WriterId,
    counter: u64,
}

impl IdAllocator {
    /// Creates the allocator of a node that has observed no block.
    pub fn new(node: WriterId) -> IdAllocator {
        IdAllocator { node, counter: 0 }
    }

    /// Returns an id larger than all allocated or observed ones; `None` when the counter is exhausted.
    pub fn allocate(&mut self) -> Option<BlockId> {
        let id = BlockId::new(self.counter.checked_add(1)?, self.node)?;
        self.counter = id.counter();
        Some(id)
    }

    /// Records the id of a block from another node or from an earlier run of this node.
    pub fn observe(&mut self, id: BlockId) {
        self.counter = self.counter.max(id.counter());
    }

    /// Skips this many ids.
    pub fn skip(&mut self, count: u64) {
        self.counter = self.counter.saturating_add(count).min(COUNTER_MAX);
    }

    /// Returns how far the counter is ahead of that of a block.
    pub fn distance_from(&self, id: BlockId) -> u64 {
        self.counter.saturating_sub(id.counter())
    }
}
