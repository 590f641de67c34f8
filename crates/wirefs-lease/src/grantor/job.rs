//! Jobs: the objects that each touches, and the recalls that it waits for.

use super::changes::Moment;
use super::directory_locks::Ticket;
use super::held_leases::RecallPosition;
use super::{Grantor, GrantorOutput, HolderKey, JobKey, TouchOutcome, Touched};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::{FileId, Time};

/// A request in execution.
#[derive(Debug)]
pub(super) struct Job {
    /// The start of its current attempt.
    pub(super) begun: Moment,
    /// The holder that requested the change.
    holder: Option<HolderKey>,
    /// Its age among all changes; `None` before it touches an object.
    ticket: Option<Ticket>,
    /// The number of earlier attempts.
    attempt: u32,
    touched: Vec<TouchedEntry>,
    /// The holders whose answers it waits for, each with the position to be cleared.
    waits: BTreeMap<HolderKey, RecallPosition>,
    /// True if it may be changing the touched objects.
    is_clear: bool,
}

/// An object that a job touched, and the last attempt that named it.
#[derive(Debug)]
struct TouchedEntry {
    object: Touched,
    /// The holder that is informed of the change by its reply, and keeps its lease.
    informed: Option<HolderKey>,
    attempt: u32,
}

impl Job {
    fn new(begun: Moment) -> Job {
        Job {
            begun,
            holder: None,
            ticket: None,
            attempt: 0,
            touched: Vec::new(),
            waits: BTreeMap::new(),
            is_clear: false,
        }
    }

    /// Returns true if the job has touched this object before. The recalls were sent then, and no other
    /// holder was granted it since.
    fn names_again(&mut self, object: &Touched) -> bool {
        let attempt = self.attempt;
        let same = self.touched.iter_mut().find(|entry| {
            let before = &entry.object;
            before.id == object.id && before.name == object.name && before.recall_own >= object.recall_own
        });
        let Some(entry) = same else { return false };
        entry.attempt = attempt;
        entry.object.exclusive |= object.exclusive;
        true
    }

    /// Returns true if it waits for the holder.
    pub(super) fn waits_for(&self, holder: HolderKey) -> bool {
        self.waits.contains_key(&holder)
    }

    /// Stops waiting for a holder that was removed.
    pub(super) fn stop_waiting_for(&mut self, holder: HolderKey) {
        self.waits.remove(&holder);
    }

    fn exclusive(&self) -> BTreeSet<FileId> {
        let exclusive = self.touched.iter().filter(|entry| entry.object.exclusive);
        exclusive.map(|entry| entry.object.id).collect()
    }

    /// Returns the objects touched by the latest attempt and the one before.
    pub(super) fn touched(&self) -> impl Iterator<Item = &Touched> {
        self.touched.iter().map(|entry| &entry.object)
    }

    /// Returns true if it may be changing the touched objects now.
    pub(super) fn is_clear(&self) -> bool {
        self.is_clear
    }
}

impl Grantor {
    /// Starts a job, or starts a parked job again. Reads after this call count for [`grant`](Self::grant).
    pub fn begin(&mut self, job: JobKey) {
        let moment = self.changes.moment();
        self.jobs.entry(job).or_insert_with(|| Job::new(moment)).begun = moment;
    }

    /// Announces the objects that a job is about to change, for `holder` or for a client without leases
    /// (`None`). Objects touched earlier stay touched until the job ends, or until an attempt that does not
    /// name them is parked.
    ///
    /// Exclusive objects of all touches are locked together. If a later touch cannot lock one, the job
    /// releases the earlier locks and queues for all of them: no job holds a lock while it waits.
    pub fn touch(
        &mut self,
        now: Time,
        job: JobKey,
        holder: Option<HolderKey>,
        touched: &[Touched],
    ) -> TouchOutcome {
        self.recovering_until = self.recovering_until.filter(|until| now < *until);
        let mut work = self.jobs.remove(&job).unwrap_or_else(|| Job::new(self.changes.moment()));
        if work.holder != holder {
            self.clear_holder(now, job, &mut work);
            work.holder = holder;
        }
        let ticket = *work.ticket.get_or_insert_with(|| {
            self.tickets += 1;
            Ticket(self.tickets)
        });
        for object in touched {
            if !work.names_again(object) {
                let informed = holder.filter(|_| !object.recall_own);
                self.recall_others(now, job, &mut work, object, informed);
                work.touched.push(TouchedEntry { object: object.clone(), informed, attempt: work.attempt });
            }
        }
        let has_locks = self.directory_locks.take(ticket, job, work.exclusive());
        self.prune_waits(&mut work);
        work.is_clear = has_locks && work.waits.is_empty() && self.recovering_until.is_none();
        let verdict = if work.is_clear { TouchOutcome::Clear } else { TouchOutcome::Parked };
        self.jobs.insert(job, work);
        match verdict {
            TouchOutcome::Clear => self.parked.remove(&ticket),
            TouchOutcome::Parked => self.parked.insert(ticket, job),
        };
        // The job may have released directories that other jobs wait for.
        self.retry();
        verdict
    }

