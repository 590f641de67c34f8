//! Storing a block.

use bytes::Bytes;
use wirefs_op::Time;

use super::{BlockRecords, Distance, Echo, EchoRefusal};
use crate::block::EchoBlockId;
use crate::limits::SEND_QUEUE_BYTES_MAX;
use crate::packet::Piece;
use crate::pieces::BlockEncoder;
use crate::send_queue::{self, QueuedPacket};

/// A position in the order of stored blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPoint(u64);

impl Echo {
    /// Stores a block: queues its packets, copies spread over a cycle, and keeps them circulating.
    ///
    /// # Cost
    /// No round trip. The contents stay in memory until the last packet is sent: for copies, a cycle at most.
    ///
    /// # Errors
    /// [`EchoRefusal`]; the block is then not stored.
    pub fn store_block(
        &mut self,
        now: Time,
        id: EchoBlockId,
        block: Bytes,
        distance: Distance,
    ) -> Result<(), EchoRefusal> {
        let now = self.clock.advance(now);
        let bytes_max = self.block_bytes_max();
        let block_bytes = u32::try_from(block.len()).ok().filter(|_| block.len() <= bytes_max);
        let block_bytes = block_bytes.ok_or(EchoRefusal::TooLarge { bytes_max })?;
        let exists = match &self.records {
            BlockRecords::Index(index) => index.contains(id),
            BlockRecords::RootOnly(root) => root.dropped.contains(id),
        };
        if exists {
            return Err(EchoRefusal::Exists);
        }
        let waiting: usize = self.hosts.iter().map(|host| host.send_queue.bytes()).sum();
        let piece_bytes = self.shape.piece_bytes(block.len());
        if waiting + self.shape.lanes * send_queue::queued_bytes(piece_bytes) > SEND_QUEUE_BYTES_MAX {
            return Err(EchoRefusal::Busy);
        }
        let may_grow = self.hosts.iter().any(|host| host.may_grow(now));
        let places = self.place_block(distance).ok_or(EchoRefusal::NoSpace { may_grow })?;
        let encoder = BlockEncoder::new(self.shape, &block);
        if let BlockRecords::Index(index) = &mut self.records {
            index.insert(id, places.hosts());
        }
        self.stored_count += 1;
        let unsent_block = Some(self.stored_count);
        for (lane, host) in places.lanes() {
            let lanes = self.shape.lanes as u32;
            let is_spread = self.shape.is_copies();
            if let Some(host) = self.host_mut(host) {
                let step = host.busy_cycle().unwrap_or_default() / lanes;
                let due = if is_spread { now + step * u32::from(lane.0) } else { now };
                let piece = Piece { id, lane, block_bytes };
                host.send_queue.push(
                    due,
                    QueuedPacket { piece, body: encoder.piece(usize::from(lane.0)), unsent_block },
                );
                host.assigned += 1;
            }
        }
        if self.ram.is_on() {
            self.ram.insert(id, &block);
        }
        Ok(())
    }

    /// Returns a point after all blocks stored so far.
    pub fn sync_point(&self) -> SyncPoint {
        SyncPoint(self.stored_count)
    }

    /// Returns whether each packet of the blocks stored before the point was sent at least once, or was
    /// cancelled.
    pub fn is_sent_up_to(&self, point: SyncPoint) -> bool {
        let first = self.hosts.iter().filter_map(|host| host.send_queue.first_unsent()).min();
        first.is_none_or(|first| first > point.0)
    }
}
