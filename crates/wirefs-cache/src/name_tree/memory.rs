//! How much memory the nodes take.

use super::NameTree;

/// What a node takes beside its name, in bytes: itself, its places in three tables, and what the allocator adds.
const NODE_BYTES: usize = 960;
/// How often a name is kept: with its node twice, and in its directory.
const COPIES: usize = 3;
/// What a name takes that is told to be absent, in bytes.
const NEGATIVE_ENTRY_BYTES: usize = 100;

impl NameTree {
    /// About how many bytes all nodes take, with their names, and the names that the kernel was told are not there.
    pub fn bytes(&self) -> usize {
        self.len() * NODE_BYTES + self.name_bytes * COPIES + self.negative.len() * NEGATIVE_ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests;