    /// Recalls the object from all other holders, and makes the job wait for their answers.
    fn recall_others(
        &mut self,
        now: Time,
        job: JobKey,
        work: &mut Job,
        object: &Touched,
        informed: Option<HolderKey>,
    ) {
        self.touching.entry(object.id).or_default().push((job, informed));
        for (key, state) in self.holders.iter_mut().filter(|(key, _)| Some(**key) != informed) {
            let Some(position) = state.recall(now, object.id, object.name.as_ref()) else { continue };
            self.unsent.insert(*key);
            if Some(*key) != work.holder {
                let wait = work.waits.entry(*key).or_insert(position);
                *wait = position.max(*wait);
            }
        }
    }

    /// Detaches the running changes of a holder whose connection broke: their replies will not inform it.
    /// Changes that are not clear then wait for this holder too.
    pub(super) fn detach(&mut self, now: Time, holder: HolderKey) {
        let of_holder = self.jobs.iter().filter(|(_, work)| work.holder == Some(holder));
        for job in of_holder.map(|(job, _)| *job).collect::<Vec<_>>() {
            if let Some(mut work) = self.jobs.remove(&job) {
                self.clear_holder(now, job, &mut work);
                self.jobs.insert(job, work);
            }
        }
    }

    /// Makes the change anonymous and recalls its objects from its former holder as from all others.
    fn clear_holder(&mut self, now: Time, job: JobKey, work: &mut Job) {
        let Some(holder) = work.holder else { return };
        for TouchedEntry { object, informed, .. } in &mut work.touched {
            let entry = (job, informed.take());
            let touching = self.touching.get_mut(&object.id).into_iter().flatten();
            touching.filter(|touching| **touching == entry).for_each(|touching| touching.1 = None);
            if let Some(state) = self.holders.get_mut(&holder)
                && let Some(position) = state.recall(now, object.id, object.name.as_ref())
            {
                let wait = work.waits.entry(holder).or_insert(position);
                *wait = position.max(*wait);
                self.unsent.insert(holder);
            }
        }
        work.holder = None;
    }

    /// Records that a parked job has continued, because it had already changed something and could not be
    /// parked.
    pub fn proceeded(&mut self, job: JobKey) {
        if let Some(work) = self.jobs.get_mut(&job) {
            work.is_clear = true;
        }
    }

    /// Ends a job. Its changes, if it may have made any, count as finished from now on.
    pub fn end(&mut self, job: JobKey) {
        let Some(work) = self.jobs.remove(&job) else { return };
        let Some(ticket) = work.ticket else { return };
        self.parked.remove(&ticket);
        self.directory_locks.release(ticket, job);
        self.directory_locks.advance();
        for entry in &work.touched {
            self.release(job, entry);
        }
        if work.is_clear {
            self.changes.ended(work.touched.iter().map(|entry| (entry.object.id, entry.informed)));
        }
        self.settle_reports(job, &work);
        self.retry();
    }

    /// Removes one touch of the object.
    fn release(&mut self, job: JobKey, entry: &TouchedEntry) {
        let id = entry.object.id;
        let Some(touching) = self.touching.get_mut(&id) else { return };
        if let Some(at) = touching.iter().position(|touch| *touch == (job, entry.informed)) {
            touching.remove(at);
        }
        if touching.is_empty() {
            self.touching.remove(&id);
        }
    }

    fn prune_waits(&self, work: &mut Job) {
        let is_awaited = |key: &HolderKey, position: &mut RecallPosition| {
            self.holders.get(key).is_some_and(|state| state.leases().cleared() < *position)
        };
        work.waits.retain(is_awaited);
    }

    /// Retries the parked jobs that wait for nothing any more, oldest first.
    pub(super) fn retry(&mut self) {
        if self.recovering_until.is_some() {
            return;
        }
        let parked: Vec<(Ticket, JobKey)> = self.parked.iter().map(|(ticket, job)| (*ticket, *job)).collect();
        for (ticket, job) in parked {
            self.retry_one(ticket, job);
        }
    }

    fn retry_one(&mut self, ticket: Ticket, job: JobKey) {
        let Some(mut work) = self.jobs.remove(&job) else { return };
        self.prune_waits(&mut work);
        if work.waits.is_empty() && !self.directory_locks.is_waiting(ticket) {
            self.parked.remove(&ticket);
            // Objects that this attempt did not name are released. The others stay touched and are clear for
            // the next attempt.
            let (current, stale): (Vec<TouchedEntry>, Vec<TouchedEntry>) =
                work.touched.into_iter().partition(|entry| entry.attempt == work.attempt);
            work.touched = current;
            for entry in &stale {
                self.release(job, entry);
            }
            work.attempt += 1;
            self.directory_locks.take(ticket, job, work.exclusive());
            self.outputs.push_back(GrantorOutput::Retry(job));
        }
        self.jobs.insert(job, work);
    }
}
