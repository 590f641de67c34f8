//! How much of a journal the local disk has, and what it is to do next: for whoever waits for it, and before anybody does.
//!
//! ```text
//!   needed by nobody    full, and whole on the disk    full            written to
//!  [ 3 ]  [ 4 ]         [ 5 ]  [ 6 ]                   [ 7 ]  [ 8 ]    [ 9 ....     ]
//!  removed, in order                                   synced next     begun each 4 MiB
//! ```
//! One thread of the journal's own asks [`Durable::early`] what there is to do. So whoever waits ([`Durable::turn`]) finds all done but for
//! what is younger; it leads then, and the others who wait wait for it.
//!
//! Segments come to the disk in order: nothing of one is handed to it before all of those before it are there. So a machine that loses power
//! has all of the first segments, any part of the next one, and nothing behind that: what is under way within a segment gets there in any
//! order. Nor is anything behind one that nobody needed any more before the disk had it: that is not brought there, but removed first, and
//! its name with it.
//!
//! A segment that the disk has is removed once it also has what was noted since. Those before one that it does not have cannot wait for that:
//! what was noted is behind that one. That their number is gone says then that the server has answered them
//! ([`Survey::has_answers`](crate::Survey::has_answers)).
//!
//! One sync is under way at a time, so that nobody believes a file whose failure the system has told somebody else.

use crate::limits::{BEGUN_BYTES, BEHIND_SEGMENTS_MAX};
use std::collections::VecDeque;
use std::ops::Range;

/// A point in what was written: all before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point(u64);

/// What the disk is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Have the names of all segments up to this one.
    Names(u64),
    /// Have all that was written to a segment.
    Sync(u64),
    /// Begin to write these bytes of a segment. Nobody relies on it.
    Begin(u64, Range<u64>),
    /// Remove a segment.
    Remove(u64),
}

/// What is the turn of somebody who waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The disk has it.
    Durable,
    /// Nobody knows what the disk has.
    Failed,
    /// Somebody else's job has to be done first.
    Wait,
    /// To see to this job.
    Lead(Job),
}

/// A segment of which the disk may not have all.
#[derive(Clone, Copy, Debug)]
struct Segment {
    number: u64,
    /// All that was written to it is before this.
    end: Point,
    /// Bytes that were written to it.
    bytes: u64,
    /// As many of them are on their way to the disk, or there.
    begun: u64,
}

/// A job that somebody waits for.
#[derive(Clone, Debug)]
struct UnderWay {
    job: Job,
    /// The disk has all up to here when it is done,
    goal: Point,
    /// and knows that the segments below are gone, where it is one of names.
    gone: u64,
}

/// Segments that nobody needs any more.
#[derive(Clone, Copy, Debug, Default)]
struct Going {
    /// The first segment that is needed, and the first that is there.
    needed: u64,
    there: u64,
    /// Before they go, the disk has all up to here, where none of them is torn: what was noted in them was noted once more.
    noted: Point,
    /// Those below were not whole on the disk when nobody needed them any more. The disk knows that all below the other are gone.
    torn: u64,
    gone: u64,
    is_removing: bool,
}

impl Going {
    /// Whether segments may be there that are torn: nothing behind them may get to the disk.
    fn is_torn(&self) -> bool {
        self.gone < self.torn
    }

    /// Whether all that are torn are removed, though the disk may not know it yet.
    fn is_past_torn(&self) -> bool {
        self.there >= self.torn
    }
}

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct Durable {
    written: Point,
    synced: Point,
    /// Those that are needed, oldest first. The last is written to, and may be on the disk as it is.
    segments: VecDeque<Segment>,
    /// The last that was made, and the last whose name the disk has.
    made: u64,
    named: u64,
    going: Going,
    under_way: Option<UnderWay>,
    has_failed: bool,
}

impl Durable {
    /// A segment was made: what follows is written to it. Numbers count up by one, but for those that are skipped after all was let go of.
    pub fn made(&mut self, number: u64) {
        self.written.0 += 1;
        if self.segments.back().is_some_and(|last| last.end <= self.synced) {
            self.segments.pop_back();
        }
        if self.made == 0 || self.going.there > self.made {
            (self.going.needed, self.going.there) = (number, number);
        }
        self.made = number;
        self.segments.push_back(Segment { number, end: self.written, bytes: 0, begun: 0 });
    }

    /// So many bytes were written to the last segment.
    pub fn wrote(&mut self, bytes: u64) {
        self.written.0 += 1;
        if let Some(last) = self.segments.back_mut() {
            last.end = self.written;
            last.bytes += bytes;
        }
    }

    /// The segments below a number are not needed, of those that are full. What else they say was written once more before.
    pub fn forget(&mut self, below: u64) {
        self.going.needed = self.going.needed.max(below.min(self.made));
        self.going.noted = self.written;
        while let Some(first) = self.segments.front().filter(|first| first.number < self.going.needed) {
            if first.end > self.synced {
                (self.synced, self.going.torn) = (first.end, first.number + 1);
            }
            self.segments.pop_front();
        }
    }

    /// Nothing of what was written is needed, and somebody else removes all segments there are.
    pub fn let_go(&mut self) {
        self.segments.clear();
        self.synced = self.written;
        let next = self.made + 1;
        (self.named, self.going.needed, self.going.there, self.going.gone) = (self.made, next, next, next);
    }

    /// What was written so far.
    pub fn written(&self) -> Point {
        self.written
    }

    /// What the disk has for certain.
    pub fn synced(&self) -> Point {
        self.synced
    }

    /// Whether so much is left for the disk to sync or to remove that it has to do some of it before more is changed.
    pub fn is_behind(&self) -> bool {
        let unneeded =
            usize::try_from(self.going.needed.saturating_sub(self.going.there)).unwrap_or(usize::MAX);
        self.segments.len().saturating_add(unneeded) > BEHIND_SEGMENTS_MAX && !self.has_failed
    }

