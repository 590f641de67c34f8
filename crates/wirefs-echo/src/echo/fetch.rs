//! Fetching a block.

use std::collections::btree_map;

use bytes::Bytes;
use wirefs_op::Time;

use super::{BlockRecords, Echo, EchoOutput, EchoRefusal};
use crate::block::EchoBlockId;
use crate::limits::FETCHES_MAX;

/// The result of starting a fetch.
enum FetchStart {
    Started,
    Missing,
    Pending,
}

impl Echo {
    /// Requests a block. The result is one [`EchoOutput::Fetched`] or [`EchoOutput::Missing`], also for
    /// several requests.
    ///
    /// # Cost
    /// The time until a packet of it arrives: on average half a cycle divided by the number of copies. None
    /// if it is cached.
    ///
    /// # Errors
    /// [`EchoRefusal::Busy`] if too many fetches are pending.
    pub fn fetch(&mut self, now: Time, id: EchoBlockId) -> Result<(), EchoRefusal> {
        let now = self.clock.advance(now);
        if let Some(block) = self.ram.find(id) {
            self.outputs.push_back(EchoOutput::Fetched { id, block });
            return Ok(());
        }
        match self.begin_fetch(now, id)? {
            FetchStart::Started => self.wanted_count += 1,
            FetchStart::Pending => {}
            FetchStart::Missing => self.outputs.push_back(EchoOutput::Missing { id }),
        }
        Ok(())
    }

    fn begin_fetch(&mut self, now: Time, id: EchoBlockId) -> Result<FetchStart, EchoRefusal> {
        let is_full = self.wanted_count >= FETCHES_MAX;
        let timeout = self.age_max();
        match &mut self.records {
            BlockRecords::Index(index) => {
                let Some(mut entry) = index.find(id) else {
                    return Ok(FetchStart::Missing);
                };
                let mut flags = entry.flags();
                if flags.is_lost {
                    return Ok(FetchStart::Missing);
                }
                if flags.is_wanted {
                    return Ok(FetchStart::Pending);
                }
                if is_full {
                    return Err(EchoRefusal::Busy);
                }
                flags.is_wanted = true;
                entry.set_flags(flags);
                Ok(FetchStart::Started)
            }
            BlockRecords::RootOnly(root) => {
                if root.dropped.contains(id) {
                    return Ok(FetchStart::Missing);
                }
                match root.wanted.entry(id) {
                    btree_map::Entry::Occupied(_) => Ok(FetchStart::Pending),
                    btree_map::Entry::Vacant(_) if is_full => Err(EchoRefusal::Busy),
                    btree_map::Entry::Vacant(entry) => {
                        entry.insert(now + timeout);
                        Ok(FetchStart::Started)
                    }
                }
            }
        }
    }

    /// Ends a pending fetch of this block, if there is one.
    pub(super) fn finish_fetch(&mut self, id: EchoBlockId, block: Option<Bytes>) {
        let was_wanted = match &mut self.records {
            BlockRecords::Index(index) => index.find(id).is_some_and(|mut entry| {
                let flags = entry.flags();
                entry.set_flags(crate::index::Flags { is_wanted: false, ..flags });
                flags.is_wanted
            }),
            BlockRecords::RootOnly(root) => root.wanted.remove(&id).is_some(),
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
                self.outputs.push_back(EchoOutput::Fetched { id, block });
            }
            None => self.outputs.push_back(EchoOutput::Missing { id }),
        }
    }
}
