//! Lookups that no listing answered, counted by directory. After a few of them, the directory's listing is fetched.

use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_cache::TreeNodeId;
use wirefs_op::Time;

/// The maximum number of directories whose misses are counted.
const MISSES_MAX: usize = 1024;

/// The number of misses by directory, and the time of the first one.
#[derive(Debug, Default)]
pub(crate) struct Misses(BTreeMap<TreeNodeId, (u32, Time)>);

impl Misses {
    /// Counts a miss, and returns the number of misses in `dir`. They are forgotten after `span`.
    pub(crate) fn count(&mut self, dir: TreeNodeId, now: Time, span: Duration) -> u32 {
        if self.0.len() >= MISSES_MAX {
            self.0.retain(|_, (_, since)| now < *since + span);
            if self.0.len() >= MISSES_MAX {
                self.0.clear();
            }
        }
        let (count, since) = self.0.entry(dir).or_insert((0, now));
        if now >= *since + span {
            (*count, *since) = (0, now);
        }
        *count += 1;
        *count
    }
}
