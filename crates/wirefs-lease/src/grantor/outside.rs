//! What programs on the server change themselves, and how our own changes are told apart from that.

use super::job::Job;
use super::{Grantor, JobKey, Output};
use crate::limits::DEFERRED_MAX;
use crate::recall::Item;
use bytes::Bytes;
use wirefs_op::{FileId, Time};

impl Grantor {
    /// A job of ours is changing this, or has: the version before, if it is known, and the one left behind; of a name the
    /// directory's versions. Called before the job's [`end`](Self::end), and in the order of the changes.
    pub fn own_change(
        &mut self,
        now: Time,
        id: FileId,
        name: Option<&Bytes>,
        before: Option<u64>,
        after: u64,
    ) {
        self.own.add(now, id, name, before, after);
    }

    /// A watcher reports that an object changed, or what a name in a directory means, and which version the object has
    /// now; without one when it is gone. Who knows it is told; nobody waits for that. Own changes are recognised and
    /// passed over, as far as versions tell.
    pub fn changed_outside(&mut self, now: Time, id: FileId, name: Option<&Bytes>, version: Option<u64>) {
        if version.is_some_and(|version| self.own.explain(id, name, version)) {
            return;
        }
        let jobs = self.touching.get(&id).map_or(&[][..], Vec::as_slice);
        let is_changing = |job: &JobKey| self.jobs.get(job).is_some_and(|job| job.is_changing(id, name));
        if jobs.iter().any(|(job, _)| is_changing(job)) && self.deferred.len() < DEFERRED_MAX {
            // It may be the job. All others have forgotten it by now and are granted nothing of it before the job's end.
            self.deferred.insert(Item { id, name: name.cloned() }, version);
            return;
        }
        self.changes.ended(std::iter::once((id, None)));
        for (key, standing) in &mut self.holders {
            standing.recall(now, id, name);
            self.unsent.insert(*key);
        }
    }

    /// What was reported while this job changed it is looked at again, unless another job changes it now.
    pub(super) fn verify_deferred(&mut self, over: &Job) {
        if self.deferred.is_empty() {
            return;
        }
        for what in over.touched() {
            let item = Item { id: what.id, name: what.name.clone() };
            let Some(version) = self.deferred.remove(&item) else { continue };
            // What the job has left behind is known by now.
            if !version.is_some_and(|version| self.own.explain(item.id, item.name.as_ref(), version)) {
                self.outputs.push_back(Output::Verify(item));
            }
        }
    }
}
