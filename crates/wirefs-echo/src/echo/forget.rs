//! Dropping a block.

use wirefs_op::Time;

use super::{Echo, Known, Refusal};
use crate::block::BlockId;
use crate::index::{self, Lane};

impl Echo {
    /// Drops a block: its packets are not sent on when they come. Whoever waits for it is told that it is missing. One
    /// that is not there is dropped already.
    ///
    /// # Errors
    /// [`Refusal::Busy`] with `--keep=root` when more was dropped than the store can tell apart; again in some seconds.
    pub fn drop_block(&mut self, now: Time, id: BlockId) -> Result<(), Refusal> {
        let now = self.clock.run(now);
        if let Known::Root(root) = &mut self.known {
            if root.dropped.is_full() {
                return Err(Refusal::Busy);
            }
            root.dropped.insert(now, id);
            if let Some(heard) = &mut root.heard {
                heard.remove(&id);
            }
        }
        self.answer(id, None);
        self.ram.remove(id);
        self.gather.forget(id);
        if let Known::Index(index) = &mut self.known {
            if let Some(entry) = index.find(id) {
                for (_, lane) in entry.lanes() {
                    let Some(host) = self.hosts.get_mut(usize::from(lane.host().0)) else {
                        continue;
                    };
                    host.assigned = host.assigned.saturating_sub(1);
                    if let (Lane::Out { low, .. }, Some(newest)) = (lane, host.line.newest()) {
                        host.line.forgive(index::whole(low, newest));
                    }
                }
            }
            index.remove(id);
        }
        Ok(())
    }
}
