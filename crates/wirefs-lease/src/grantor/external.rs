//! Changes by programs on the server, and how they are distinguished from the server's own changes.

use super::job::Job;
use super::{Grantor, GrantorOutput, JobKey};
use crate::limits::{ATTRIBUTION_SPAN, UNATTRIBUTED_MAX};
use crate::recall::LeaseItem;
use bytes::Bytes;
use std::collections::BTreeSet;
use wirefs_op::{FileId, Time};

/// A reported change that a running job may have made. The version that the job leaves is unknown before its
/// end.
#[derive(Debug)]
pub(super) struct UnattributedReport {
    /// The reported version.
    version: Option<u64>,
    /// The time of the first report.
    since: Time,
    /// The jobs that changed the object at that time and still run. Empty: the driver is checking the object
    /// again.
    jobs: BTreeSet<JobKey>,
}

impl UnattributedReport {
    fn deadline(&self) -> Option<Time> {
        (!self.jobs.is_empty()).then(|| self.since + ATTRIBUTION_SPAN)
    }
}

impl Grantor {
    /// Records that a job of the server is changing this object or name, or has changed it. Called before the
    /// job's [`end`](Self::end).
    ///
    /// `before`: the version before the change, if known. `after`: the version after it, `None` if the object
    /// is gone. For a name, both are versions of the directory.
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

    /// Handles a watcher's report that an object or a name in a directory changed. `version` is the object's
    /// current version, `None` if it is gone. Recalls the leases on it, without waiting for answers. Reports
    /// of the server's own changes are ignored as far as versions identify them.
    pub fn external_change(&mut self, now: Time, id: FileId, name: Option<&Bytes>, version: Option<u64>) {
        let item = LeaseItem { id, name: name.cloned() };
        let since = self.unattributed.remove(&item).map_or(now, |report| report.since);
        if self.own.explain(id, name, version) {
            return;
        }
        // A watch that filters out the server's own changes reports names without a version.
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

    /// Returns the jobs that may be changing this object now, possibly with repetitions.
    fn running(&self, id: FileId) -> impl Iterator<Item = JobKey> {
        let jobs = self.touching.get(&id).map_or(&[][..], Vec::as_slice).iter().map(|(key, _)| *key);
        jobs.filter(|key| self.jobs.get(key).is_some_and(Job::is_clear))
    }

    /// Returns true if reports wait for attribution, so that [`tick`](Self::tick) may be due earlier than
    /// before.
    pub fn has_unattributed_reports(&self) -> bool {
        !self.unattributed.is_empty()
    }

    /// Requests a check of the reports that waited for this job, once no other job delays them. A report that
    /// an own change explains is discarded.
    pub(super) fn settle_reports(&mut self, key: JobKey, ended: &Job) {
        if self.unattributed.is_empty() {
            return;
        }
        for id in ended.touched().map(|object| object.id).collect::<BTreeSet<_>>() {
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

    /// Requests a check of the reports that have waited for too long.
    pub(super) fn expire_reports(&mut self, now: Time) {
        for (item, report) in &mut self.unattributed {
            if report.deadline().is_some_and(|at| at <= now) {
                report.jobs.clear();
                self.outputs.push_back(GrantorOutput::Verify(item.clone()));
            }
        }
    }

    /// Returns the time when the next waiting report expires.
    pub(super) fn reports_expire_at(&self) -> Option<Time> {
        self.unattributed.values().filter_map(UnattributedReport::deadline).min()
    }
}
