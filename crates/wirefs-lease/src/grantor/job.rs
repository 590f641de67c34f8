//! Jobs: what each touches, and what it waits for.

use super::changes::Moment;
use super::directory_locks::Ticket;
use super::held_leases::RecallPosition;
use super::{Grantor, GrantorOutput, HolderKey, JobKey, TouchOutcome, Touched};
use std::collections::{BTreeMap, BTreeSet};
use wirefs_op::{FileId, Time};

/// One request under way.
#[derive(Debug)]
pub(super) struct Job {
    /// When its present attempt began.
    pub(super) begun: Moment,
    /// On whose behalf it changes something.
    holder: Option<HolderKey>,
    /// Its place among all changes; none before it touches something.
    ticket: Option<Ticket>,
    /// How often it was carried out before.
    attempt: u32,
    touched: Vec<TouchedEntry>,
    /// Which holders it waits for, and for what.
    waits: BTreeMap<HolderKey, RecallPosition>,
    /// Whether it may be changing what it touched.
    is_clear: bool,
}

/// Something that a job touched, and the last attempt that named it.
#[derive(Debug)]
struct TouchedEntry {
    what: Touched,
    /// Whom this change does not concern, since it knows of it already.
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

    /// Whether the job has touched this before. Then all who knew it were told, and nobody else was granted it since.
    fn names_again(&mut self, what: &Touched) -> bool {
        let attempt = self.attempt;
        let same = self.touched.iter_mut().find(|entry| {
            let before = &entry.what;
            before.id == what.id && before.name == what.name && before.recall_own >= what.recall_own
        });
        let Some(entry) = same else { return false };
        entry.attempt = attempt;
        entry.what.exclusive |= what.exclusive;
        true
    }

    /// The holder is gone for good.
    pub(super) fn stop_waiting_for(&mut self, holder: HolderKey) {
        self.waits.remove(&holder);
    }

    fn exclusive(&self) -> BTreeSet<FileId> {
        let exclusive = self.touched.iter().filter(|entry| entry.what.exclusive);
        exclusive.map(|entry| entry.what.id).collect()
    }

    /// What it touched, the latest attempt and the one before.
    pub(super) fn touched(&self) -> impl Iterator<Item = &Touched> {
        self.touched.iter().map(|entry| &entry.what)
    }

    /// Whether it may be changing what it touched now.
    pub(super) fn is_clear(&self) -> bool {
        self.is_clear
    }
}

impl Grantor {
    /// A job begins, or begins anew after it was parked. What it reads from now on counts.
    pub fn begin(&mut self, job: JobKey) {
        let moment = self.changes.moment();
        self.jobs.entry(job).or_insert_with(|| Job::new(moment)).begun = moment;
    }

    /// A job is about to change something on behalf of `holder`, or of somebody who takes no leases. What it touched before
    /// stays touched, until its end or until an attempt that does not name it is itself parked.
    ///
    /// The exclusive ones of all touches so far are taken together. If some of a later touch are not free, those of the
    /// earlier ones are given up and waited for again, so that nobody waits while it has something.
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
        for what in touched {
            if !work.names_again(what) {
                let informed = holder.filter(|_| !what.recall_own);
                self.recall_others(now, job, &mut work, what, informed);
                work.touched.push(TouchedEntry { what: what.clone(), informed, attempt: work.attempt });
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
        // It may have given up directories that others wait for.
        self.retry();
        verdict
    }

    /// All others who know something forget it, and the job waits for those who may believe it still.
    fn recall_others(
        &mut self,
        now: Time,
        job: JobKey,
        work: &mut Job,
        what: &Touched,
        informed: Option<HolderKey>,
    ) {
        self.touching.entry(what.id).or_default().push((job, informed));
        for (key, state) in self.holders.iter_mut().filter(|(key, _)| Some(**key) != informed) {
            let Some(position) = state.recall(now, what.id, what.name.as_ref()) else { continue };
            self.unsent.insert(*key);
            if Some(*key) != work.holder {
                let wait = work.waits.entry(*key).or_insert(position);
                *wait = position.max(*wait);
            }
        }
    }

    /// A holder's connection broke: it will not see what its changes under way lead to. So they are anybody's from now on,
    /// and those that are not clear wait for it too.
    pub(super) fn detach(&mut self, now: Time, holder: HolderKey) {
        let of_holder = self.jobs.iter().filter(|(_, work)| work.holder == Some(holder));
        for job in of_holder.map(|(job, _)| *job).collect::<Vec<_>>() {
            if let Some(mut work) = self.jobs.remove(&job) {
                self.clear_holder(now, job, &mut work);
                self.jobs.insert(job, work);
            }
        }
    }

    /// The change is no longer on behalf of its holder, who is told like all others.
    fn clear_holder(&mut self, now: Time, job: JobKey, work: &mut Job) {
        let Some(holder) = work.holder else { return };
        for TouchedEntry { what, informed, .. } in &mut work.touched {
            let entry = (job, informed.take());
            let touching = self.touching.get_mut(&what.id).into_iter().flatten();
            touching.filter(|touching| **touching == entry).for_each(|touching| touching.1 = None);
            if let Some(state) = self.holders.get_mut(&holder)
                && let Some(position) = state.recall(now, what.id, what.name.as_ref())
            {
                let wait = work.waits.entry(holder).or_insert(position);
                *wait = position.max(*wait);
                self.unsent.insert(holder);
            }
        }
        work.holder = None;
    }

    /// A parked job was not put away, since it had changed something before, and has gone on.
    pub fn proceeded(&mut self, job: JobKey) {
        if let Some(work) = self.jobs.get_mut(&job) {
            work.is_clear = true;
        }
    }

    /// A job is over. A change, if it may have changed anything, counts from now on as one that ended.
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
            self.changes.ended(work.touched.iter().map(|entry| (entry.what.id, entry.informed)));
        }
        self.settle_reports(job, &work);
        self.retry();
    }

    /// One touch of the object less.
    fn release(&mut self, job: JobKey, entry: &TouchedEntry) {
        let id = entry.what.id;
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

    /// Lets those parked jobs run that wait for nothing any more, the oldest first.
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
            // What this attempt did not name any more is let go of. The rest stays for the next one, which finds it clear.
            let (kept, gone): (Vec<TouchedEntry>, Vec<TouchedEntry>) =
                work.touched.into_iter().partition(|entry| entry.attempt == work.attempt);
            work.touched = kept;
            for entry in &gone {
                self.release(job, entry);
            }
            work.attempt += 1;
            self.directory_locks.take(ticket, job, work.exclusive());
            self.outputs.push_back(GrantorOutput::Retry(job));
        }
        self.jobs.insert(job, work);
    }
}
