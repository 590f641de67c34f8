//! The pending reads, each with its missing blocks.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::Lost;

/// Identifies a pending read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadId(u64);

/// A block that arrived, or failed to.
pub(crate) type BlockResult = (BlockId, Result<Bytes, Lost>);

/// The pending reads.
#[derive(Debug, Default)]
pub(crate) struct PendingReads {
    reads: BTreeMap<ReadId, PendingRead>,
    next: u64,
}

#[derive(Debug, Default)]
struct PendingRead {
    missing: BTreeSet<BlockId>,
    results: Vec<BlockResult>,
}

impl PendingReads {
    /// Starts a read of these blocks.
    pub(crate) fn begin(&mut self, missing: BTreeSet<BlockId>) -> ReadId {
        let read = ReadId(self.next);
        self.next += 1;
        self.reads.insert(read, PendingRead { missing, results: Vec::new() });
        read
    }

    /// Returns whether no read is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Delivers a block, or its loss, to all reads that miss it. Returns whether there is one.
    pub(crate) fn deliver(&mut self, id: BlockId, block: &Result<Bytes, Lost>) -> bool {
        let mut is_missed = false;
        for read_state in self.reads.values_mut() {
            if read_state.missing.remove(&id) {
                read_state.results.push((id, block.clone()));
                is_missed = true;
            }
        }
        is_missed
    }

    /// Makes a read wait for a block again.
    pub(crate) fn wait_again(&mut self, read: ReadId, id: BlockId) {
        if let Some(read_state) = self.reads.get_mut(&read) {
            read_state.missing.insert(id);
        }
    }

    /// Takes the results of a read since the last call.
    pub(crate) fn take(&mut self, read: ReadId) -> Vec<BlockResult> {
        self.reads
            .get_mut(&read)
            .map(|read_state| std::mem::take(&mut read_state.results))
            .unwrap_or_default()
    }

    /// Ends a read.
    pub(crate) fn end(&mut self, read: ReadId) {
        self.reads.remove(&read);
    }
}
