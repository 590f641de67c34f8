//! Who waits for which blocks.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::Lost;

/// One who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// A block that came, or is given up.
pub(crate) type Came = (BlockId, Result<Bytes, Lost>);

/// Those who wait, each with what it still lacks.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    asks: BTreeMap<Ticket, Ask>,
    next: u64,
}

#[derive(Debug, Default)]
struct Ask {
    lacking: BTreeSet<BlockId>,
    came: Vec<Came>,
}

impl Waiting {
    /// Somebody begins to wait for these.
    pub(crate) fn begin(&mut self, lacking: BTreeSet<BlockId>) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.asks.insert(ticket, Ask { lacking, came: Vec::new() });
        ticket
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// A block came, or is given up: all who lack it get it.
    pub(crate) fn came(&mut self, id: BlockId, block: &Result<Bytes, Lost>) {
        for ask in self.asks.values_mut() {
            if ask.lacking.remove(&id) {
                ask.came.push((id, block.clone()));
            }
        }
    }

    /// Somebody goes on waiting for a block.
    pub(crate) fn lack(&mut self, ticket: Ticket, id: BlockId) {
        if let Some(ask) = self.asks.get_mut(&ticket) {
            ask.lacking.insert(id);
        }
    }

    /// Takes what came for somebody since the last time.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Vec<Came> {
        self.asks.get_mut(&ticket).map(|ask| std::mem::take(&mut ask.came)).unwrap_or_default()
    }

    /// Somebody waits no more.
    pub(crate) fn end(&mut self, ticket: Ticket) {
        self.asks.remove(&ticket);
    }
}
