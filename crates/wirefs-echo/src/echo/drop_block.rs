//! Dropping a block.

use wirefs_op::Time;

use super::{BlockRecords, Echo, EchoRefusal};
use crate::block::EchoBlockId;
use crate::index::{self, LaneState};

impl Echo {
    /// Drops a block: its packets are not sent again. A pending fetch ends with
    /// [`EchoOutput::Missing`](super::EchoOutput::Missing). Dropping a block that does not exist succeeds.
    ///
    /// # Errors
    /// [`EchoRefusal::Busy`] with `--keep=root` if there are too many tombstones; retry after some seconds.
    pub fn drop_block(&mut self, now: Time, id: EchoBlockId) -> Result<(), EchoRefusal> {
        let now = self.clock.advance(now);
        if let BlockRecords::RootOnly(root) = &mut self.records {
            if root.dropped.is_full() {
                return Err(EchoRefusal::Busy);
            }
            root.dropped.insert(now, id);
            if let Some(listed) = &mut root.listed {
                listed.remove(&id);
            }
        }
        self.finish_fetch(id, None);
        self.ram.remove(id);
        self.collector.discard(id);
        if let BlockRecords::Index(index) = &mut self.records {
            if let Some(entry) = index.find(id) {
                for (_, lane) in entry.lanes() {
                    let Some(host) = self.hosts.get_mut(usize::from(lane.host().0)) else {
                        continue;
                    };
                    host.assigned = host.assigned.saturating_sub(1);
                    if let (LaneState::InFlight { low, .. }, Some(newest)) = (lane, host.timeline.newest()) {
                        host.timeline.forget(index::whole(low, newest));
                    }
                }
            }
            index.remove(id);
        }
        Ok(())
    }
}
