//! Group commit: tracks the durable prefix of the journal, and schedules write-out, sync and removal of segments.
//!
//! ```text
//!   no longer needed    full and durable            full            written to
//!  [ 3 ]  [ 4 ]         [ 5 ]  [ 6 ]                [ 7 ]  [ 8 ]    [ 9 ....     ]
//!  removed, in order                                synced next     write-out starts each 4 MiB
//! ```
//! A background thread takes jobs from [`GroupCommit::next_background_job`]. So a caller that waits ([`GroupCommit::role`]) finds all but the
//! newest entries durable. One waiting caller syncs for all others.
//!
//! Segments become durable in order: no byte of a segment is written out before all earlier segments are durable. So after a power loss the
//! first segments are whole, any part of the next one is there, and nothing behind it. A segment that was dropped before it was durable is
//! removed, with its name, before anything behind it is written out.
//!
//! A durable segment is removed once later notes are durable too. Segments before one that is not durable cannot wait for that, because the
//! notes are behind that one. Their missing numbers then say that the server has answered them
//! ([`Survey::has_answers`](crate::Survey::has_answers)).
//!
//! One sync runs at a time, since the kernel reports a failed write to one caller of `fsync` only.

use crate::limits::{BACKLOG_SEGMENTS_MAX, WRITE_OUT_BYTES};
use std::collections::VecDeque;
use std::ops::Range;

/// A point in the sequence of writes. Stands for all writes before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point(u64);

/// A job for the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskJob {
    /// Sync the directory, so that the names of all segments up to this one are durable.
    SyncNames(u64),
    /// Sync a segment.
    SyncSegment(u64),
    /// Start write-out of these bytes of a segment. No promise depends on it.
    WriteOut(u64, Range<u64>),
    /// Remove a segment.
    Remove(u64),
}

/// The role of a caller that waits for a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncRole {
    /// The point is durable.
    Durable,
    /// The disk has failed, and its contents are unknown.
    Failed,
    /// Another job must be done first.
    Wait,
    /// The caller must execute this job.
    Lead(DiskJob),
}

/// A segment that may not be durable.
#[derive(Clone, Copy, Debug)]
struct Segment {
    number: u64,
    /// The point after the last write to it.
    end: Point,
    /// The bytes that were written to it.
    bytes: u64,
    /// The bytes whose write-out has started.
    written_out: u64,
}

/// The job that callers wait for.
#[derive(Clone, Debug)]
struct InFlight {
    job: DiskJob,
    /// The durable point when the job is done.
    goal: Point,
    /// After a directory sync: segments below are durably removed.
    removed: u64,
}

/// Segments that are no longer needed.
#[derive(Clone, Copy, Debug, Default)]
struct Removal {
    /// The first needed segment, and the first present one.
    first_needed: u64,
    first_present: u64,
    /// The point that must be durable before segments are removed, unless one is torn. It covers the repeated notes of these segments.
    notes: Point,
    /// Segments below were not durable when they were dropped. Segments below `removed` are durably removed.
    torn_below: u64,
    removed: u64,
    is_removing: bool,
}

impl Removal {
    /// Returns whether torn segments may be on the disk. Nothing behind them may be written out.
    fn has_torn(&self) -> bool {
        self.removed < self.torn_below
    }

    /// Returns whether all torn segments are removed, possibly not yet durably.
    fn are_torn_removed(&self) -> bool {
        self.first_present >= self.torn_below
    }
}

/// The state of a journal's segments on the local disk; see the [module](self).
#[derive(Clone, Debug, Default)]
pub struct GroupCommit {
    written: Point,
    synced: Point,
    /// Needed segments, oldest first. The last one is written to, and may be durable.
    segments: VecDeque<Segment>,
    /// The last segment that was created, and the last whose name is durable.
    created: u64,
    named_to: u64,
    removal: Removal,
    in_flight: Option<InFlight>,
    has_failed: bool,
}

