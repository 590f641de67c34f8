//! Fetching a block.

use std::collections::btree_map;

use bytes::Bytes;
use wirefs_op::Time;

use super::{Echo, Known, Output, Refusal};
use crate::block::BlockId;
use crate::limits::FETCHES_MAX;

/// What came of asking for a block.
enum Asked {
    Waits,
    IsAway,
    IsWaitedFor,
}

impl Echo {
    /// Asks for a block. The answer is [`Output::Fetched`] or [`Output::Missing`], once for all who ask before it comes.
    ///
    /// # Cost
    /// Until a packet of it comes by: on average half a lap over the number of copies; nothing when it is in memory.
    ///
    /// # Errors
    /// [`Refusal::Busy`] when too many blocks are waited for.
    pub fn fetch(&mut self, now: Time, id: BlockId) -> Result<(), Refusal> {
        let now = self.clock.run(now);
        if let Some(block) = self.ram.find(id) {
            self.outputs.push_back(Output::Fetched { id, block });
            return Ok(());
        }
        match self.ask(now, id)? {
            Asked::Waits => self.wanted_count += 1,
            Asked::IsWaitedFor => {}
            Asked::IsAway => self.outputs.push_back(Output::Missing { id }),
        }
        Ok(())
    }

    fn ask(&mut self, now: Time, id: BlockId) -> Result<Asked, Refusal> {
        let is_full = self.wanted_count >= FETCHES_MAX;
        let patience = self.age_max();
        match &mut self.known {
            Known::Index(index) => {
                let Some(mut entry) = index.find(id) else {
                    return Ok(Asked::IsAway);
                };
                let mut flags = entry.flags();
                if flags.is_lost {
                    return Ok(Asked::IsAway);
                }
                if flags.is_wanted {
                    return Ok(Asked::IsWaitedFor);
                }
                if is_full {
                    return Err(Refusal::Busy);
                }
                flags.is_wanted = true;
                entry.set_flags(flags);
                Ok(Asked::Waits)
            }
            Known::Root(root) => {
                if root.dropped.contains(id) {
                    return Ok(Asked::IsAway);
                }
                match root.wanted.entry(id) {
                    btree_map::Entry::Occupied(_) => Ok(Asked::IsWaitedFor),
                    btree_map::Entry::Vacant(_) if is_full => Err(Refusal::Busy),
                    btree_map::Entry::Vacant(entry) => {
                        entry.insert(now + patience);
                        Ok(Asked::Waits)
                    }
                }
            }
        }
    }

    /// Answers those who wait for a block, if somebody does.
    pub(super) fn answer(&mut self, id: BlockId, block: Option<Bytes>) {
        let was_wanted = match &mut self.known {
            Known::Index(index) => index.find(id).is_some_and(|mut entry| {
                let flags = entry.flags();
                entry.set_flags(crate::index::Flags { is_wanted: false, ..flags });
                flags.is_wanted
            }),
            Known::Root(root) => root.wanted.remove(&id).is_some(),
        };
        if !was_wanted {
            return;
        }
        self.wanted_count = self.wanted_count.saturating_sub(1);
        match block {
            Some(block) => {
                if self.ram.is_on() {
                    self.ram.insert(id, &block);
                }
                self.outputs.push_back(Output::Fetched { id, block });
            }
            None => self.outputs.push_back(Output::Missing { id }),
        }
    }
}
