//! Which blocks there are, where no index knows it: all of them come by.

use std::time::Duration;

use bytes::Bytes;

use super::{Echo, Known, Output};
use crate::block::BlockId;
use crate::host::Host;
use crate::limits::PASSED_MAX;

/// Each packet comes by within a lap; these are waited for, and this on top.
const LISTEN_LAPS: u32 = 2;
const LISTEN_EXTRA: Duration = Duration::from_millis(100);

impl Echo {
    /// From now on tells of each block that passes ([`Output::Passed`]), or of none: for a driver
    /// whose reader will need more blocks than it can name yet. Each copy that passes is told of; of blocks that are cut into
    /// pieces none is, for none of their packets is the block.
    ///
    /// # Cost
    /// A copy of the contents of each packet.
    pub fn overhear(&mut self, is_on: bool) {
        self.overhears = is_on && self.shape.is_copies();
    }

    /// A block passed.
    pub(super) fn tell_of(&mut self, id: BlockId, contents: &[u8]) {
        if self.outputs.len() < PASSED_MAX {
            self.outputs.push_back(Output::Passed { id, block: Bytes::copy_from_slice(contents) });
        }
    }

    /// Begins to note which blocks come by. Nothing with an index, which knows them all.
    ///
    /// # Cost
    /// 16 bytes and a little more for each block, until [`heard`](Echo::heard) takes them.
    pub fn listen_to_blocks(&mut self) {
        if let Known::Root(root) = &mut self.known {
            root.heard = Some(Default::default());
        }
    }

    /// For how long to listen to hear of each block, at the present laps.
    pub fn listening_span(&self) -> Duration {
        self.hosts.iter().filter_map(Host::lap).max().unwrap_or_default() * LISTEN_LAPS + LISTEN_EXTRA
    }

    /// The blocks that came by since it began to listen and were not dropped, in order. It listens no more then.
    pub fn heard(&mut self) -> Vec<BlockId> {
        match &mut self.known {
            Known::Index(_) => Vec::new(),
            Known::Root(root) => root.heard.take().unwrap_or_default().into_iter().collect(),
        }
    }
}
