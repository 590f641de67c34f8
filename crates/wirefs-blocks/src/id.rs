//! Block ids: never used twice, and in one order over all nodes.

#[cfg(test)]
mod tests;

/// The bits of a [`BlockId`] that name the node.
const NODE_BITS: u32 = 16;
/// The largest counter.
const COUNTER_MAX: u64 = u64::MAX >> NODE_BITS;

/// One of the machines that make blocks of one tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u16);

/// Names a block: a counter, and below it the node that made the block. Larger is newer.
///
/// INVARIANT: the counter is not 0, so 0 is no id.
///
/// # Source
/// PingFS, "Consistency": the counter in the high-order bits, the machine's id in the low-order ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(u64);

impl BlockId {
    /// The id from its parts; `None` when the counter is 0 or too large.
    pub fn new(counter: u64, node: NodeId) -> Option<BlockId> {
        (1..=COUNTER_MAX).contains(&counter).then(|| BlockId(counter << NODE_BITS | u64::from(node.0)))
    }

    /// The id that these bits are.
    pub fn from_bits(bits: u64) -> Option<BlockId> {
        (bits >> NODE_BITS > 0).then_some(BlockId(bits))
    }

    /// All of it as one number; the order of these numbers is the order of ids.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// How many blocks its node knew of when it was made.
    pub fn counter(self) -> u64 {
        self.0 >> NODE_BITS
    }

    /// Who made it.
    pub fn node(self) -> NodeId {
        NodeId((self.0 & u64::from(u16::MAX)) as u16)
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

/// Gives out ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    node: NodeId,
    counter: u64,
}

impl Ids {
    /// A node that has made and seen no block.
    pub fn new(node: NodeId) -> Ids {
        Ids { node, counter: 0 }
    }

    /// An id that was never given out, larger than all that were observed; `None` when they are used up.
    pub fn issue(&mut self) -> Option<BlockId> {
        let id = BlockId::new(self.counter.checked_add(1)?, self.node)?;
        self.counter = id.counter();
        Some(id)
    }

    /// Notes a block that came from elsewhere, or from an earlier life of this node.
    pub fn observe(&mut self, id: BlockId) {
        self.counter = self.counter.max(id.counter());
    }

    /// Leaves out this many ids.
    pub fn skip(&mut self, count: u64) {
        self.counter = self.counter.saturating_add(count).min(COUNTER_MAX);
    }

    /// How far the counter is past a block's.
    pub fn ahead_of(&self, id: BlockId) -> u64 {
        self.counter.saturating_sub(id.counter())
    }
}