impl GroupCommit {
    /// A segment was created, and later writes go to it. Numbers count up by one, except after [`GroupCommit::discard_all`].
    pub fn created(&mut self, number: u64) {
        self.written.0 += 1;
        if self.segments.back().is_some_and(|last| last.end <= self.synced) {
            self.segments.pop_back();
        }
        if self.created == 0 || self.removal.first_present > self.created {
            (self.removal.first_needed, self.removal.first_present) = (number, number);
        }
        self.created = number;
        self.segments.push_back(Segment { number, end: self.written, bytes: 0, written_out: 0 });
    }

    /// Bytes were written to the last segment.
    pub fn wrote(&mut self, bytes: u64) {
        self.written.0 += 1;
        if let Some(last) = self.segments.back_mut() {
            last.end = self.written;
            last.bytes += bytes;
        }
    }

    /// Drops the full segments below a number. Their other entries were written again before.
    pub fn forget(&mut self, below: u64) {
        self.removal.first_needed = self.removal.first_needed.max(below.min(self.created));
        self.removal.notes = self.written;
        while let Some(first) = self.segments.front().filter(|first| first.number < self.removal.first_needed)
        {
            if first.end > self.synced {
                (self.synced, self.removal.torn_below) = (first.end, first.number + 1);
            }
            self.segments.pop_front();
        }
    }

    /// Drops all writes. The caller removes all segments.
    pub fn discard_all(&mut self) {
        self.segments.clear();
        self.synced = self.written;
        let next = self.created + 1;
        (self.named_to, self.removal.first_needed, self.removal.first_present, self.removal.removed) =
            (self.created, next, next, next);
    }

    /// Returns the point after the last write.
    pub fn written(&self) -> Point {
        self.written
    }

    /// Returns the durable point.
    pub fn synced(&self) -> Point {
        self.synced
    }

    /// Returns whether callers must wait before they change more, because too many segments are not synced or not removed.
    pub fn is_backlogged(&self) -> bool {
        let unneeded = usize::try_from(self.removal.first_needed.saturating_sub(self.removal.first_present))
            .unwrap_or(usize::MAX);
        self.segments.len().saturating_add(unneeded) > BACKLOG_SEGMENTS_MAX && !self.has_failed
    }

    /// Returns whether the file of a segment must stay open for a later job.
    pub fn needs_file(&self, number: u64) -> bool {
        number >= self.removal.first_present && number < self.removal.first_needed
            || self.segments.iter().any(|segment| segment.number == number)
    }

