//! Jobs: what each touches, and what it waits for.

use super::changes::Moment;
use super::knowledge::Mark;
use super::turns::Ticket;
use super::{Grantor, HolderKey, JobKey, Output, Touch, Touched};
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
    touched: Vec<Naming>,
    /// Which holders it waits for, and for what.
    waits: BTreeMap<HolderKey, Mark>,
    /// Whether it may be changing what it touched.
    is_clear: bool,
}

/// Something that a job touched, and the last attempt that named it.
#[derive(Debug)]
struct Naming {
    what: Touched,
    /// Whom this change does not concern, since it knows of it already.
    excepted: Option<HolderKey>,
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
        let same = self.touched.iter_mut().find(|naming| {
            let before = &naming.what;
            before.id == what.id && before.name == what.name && before.surprise >= what.surprise
        });
        let Some(naming) = same else { return false };
        naming.attempt = attempt;
        naming.what.exclusive |= what.exclusive;
        true
    }

    /// The holder is gone for good.
    pub(super) fn waits_not_for(&mut self, holder: HolderKey) {
        self.waits.remove(&holder);
    }

    fn exclusive(&self) -> BTreeSet<FileId> {
        let exclusive = self.touched.iter().filter(|naming| naming.what.exclusive);
        exclusive.map(|naming| naming.what.id).collect()
    }

    /// What it touched, the latest attempt and the one before.
    pub(super) fn touched(&self) -> impl Iterator<Item = &Touched> {
        self.touched.iter().map(|naming| &naming.what)
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
    pub fn touch(&mut self, now: Time, job: JobKey, holder: Option<HolderKey>, touched: &[Touched]) -> Touch {
        self.recovering_until = self.recovering_until.filter(|until| now < *until);
        let mut work = self.jobs.remove(&job).unwrap_or_else(|| Job::new(self.changes.moment()));
        if work.holder != holder {
            self.disown(now, job, &mut work);
            work.holder = holder;
        }
        let ticket = *work.ticket.get_or_insert_with(|| {
            self.tickets += 1;
            Ticket(self.tickets)
        });
        for what in touched {
            if !work.names_again(what) {
                let excepted = holder.filter(|_| !what.surprise);
                self.tell(now, job, &mut work, what, excepted);
                work.touched.push(Naming { what: what.clone(), excepted, attempt: work.attempt });
            }
        }
        let has_turns = self.turns.take(ticket, job, work.exclusive());
        self.drop_done_waits(&mut work);
        work.is_clear = has_turns && work.waits.is_empty() && self.recovering_until.is_none();
        let verdict = if work.is_clear { Touch::Clear } else { Touch::Parked };
        self.jobs.insert(job, work);
        match verdict {
            Touch::Clear => self.parked.remove(&ticket),
            Touch::Parked => self.parked.insert(ticket, job),
        };
        // It may have given up directories that others wait for.
        self.retry();
        verdict
    }

    /// All others who know something forget it, and the job waits for those who may believe it still.
    fn tell(&mut self, now: Time, job: JobKey, work: &mut Job, what: &Touched, excepted: Option<HolderKey>) {
        self.touching.entry(what.id).or_default().push((job, excepted));
        for (key, standing) in self.holders.iter_mut().filter(|(key, _)| Some(**key) != excepted) {
            let Some(mark) = standing.recall(now, what.id, what.name.as_ref()) else { continue };
            self.unsent.insert(*key);
            if Some(*key) != work.holder {
                let wait = work.waits.entry(*key).or_insert(mark);
                *wait = mark.max(*wait);
            }
        }
    }

    /// A holder's connection broke: it will not see what its changes under way lead to. So they are anybody's from now on,
    /// and those that are not clear wait for it too.
    pub(super) fn orphan(&mut self, now: Time, holder: HolderKey) {
        let of_holder = self.jobs.iter().filter(|(_, work)| work.holder == Some(holder));
        for job in of_holder.map(|(job, _)| *job).collect::<Vec<_>>() {
            if let Some(mut work) = self.jobs.remove(&job) {
                self.disown(now, job, &mut work);
                self.jobs.insert(job, work);
            }
        }
    }

    /// The change is no longer on behalf of its holder, who is told like all others.
    fn disown(&mut self, now: Time, job: JobKey, work: &mut Job) {
        let Some(holder) = work.holder else { return };
        for Naming { what, excepted, .. } in &mut work.touched {
            let entry = (job, excepted.take());
            let touching = self.touching.get_mut(&what.id).into_iter().flatten();
            touching.filter(|touching| **touching == entry).for_each(|touching| touching.1 = None);
            if let Some(standing) = self.holders.get_mut(&holder)
                && let Some(mark) = standing.recall(now, what.id, what.name.as_ref())
            {
                let wait = work.waits.entry(holder).or_insert(mark);
                *wait = mark.max(*wait);
                self.unsent.insert(holder);
            }
        }
        work.holder = None;
    }

    /// A parked job was not put away, since it had changed something before, and has gone on.
    pub fn went_on(&mut self, job: JobKey) {
        if let Some(work) = self.jobs.get_mut(&job) {
            work.is_clear = true;
        }
    }

    /// A job is over. A change, if it may have changed anything, counts from now on as one that ended.
    pub fn end(&mut self, job: JobKey) {
        let Some(work) = self.jobs.remove(&job) else { return };
        let Some(ticket) = work.ticket else { return };
        self.parked.remove(&ticket);
        self.turns.release(ticket, job);
        self.turns.advance();
        for naming in &work.touched {
            self.release(job, naming);
        }
        if work.is_clear {
            self.changes.ended(work.touched.iter().map(|naming| (naming.what.id, naming.excepted)));
        }
        self.verify_doubted(job, &work);
        self.retry();
    }

    /// One touch of the object less.
    fn release(&mut self, job: JobKey, naming: &Naming) {
        let id = naming.what.id;
        let Some(touching) = self.touching.get_mut(&id) else { return };
        if let Some(at) = touching.iter().position(|entry| *entry == (job, naming.excepted)) {
            touching.remove(at);
        }
        if touching.is_empty() {
            self.touching.remove(&id);
        }
    }

    fn drop_done_waits(&self, work: &mut Job) {
        let is_awaited = |key: &HolderKey, mark: &mut Mark| {
            self.holders.get(key).is_some_and(|standing| standing.knowledge().cleared() < *mark)
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
        self.drop_done_waits(&mut work);
        if work.waits.is_empty() && !self.turns.is_waiting(ticket) {
            self.parked.remove(&ticket);
            // What this attempt did not name any more is let go of. The rest stays for the next one, which finds it clear.
            let (kept, gone): (Vec<Naming>, Vec<Naming>) =
                work.touched.into_iter().partition(|naming| naming.attempt == work.attempt);
            work.touched = kept;
            for naming in &gone {
                self.release(job, naming);
            }
            work.attempt += 1;
            self.turns.take(ticket, job, work.exclusive());
            self.outputs.push_back(Output::Retry(job));
        }
        self.jobs.insert(job, work);
    }
}
