//! Listing the blocks of a store without an index: all of them pass within a cycle.

use std::time::Duration;

use bytes::Bytes;

use super::{BlockRecords, Echo, EchoOutput};
use crate::block::EchoBlockId;
use crate::host::Host;
use crate::limits::PASSED_MAX;

/// Cycles to wait for a listing, and the additional time.
const LISTING_CYCLES: u32 = 2;
const LISTING_EXTRA: Duration = Duration::from_millis(100);

impl Echo {
    /// Enables or disables an [`EchoOutput::Passed`] for each block that passes, for readers that cannot name
    /// all needed blocks yet. Each copy is reported. Blocks in coded pieces are not: no packet is a whole
    /// block.
    ///
    /// # Cost
    /// A copy of the contents of each packet.
    pub fn overhear(&mut self, is_on: bool) {
        self.is_overhearing = is_on && self.shape.is_copies();
    }

    /// Reports a block that passed.
    pub(super) fn report_passed(&mut self, id: EchoBlockId, contents: &[u8]) {
        if self.outputs.len() < PASSED_MAX {
            self.outputs.push_back(EchoOutput::Passed { id, block: Bytes::copy_from_slice(contents) });
        }
    }

    /// Starts to record the blocks that pass. Has no effect with an index.
    ///
    /// # Cost
    /// 16 bytes and some overhead per block, until [`finish_listing`](Echo::finish_listing).
    pub fn start_listing(&mut self) {
        if let BlockRecords::RootOnly(root) = &mut self.records {
            root.listed = Some(Default::default());
        }
    }

    /// Returns how long a listing must run to see each block, at the current cycle times.
    pub fn listing_time(&self) -> Duration {
        self.hosts.iter().filter_map(Host::cycle).max().unwrap_or_default() * LISTING_CYCLES + LISTING_EXTRA
    }

    /// Ends the listing. Returns the blocks that passed and were not dropped, in order.
    pub fn finish_listing(&mut self) -> Vec<EchoBlockId> {
        match &mut self.records {
            BlockRecords::Index(_) => Vec::new(),
            BlockRecords::RootOnly(root) => root.listed.take().unwrap_or_default().into_iter().collect(),
        }
    }
}
