//! Cleaning: what is still there of a segment is copied to the end, and the segment removed.

use super::super::record::{self, Kind};
use super::super::segment::{Found, Segment};
use super::Log;
use bytes::Bytes;
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::StoreFault;

/// Segments that a log has at least before any is cleaned while there is room.
const SEGMENTS_MIN: u64 = 4;

impl Log {
    /// Cleans the oldest segment where more than half of the log is let go of.
    pub(in super::super) fn clean_some(&mut self) {
        let is_worth_it = self.usage.used() > 2 * self.usage.live() + SEGMENTS_MIN * self.segment_bytes;
        if let Some(oldest) = self.oldest().filter(|_| is_worth_it && self.segments.len() > 1) {
            // One that cannot be cleaned now is the oldest the next time too.
            let _later = self.clean(oldest);
        }
        if let Some(free) = self.free_bytes() {
            self.reserve.refill(free);
        }
    }

    /// Sees to it that so many bytes can be written and the reserve is whole, as far as cleaning can do that: segments first
    /// of which most is let go of.
    pub(super) fn make_free(&mut self, bytes: u64) {
        let goal = bytes.saturating_add(self.segment_bytes * super::RESERVED_SEGMENTS);
        while let Some(free) = self.free_bytes() {
            let last = self.last().map_or(0, |last| last.number);
            let oldest = self.oldest().filter(|oldest| *oldest < last && self.usage.is_full_of_freeing());
            let best = self.usage.best(last).or(oldest);
            let is_enough = free.saturating_add(self.reserve.bytes()) >= goal;
            // One that cannot be cleaned would be found again.
            if is_enough || best.is_none_or(|best| self.clean(best).is_err()) {
                return;
            }
        }
    }

    /// Bytes that the disk has free, those set aside not counted; `None` when it does not say.
    fn free_bytes(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.directory).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Bytes that the disk has, and bytes that can be written to it: what cleaning gives is among them, what it takes is not.
    pub(in super::super) fn room_bytes(&self) -> (u64, u64) {
        let Ok(found) = rustix::fs::statvfs(&self.directory) else { return (0, 0) };
        let free = found.f_bavail.saturating_mul(found.f_frsize) + self.reserve.bytes() + self.usage.gain();
        let all = found.f_blocks.saturating_mul(found.f_frsize);
        (all.saturating_sub(self.segment_bytes), free.saturating_sub(self.segment_bytes).min(all))
    }

    fn oldest(&self) -> Option<u64> {
        self.segments.first_key_value().map(|(number, _)| *number)
    }

    /// Copies what is still there of a segment to the end, and removes it once that is on the disk. Of the oldest, what lets go
    /// of blocks is not copied: they are in no segment any more. One that cannot be read stays.
    fn clean(&mut self, number: u64) -> Result<(), StoreFault> {
        let Some(segment) = self.segments.get(&number).cloned() else { return Ok(()) };
        // Not what its records say now: behind a damaged one they say nothing more.
        let here = self.blocks.iter().filter(|(_, at)| at.segment == number);
        let mut here: Vec<(BlockId, Found)> = here.map(|(id, at)| (*id, at.found)).collect();
        here.sort_unstable_by_key(|(_, found)| found.body_at);
        let unreadable = |_| StoreFault::Broken("the disk does not give what was written");
        for (id, found) in here {
            let body = segment.body(found.body_at, &found.head).map_err(unreadable)?;
            // A damaged one is lost here as it would be there.
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
            .map_err(|_| StoreFault::Broken("a segment cannot be removed"))?;
        self.segments.remove(&number);
        self.usage.remove(number);
        self.blocks.retain(|_, at| at.segment != number);
        Ok(())
    }
}

/// What a segment's records let go of, a body for each.
fn freed(segment: &Segment) -> std::io::Result<Vec<Bytes>> {
    let records = segment.records(false)?.into_iter().filter(|found| found.is(Kind::Free));
    let bodies = records.map(|found| segment.body(found.body_at, &found.head));
    let bodies = bodies.collect::<std::io::Result<Vec<Option<Bytes>>>>()?;
    Ok(bodies.into_iter().flatten().filter(|body| record::ids_of(body).next().is_some()).collect())
}
