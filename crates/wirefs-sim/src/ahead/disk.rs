//! The local disk of a mount's journal: executes the jobs of a [`GroupCommit`](wirefs_journal::GroupCommit) one after the other, with delays.

use super::journal::Journal;
use crate::flaw::Flaw;
use crate::world::{Event, World};
use std::time::Duration;
use wirefs_client::call::{Answer, CallId};
use wirefs_journal::{DiskJob, Point, SyncRole};

impl Journal {
    /// Returns the jobs that start now, each with the number of entries that it covers.
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
        jobs.iter().for_each(|job| self.start_job(job));
        let count = |job: &DiskJob| self.count_for(job);
        jobs.into_iter().map(|job| (job.clone(), count(&job))).collect()
    }

    /// Returns the answers that waited for entries that are durable now.
    fn answers(&mut self) -> Vec<(CallId, Answer)> {
        let synced = self.durable.synced();
        let ready: Vec<_> = self.waiting.extract_if(.., |(point, ..)| *point <= synced).collect();
        self.promised = ready.iter().map(|(point, ..)| *point).fold(self.promised, Point::max);
        ready.into_iter().map(|(_, id, answer)| (id, answer)).collect()
    }
}

impl World {
    /// Holds an answer back until the local disk has the journal.
    pub(crate) fn answer_journaled(&mut self, index: usize, id: CallId, answer: Answer) {
        let Some(ahead) = &mut self.ahead else { return self.answer_comes(index, id, answer) };
        ahead.waits_for_disk(id);
        let Some(journal) = &mut ahead.journal else { return };
        let point = journal.durable.written();
        journal.waiting.push((point, id, answer));
        self.disk_goes_on(index);
    }

    /// Starts due jobs, and releases answers.
    pub(crate) fn disk_goes_on(&mut self, index: usize) {
        let Some(disk) = self.plan.ahead.as_ref().map(|ahead| ahead.disk) else { return };
        let Some(life) = self.hosts.get(index).map(|host| host.life) else { return };
        let Some(journal) = self.ahead.as_mut().and_then(|ahead| ahead.journal.as_mut()) else { return };
        let jobs = journal.jobs();
        if self.flaw == Some(Flaw::TrustsStartedSync) {
            jobs.iter().for_each(|(job, _)| journal.durable.done(job));
        }
        let answers = journal.answers();
        for (job, count) in jobs {
            let delay = self.delay(disk);
            self.may_crash_during_job(index, life, &job, delay);
            self.after(delay, Event::Disk(index, life, job, count));
        }
        for (id, answer) in answers {
            self.answer_comes(index, id, answer);
        }
    }

    /// Lets a client crash during a sync now and then, in runs with such faults.
    fn may_crash_during_job(&mut self, index: usize, life: u64, job: &DiskJob, delay: Duration) {
        let may_be = self.plan.faults.client_crashes
            && self.plan.ahead.as_ref().is_some_and(|plan| plan.machine_crashes)
            && !self.is_healed
            && matches!(job, DiskJob::SyncNames(_) | DiskJob::SyncSegment(_));
        let faults = self.ahead.as_mut().map(|ahead| &mut ahead.faults_left);
        let Some(dead_journal) = faults.filter(|dead_journal| may_be && **dead_journal > 0) else { return };
        if self.dice.chance(1, 12) {
            *dead_journal -= 1;
            self.after(delay / 2, Event::Crash(index, life));
        }
    }

    /// Crashes a client, unless it has crashed since.
    pub(crate) fn crash(&mut self, index: usize, life: u64) {
        if !self.is_healed && self.hosts.get(index).is_some_and(|host| host.life == life) {
            self.crash_host(index);
        }
    }

    /// Completes a job of the local disk.
    pub(crate) fn disk_is_done(&mut self, index: usize, life: u64, job: &DiskJob, count: usize) {
        if self.hosts.get(index).is_none_or(|host| host.life != life || host.is_down) {
            return;
        }
        if let Some(journal) = self.ahead.as_mut().and_then(|ahead| ahead.journal.as_mut()) {
            journal.is_done(job, count);
            journal.durable.done(job);
        }
        self.disk_goes_on(index);
    }
}
