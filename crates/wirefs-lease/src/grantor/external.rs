//! What programs on the server change themselves, and how our own changes are told apart from that.

use super::job::Job;
use super::{Grantor, GrantorOutput, JobKey};
use crate::limits::{ATTRIBUTION_SPAN, UNATTRIBUTED_MAX};
use crate::recall::LeaseItem;
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::{FileId, Time};

/// A report of what a job of ours may be doing: which version that leaves behind is not known before the job's end.
#[derive(Debug)]
pub(super) struct UnattributedReport {
    /// As it was reported.
    version: Option<u64>,
    /// When it was reported first.
    since: Time,
    /// Those that changed something of the object then and do so still. Empty: it is being looked at again.
    jobs: BTreeSet<JobKey>,
}

impl UnattributedReport {
    fn deadline(&self) -> Option<Time> {
        (!self.jobs.is_empty()).then(|| self.since + ATTRIBUTION_SPAN)
    }
}

impl Grantor {
    /// A job of ours is changing this, or has: the version before, if it is known, and the one left behind, none if the object is
    /// gone; of a name the directory's versions. Called before the job's [`end`](Self::end).
    pub fn own_change(
        &mut self,
        now: Time,
        id: FileId,
        name: Option<&Bytes>,
        before: Option<u64>,
        after: Option<u64>,
    ) {
        self.own.add(now, id, name, before, after);
    }

    /// A watcher reports that an object changed, or what a name in a directory means, and which version the object has
    /// now; without one when it is gone. Who knows it is told; nobody waits for that. Own changes are recognised and
    /// passed over, as far as versions tell.
    pub fn external_change(&mut self, now: Time, id: FileId, name: Option<&Bytes>, version: Option<u64>) {
        let item = LeaseItem { id, name: name.cloned() };
        let since = self.unattributed.remove(&item).map_or(now, |report| report.since);
        if self.own.explain(id, name, version) {
            return;
        }
        // A watch that leaves out own changes reports names without a version.
        let may_be_own = name.is_none() || version.is_some();
        if may_be_own && now.since(since) < ATTRIBUTION_SPAN && self.unattributed.len() < UNATTRIBUTED_MAX {
            let jobs: BTreeSet<JobKey> = self.running(id).collect();
            if !jobs.is_empty() {
                self.unattributed.insert(item, UnattributedReport { version, since, jobs });
                return;
            }
        }
        self.changes.ended(std::iter::once((id, None)));
        for (key, state) in &mut self.holders {
            state.recall(now, id, name);
            self.unsent.insert(*key);
        }
    }

    /// The jobs that may be changing something of this object now, some more than once.
    fn running(&self, id: FileId) -> impl Iterator<Item = JobKey> {
        let jobs = self.touching.get(&id).map_or(&[][..], Vec::as_slice).iter().map(|(key, _)| *key);
        jobs.filter(|key| self.jobs.get(key).is_some_and(Job::is_clear))
    }

    /// Whether [`tick`](Self::tick) may have to be called earlier than was known.
    pub fn has_unattributed_reports(&self) -> bool {
        !self.unattributed.is_empty()
    }

    /// What was reported while this job changed the object is looked at again once none of the others is left that did, unless
    /// it is known by now to be what one of them left behind.
    pub(super) fn settle_reports(&mut self, key: JobKey, over: &Job) {
        if self.unattributed.is_empty() {
            return;
        }
        for id in over.touched().map(|what| what.id).collect::<BTreeSet<_>>() {
            let of_object =
                self.unattributed.range_mut(LeaseItem::whole(id)..).take_while(|(item, _)| item.id == id);
            let mut explained = Vec::new();
            for (item, report) in of_object {
                if report.jobs.remove(&key) && report.jobs.is_empty() {
                    match self.own.explain(id, item.name.as_ref(), report.version) {
                        true => explained.push(item.clone()),
                        false => self.outputs.push_back(GrantorOutput::Verify(item.clone())),
                    }
                }
            }
            for item in explained {
                self.unattributed.remove(&item);
            }
        }
    }

    /// What others may believe is not left in doubt for long.
    pub(super) fn expire_reports(&mut self, now: Time) {
        for (item, report) in &mut self.unattributed {
            if report.deadline().is_some_and(|at| at <= now) {
                report.jobs.clear();
                self.outputs.push_back(GrantorOutput::Verify(item.clone()));
            }
        }
    }

    /// When to call [`tick`](Self::tick) for what is in doubt.
    pub(super) fn reports_expire_at(&self) -> Option<Time> {
        self.unattributed.values().filter_map(UnattributedReport::deadline).min()
    }
}