    /// Whether the file of a segment is to stay open: there is a job for it yet.
    pub fn holds(&self, number: u64) -> bool {
        number >= self.going.there && number < self.going.needed
            || self.segments.iter().any(|segment| segment.number == number)
    }

    /// Whether somebody waits for the disk just now.
    pub fn is_used(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether there is something to do before anybody waits for it.
    pub fn has_early(&self) -> bool {
        self.next_early().is_some()
    }

    /// Whether segments are there that nobody needs, and that go.
    pub fn has_unneeded(&self) -> bool {
        self.going.is_removing || self.going.there < self.going.needed && !self.has_failed
    }

    /// What is to be done before anybody waits for it. Whoever takes it says when it is [`Durable::done`], but for what is only begun.
    pub fn early(&mut self) -> Option<Job> {
        let job = self.next_early()?;
        self.take(&job);
        Some(job)
    }

    /// The same, of what it takes to remove what nobody needs.
    pub fn tidy(&mut self) -> Option<Job> {
        let job = self.next_unneeded()?;
        self.take(&job);
        Some(job)
    }

    /// What somebody does who waits for a point.
    pub fn turn(&mut self, point: Point) -> Turn {
        if self.has_failed {
            return Turn::Failed;
        }
        if self.synced >= point {
            return Turn::Durable;
        }
        // Where nothing is under way, what was written is in a segment that the disk does not have.
        let Some(job) = self.next_sync(|_| true) else { return Turn::Wait };
        self.take(&job);
        Turn::Lead(job)
    }

    /// A job is done. The disk has what was there when it was taken.
    pub fn done(&mut self, job: &Job) {
        match job {
            Job::Begin(..) => return,
            Job::Remove(number) => {
                // All may have been let go of meanwhile.
                self.going.there = self.going.there.max(number + 1);
                self.going.is_removing = false;
                return;
            }
            Job::Names(up_to) => self.named = self.named.max(*up_to),
            Job::Sync(_) => {}
        }
        if let Some(under_way) = self.under_way.take_if(|under_way| under_way.job == *job) {
            self.synced = self.synced.max(under_way.goal);
            self.going.gone = self.going.gone.max(under_way.gone);
        }
        while self.segments.len() > 1 && self.segments.front().is_some_and(|first| first.end <= self.synced) {
            self.segments.pop_front();
        }
    }

    /// Nothing counts any more of what has failed: all of it was let go of.
    pub fn mended(&mut self) {
        self.has_failed = false;
    }

    /// A job has failed: what the disk has of what was written is not known any more, and never will be.
    pub fn failed(&mut self, job: &Job) {
        self.has_failed = true;
        if matches!(job, Job::Remove(_)) {
            self.going.is_removing = false;
        }
        self.under_way.take_if(|under_way| under_way.job == *job);
    }

    /// The oldest segment of which the disk may not have all.
    fn first(&self) -> Option<Segment> {
        self.segments.iter().find(|segment| segment.end > self.synced).copied()
    }

    fn next_early(&self) -> Option<Job> {
        let names = self.made > self.named && self.under_way.is_none() && !self.has_failed;
        // The names cost next to nothing right after a sync, which has brought most of what they need there.
        self.next_sync(|first| first.number < self.made)
            .or(names.then_some(Job::Names(self.made)))
            .or_else(|| self.next_unneeded())
            .or_else(|| self.next_begin())
    }

    fn next_sync(&self, is_due: impl FnOnce(&Segment) -> bool) -> Option<Job> {
        if self.under_way.is_some() || self.has_failed {
            return None;
        }
        if self.going.is_torn() {
            return (self.going.is_past_torn()).then_some(Job::Names(self.made));
        }
        let first = self.first().filter(is_due)?;
        // A file that nobody finds is not there.
        let is_named = first.number <= self.named;
        Some(if is_named { Job::Sync(first.number) } else { Job::Names(self.made) })
    }

    fn next_unneeded(&self) -> Option<Job> {
        if !self.has_unneeded() || self.going.is_removing {
            return None;
        }
        if self.going.is_past_torn() && self.synced < self.going.noted {
            return self.next_sync(|_| true);
        }
        let is_used = |under_way: &UnderWay| under_way.job == Job::Sync(self.going.there);
        (!self.under_way.as_ref().is_some_and(is_used)).then_some(Job::Remove(self.going.there))
    }

    fn next_begin(&self) -> Option<Job> {
        if self.under_way.is_some() || self.has_failed || self.going.is_torn() {
            return None;
        }
        let first = self.first().filter(|first| first.number == self.made)?;
        (first.bytes - first.begun >= BEGUN_BYTES)
            .then_some(Job::Begin(first.number, first.begun..first.bytes))
    }

    fn take(&mut self, job: &Job) {
        match job {
            Job::Remove(_) => self.going.is_removing = true,
            Job::Begin(number, bytes) => self.begun(*number, bytes.end),
            Job::Names(_) => {
                self.under_way =
                    Some(UnderWay { job: job.clone(), goal: self.synced, gone: self.going.there });
            }
            Job::Sync(number) => {
                let found = self.segments.iter().find(|segment| segment.number == *number);
                let Some(Segment { end, bytes, .. }) = found.copied() else { return };
                self.under_way = Some(UnderWay { job: job.clone(), goal: end, gone: 0 });
                self.begun(*number, bytes);
            }
        }
    }

    fn begun(&mut self, number: u64, bytes: u64) {
        if let Some(segment) = self.segments.iter_mut().find(|segment| segment.number == number) {
            segment.begun = segment.begun.max(bytes);
        }
    }
}

#[cfg(test)]
mod tests;
