//! The cleaner: copies the live data of a segment to the end of the log and removes the segment.

use super::super::record::{self, Kind};
use super::super::segment::{RecordAt, Segment};
use super::Log;
use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::StoreFault;

/// The minimum number of segments in a log before it is cleaned without shortage of space.
const SEGMENTS_MIN: u64 = 4;

impl Log {
    /// Cleans the oldest segment if more than half of the log is dead.
    pub(in super::super) fn clean_some(&mut self) {
        let is_worth_it = self.usage.used() > 2 * self.usage.live() + SEGMENTS_MIN * self.segment_bytes;
        if let Some(oldest) = self.oldest().filter(|_| is_worth_it && self.segments.len() > 1) {
            // After a failure, the oldest segment is tried again the next time.
            let _later = self.clean(oldest);
        }
        if let Some(free) = self.free_bytes() {
            self.reserve.refill(free);
        }
    }

    /// Cleans segments, those with the least live data first, until `bytes` and the reserve are free or
    /// nothing is worth cleaning.
    pub(super) fn make_free(&mut self, bytes: u64) {
        let goal = bytes.saturating_add(self.segment_bytes * super::RESERVED_SEGMENTS);
        while let Some(free) = self.free_bytes() {
            let last = self.last().map_or(0, |last| last.number);
            let oldest = self.oldest().filter(|oldest| *oldest < last && self.usage.has_many_free_records());
            let best = self.usage.best(last).or(oldest);
            let is_enough = free.saturating_add(self.reserve.bytes()) >= goal;
            // A segment that cannot be cleaned would be chosen again.
            if is_enough || best.is_none_or(|best| self.clean(best).is_err()) {
                return;
            }
        }
    }

    /// The free space of the disk without the reserve, in bytes; `None` if unknown.
    fn free_bytes(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.directory).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Returns the size of the disk and the space that can be written, in bytes. The latter includes the gain
    /// of cleaning and excludes the space that cleaning needs.
    pub(in super::super) fn room_bytes(&self) -> (u64, u64) {
        let Ok(found) = rustix::fs::statvfs(&self.directory) else { return (0, 0) };
        let free = found.f_bavail.saturating_mul(found.f_frsize) + self.reserve.bytes() + self.usage.gain();
        let all = found.f_blocks.saturating_mul(found.f_frsize);
        (all.saturating_sub(self.segment_bytes), free.saturating_sub(self.segment_bytes).min(all))
    }

    fn oldest(&self) -> Option<u64> {
        self.segments.first_key_value().map(|(number, _)| *number)
    }

    /// Copies the live data of a segment to the end, syncs it, and removes the segment. Free records of the
    /// oldest segment are obsolete and not copied. A segment that cannot be read stays.
    fn clean(&mut self, number: u64) -> Result<(), StoreFault> {
        let Some(segment) = self.segments.get(&number).cloned() else { return Ok(()) };
        // Uses the index, because records behind a damaged one cannot be found in the file.
        let here = self.blocks.iter().filter(|(_, at)| at.segment == number);
        let mut here: Vec<(BlockId, RecordAt)> = here.map(|(id, at)| (*id, at.found)).collect();
        here.sort_unstable_by_key(|(_, found)| found.body_at);
        let unreadable = |_| StoreFault::Broken("reading from the disk failed");
        for (id, found) in here {
            let body = segment.body(found.body_at, &found.head).map_err(unreadable)?;
            // A damaged block is lost either way.
            if let Some(body) = body {
                self.append(&[(Kind::Block, id.bits(), body)])?;
            }
        }
        if self.oldest() != Some(number) {
            for body in freed(&segment).map_err(unreadable)? {
                self.append(&[(Kind::Free, 0, body)])?;
            }
        }
        if let Some(root) = self.root {
            self.append_root(root)?;
        }
        self.sync_last()?;
        std::fs::remove_file(Segment::path(&self.directory, number))
            .map_err(|_| StoreFault::Broken("a log segment cannot be removed"))?;
        self.segments.remove(&number);
        self.usage.remove(number);
        self.blocks.retain(|_, at| at.segment != number);
        Ok(())
    }
}

/// Returns the bodies of the free records of a segment.
fn freed(segment: &Segment) -> std::io::Result<Vec<Bytes>> {
    let records = segment.records(false)?.into_iter().filter(|found| found.is(Kind::Free));
    let bodies = records.map(|found| segment.body(found.body_at, &found.head));
    let bodies = bodies.collect::<std::io::Result<Vec<Option<Bytes>>>>()?;
    Ok(bodies.into_iter().flatten().filter(|body| record::ids_of(body).next().is_some()).collect())
}
