//! The disk of a mount's journal: it does one thing after the other, as [`GroupCommit`](wirefs_journal::GroupCommit) says, and takes its time.

use super::journal::Journal;
use crate::flaw::Flaw;
use crate::world::{Event, World};
use std::time::Duration;
use wirefs_client::call::{Answer, CallId};
use wirefs_journal::{DiskJob, Point, SyncRole};

impl Journal {
    /// What the disk begins to do now, and what it is about.
    fn jobs(&mut self) -> Vec<(DiskJob, usize)> {
        let mut jobs = Vec::new();
        for (point, ..) in &self.waiting {
            if let SyncRole::Lead(job) = self.durable.role(*point) {
                jobs.push(job);
            }
        }
        while let Some(job) = self.durable.next_background_job() {
            self.is_early |= matches!(job, DiskJob::SyncNames(_) | DiskJob::SyncSegment(_));
            jobs.push(job);
        }
        jobs.iter().for_each(|job| self.is_told(job));
        let count = |job: &DiskJob| self.count_for(job);
        jobs.into_iter().map(|job| (job.clone(), count(&job))).collect()
    }

    /// The answers that waited for what the disk has by now.
    fn answers(&mut self) -> Vec<(CallId, Answer)> {
        let synced = self.durable.synced();
        let ready: Vec<_> = self.waiting.extract_if(.., |(point, ..)| *point <= synced).collect();
        self.promised = ready.iter().map(|(point, ..)| *point).fold(self.promised, Point::max);
        ready.into_iter().map(|(_, id, answer)| (id, answer)).collect()
    }
}

impl World {
    /// An answer waits for the local disk.
    pub(crate) fn answer_journaled(&mut self, index: usize, id: CallId, answer: Answer) {
        let Some(ahead) = &mut self.ahead else { return self.answer_comes(index, id, answer) };
        ahead.waits_for_disk(id);
        let Some(journal) = &mut ahead.journal else { return };
        let point = journal.durable.written();
        journal.waiting.push((point, id, answer));
        self.disk_goes_on(index);
    }

    /// The local disk gets to know what there is to do, and answers come for which it has done enough.
    pub(crate) fn disk_goes_on(&mut self, index: usize) {
        let Some(disk) = self.plan.ahead.as_ref().map(|ahead| ahead.disk) else { return };
        let Some(life) = self.seats.get(index).map(|seat| seat.life) else { return };
        let Some(journal) = self.ahead.as_mut().and_then(|ahead| ahead.journal.as_mut()) else { return };
        let jobs = journal.jobs();
        if self.flaw == Some(Flaw::TakesBegunForDone) {
            jobs.iter().for_each(|(job, _)| journal.durable.done(job));
        }
        let answers = journal.answers();
        for (job, count) in jobs {
            let delay = self.delay(disk);
            self.may_crash_within(index, life, &job, delay);
            self.after(delay, Event::Disk(index, life, job, count));
        }
        for (id, answer) in answers {
            self.answer_comes(index, id, answer);
        }
    }

    /// Now and then a client crashes while its disk syncs, in runs where machines do.
    fn may_crash_within(&mut self, index: usize, life: u64, job: &DiskJob, delay: Duration) {
        let may_be = self.plan.troubles.client_crashes
            && self.plan.ahead.as_ref().is_some_and(|plan| plan.machine_crashes)
            && !self.is_healed
            && matches!(job, DiskJob::SyncNames(_) | DiskJob::SyncSegment(_));
        let troubles = self.ahead.as_mut().map(|ahead| &mut ahead.troubles_left);
        let Some(left) = troubles.filter(|left| may_be && **left > 0) else { return };
        if self.dice.chance(1, 12) {
            *left -= 1;
            self.after(delay / 2, Event::Crash(index, life));
        }
    }

    /// A client crashes, if it has not yet.
    pub(crate) fn crashes(&mut self, index: usize, life: u64) {
        if !self.is_healed && self.seats.get(index).is_some_and(|seat| seat.life == life) {
            self.crash_seat(index);
        }
    }

    /// The local disk has done something.
    pub(crate) fn disk_is_done(&mut self, index: usize, life: u64, job: &DiskJob, count: usize) {
        if self.seats.get(index).is_none_or(|seat| seat.life != life || seat.is_down) {
            return;
        }
        if let Some(journal) = self.ahead.as_mut().and_then(|ahead| ahead.journal.as_mut()) {
            journal.is_done(job, count);
            journal.durable.done(job);
        }
        self.disk_goes_on(index);
    }
}
