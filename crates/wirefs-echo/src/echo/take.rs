//! Keeping a block.

use bytes::Bytes;
use wirefs_op::Time;

use super::{Distance, Echo, Known, Refusal};
use crate::block::BlockId;
use crate::limits::OUTBOX_BYTES_MAX;
use crate::outbox::{self, Item};
use crate::packet::Piece;
use crate::pieces::Cut;

/// A moment in the order of the blocks that were kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

impl Echo {
    /// Keeps a block: its packets are put into the outbox, copies spread over a lap, and go round from then on.
    ///
    /// # Cost
    /// No round trip. The contents stay in memory until the last packet has left: for copies, a lap at most.
    ///
    /// # Errors
    /// Nothing is kept then.
    pub fn keep(&mut self, now: Time, id: BlockId, block: Bytes, distance: Distance) -> Result<(), Refusal> {
        let now = self.clock.run(now);
        let bytes_max = self.block_bytes_max();
        let block_bytes = u32::try_from(block.len()).ok().filter(|_| block.len() <= bytes_max);
        let block_bytes = block_bytes.ok_or(Refusal::TooLarge { bytes_max })?;
        let exists = match &self.known {
            Known::Index(index) => index.contains(id),
            Known::Root(root) => root.dropped.contains(id),
        };
        if exists {
            return Err(Refusal::Exists);
        }
        let waiting: usize = self.hosts.iter().map(|host| host.outbox.bytes()).sum();
        let piece_bytes = self.shape.piece_bytes(block.len());
        if waiting + self.shape.lanes * outbox::item_bytes(piece_bytes) > OUTBOX_BYTES_MAX {
            return Err(Refusal::Busy);
        }
        let may_grow = self.hosts.iter().any(|host| host.may_grow(now));
        let places = self.place_block(distance).ok_or(Refusal::NoSpace { may_grow })?;
        let cut = Cut::new(self.shape, &block);
        if let Known::Index(index) = &mut self.known {
            index.insert(id, places.hosts());
        }
        self.kept_count += 1;
        let kept = Some(self.kept_count);
        for (lane, host) in places.lanes() {
            let lanes = self.shape.lanes as u32;
            let is_spread = self.shape.is_copies();
            if let Some(host) = self.host_mut(host) {
                let step = host.driven_lap().unwrap_or_default() / lanes;
                let due = if is_spread { now + step * u32::from(lane.0) } else { now };
                let piece = Piece { id, lane, block_bytes };
                host.outbox.push(due, Item { piece, body: cut.piece(usize::from(lane.0)), kept });
                host.assigned += 1;
            }
        }
        if self.ram.is_on() {
            self.ram.insert(id, &block);
        }
        Ok(())
    }

    /// All that was kept until now.
    pub fn mark(&self) -> Mark {
        Mark(self.kept_count)
    }

    /// Whether each packet of what was kept before the mark was sent once at least, or is not to be sent any more.
    pub fn has_left(&self, mark: Mark) -> bool {
        let first = self.hosts.iter().filter_map(|host| host.outbox.first_unsent()).min();
        first.is_none_or(|first| first > mark.0)
    }
}