    /// Returns whether a sync runs.
    pub fn is_syncing(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Returns whether a background job is due.
    pub fn has_background_job(&self) -> bool {
        self.background_job().is_some()
    }

    /// Returns whether dropped segments are still present.
    pub fn has_removals(&self) -> bool {
        self.removal.is_removing || self.removal.first_present < self.removal.first_needed && !self.has_failed
    }

    /// Returns the next background job. The caller reports when it is [`GroupCommit::done`], except for a write-out.
    pub fn next_background_job(&mut self) -> Option<DiskJob> {
        let job = self.background_job()?;
        self.start(&job);
        Some(job)
    }

    /// Returns the next job that leads to the removal of dropped segments.
    pub fn next_removal_job(&mut self) -> Option<DiskJob> {
        let job = self.removal_job()?;
        self.start(&job);
        Some(job)
    }

    /// Returns the role of a caller that waits for a point.
    pub fn role(&mut self, point: Point) -> SyncRole {
        if self.has_failed {
            return SyncRole::Failed;
        }
        if self.synced >= point {
            return SyncRole::Durable;
        }
        // No sync runs, so a segment that is not durable has the point.
        let Some(job) = self.sync_job(|_| true) else { return SyncRole::Wait };
        self.start(&job);
        SyncRole::Lead(job)
    }

    /// A job is done. Covers the writes from before the job was taken.
    pub fn done(&mut self, job: &DiskJob) {
        match job {
            DiskJob::WriteOut(..) => return,
            DiskJob::Remove(number) => {
                // All segments may have been dropped meanwhile.
                self.removal.first_present = self.removal.first_present.max(number + 1);
                self.removal.is_removing = false;
                return;
            }
            DiskJob::SyncNames(up_to) => self.named_to = self.named_to.max(*up_to),
            DiskJob::SyncSegment(_) => {}
        }
        if let Some(in_flight) = self.in_flight.take_if(|in_flight| in_flight.job == *job) {
            self.synced = self.synced.max(in_flight.goal);
            self.removal.removed = self.removal.removed.max(in_flight.removed);
        }
        while self.segments.len() > 1 && self.segments.front().is_some_and(|first| first.end <= self.synced) {
            self.segments.pop_front();
        }
    }

    /// Ends a failure after [`GroupCommit::discard_all`].
    pub fn reset_failure(&mut self) {
        self.has_failed = false;
    }

    /// A job has failed. The durable point stays unknown for good.
    pub fn failed(&mut self, job: &DiskJob) {
        self.has_failed = true;
        if matches!(job, DiskJob::Remove(_)) {
            self.removal.is_removing = false;
        }
        self.in_flight.take_if(|in_flight| in_flight.job == *job);
    }

    /// Returns the oldest segment that may not be durable.
    fn first(&self) -> Option<Segment> {
        self.segments.iter().find(|segment| segment.end > self.synced).copied()
    }

    fn background_job(&self) -> Option<DiskJob> {
        let names = self.created > self.named_to && self.in_flight.is_none() && !self.has_failed;
        // A directory sync costs next to nothing right after a file sync, which has written most of its blocks.
        self.sync_job(|first| first.number < self.created)
            .or(names.then_some(DiskJob::SyncNames(self.created)))
            .or_else(|| self.removal_job())
            .or_else(|| self.write_out_job())
    }

    fn sync_job(&self, is_due: impl FnOnce(&Segment) -> bool) -> Option<DiskJob> {
        if self.in_flight.is_some() || self.has_failed {
            return None;
        }
        if self.removal.has_torn() {
            return (self.removal.are_torn_removed()).then_some(DiskJob::SyncNames(self.created));
        }
        let first = self.first().filter(is_due)?;
        // A file without a durable name may be missing after a power loss.
        let is_named = first.number <= self.named_to;
        Some(if is_named { DiskJob::SyncSegment(first.number) } else { DiskJob::SyncNames(self.created) })
    }

    fn removal_job(&self) -> Option<DiskJob> {
        if !self.has_removals() || self.removal.is_removing {
            return None;
        }
        if self.removal.are_torn_removed() && self.synced < self.removal.notes {
            return self.sync_job(|_| true);
        }
        let is_syncing =
            |in_flight: &InFlight| in_flight.job == DiskJob::SyncSegment(self.removal.first_present);
        (!self.in_flight.as_ref().is_some_and(is_syncing))
            .then_some(DiskJob::Remove(self.removal.first_present))
    }

    fn write_out_job(&self) -> Option<DiskJob> {
        if self.in_flight.is_some() || self.has_failed || self.removal.has_torn() {
            return None;
        }
        let first = self.first().filter(|first| first.number == self.created)?;
        (first.bytes - first.written_out >= WRITE_OUT_BYTES)
            .then_some(DiskJob::WriteOut(first.number, first.written_out..first.bytes))
    }

    fn start(&mut self, job: &DiskJob) {
        match job {
            DiskJob::Remove(_) => self.removal.is_removing = true,
            DiskJob::WriteOut(number, bytes) => self.written_out(*number, bytes.end),
            DiskJob::SyncNames(_) => {
                self.in_flight = Some(InFlight {
                    job: job.clone(),
                    goal: self.synced,
                    removed: self.removal.first_present,
                });
            }
            DiskJob::SyncSegment(number) => {
                let found = self.segments.iter().find(|segment| segment.number == *number);
                let Some(Segment { end, bytes, .. }) = found.copied() else { return };
                self.in_flight = Some(InFlight { job: job.clone(), goal: end, removed: 0 });
                self.written_out(*number, bytes);
            }
        }
    }

    fn written_out(&mut self, number: u64, bytes: u64) {
        if let Some(segment) = self.segments.iter_mut().find(|segment| segment.number == number) {
            segment.written_out = segment.written_out.max(bytes);
        }
    }
}

#[cfg(test)]
mod tests;
