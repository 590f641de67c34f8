//! The memory of the name tree.

use super::NameTree;

/// The memory of a node without its name, in bytes: the node, its places in three tables, and the overhead of
/// the allocator.
const NODE_BYTES: usize = 960;
/// The number of copies of a name: two in its node, one in its directory.
const COPIES: usize = 3;
/// The memory of a negative entry, in bytes.
const NEGATIVE_ENTRY_BYTES: usize = 100;

impl NameTree {
    /// Returns the approximate memory of nodes, names and negative entries, in bytes.
    pub fn bytes(&self) -> usize {
        self.len() * NODE_BYTES + self.name_bytes * COPIES + self.negative.len() * NEGATIVE_ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests;
