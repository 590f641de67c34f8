//! Granting leases on the objects that a reply describes.

use super::holder_state::HolderState;
use super::{Grantor, HolderKey, JobKey};
use wirefs_op::{FileId, Time};

impl Grantor {
    /// Decides which of these objects a job's reply may describe under a lease. An object is granted unless a
    /// change of another holder on it waits, runs, or has ended since the job began. Each further reply of a
    /// job asks again.
    ///
    /// # Cost
    /// For each object, one lookup in the holder's lease set, and one each in the running and the recent
    /// changes, if there are any.
    pub fn grant(&mut self, now: Time, job: JobKey, holder: HolderKey, ids: &[FileId]) -> Vec<bool> {
        let refused = vec![false; ids.len()];
        let Some(begun) = self.jobs.get(&job).map(|job| job.begun) else { return refused };
        if self.changes.is_before_horizon(begun) {
            return refused;
        }
        let is_punished = self.holders.get(&holder).is_some_and(|state| self.is_punished(now, state));
        if is_punished {
            return refused;
        }
        let mut room = self.config.leases_max.saturating_sub(self.leased_objects());
        let Some(state) = self.holders.get_mut(&holder).filter(|state| state.is_grantable()) else {
            return refused;
        };
        let is_quiet = self.changes.is_quiet_since(begun);
        let mut is_full = false;
        let mut granted = refused;
        for (id, granted) in ids.iter().zip(&mut granted) {
            let touching = self.touching.get(id).map_or(&[][..], Vec::as_slice);
            let is_touched = touching.iter().any(|(_, by)| *by != Some(holder));
            if is_touched || !is_quiet && self.changes.is_changed(*id, begun, holder) {
                continue;
            }
            if room > 0 {
                room -= usize::from(state.grant(*id));
                *granted = true;
            } else {
                *granted = state.leases().contains(*id);
                is_full |= !*granted;
            }
        }
        if is_full {
            self.recall_largest(now);
        }
        granted
    }

    /// Recalls everything from the holder with the most leases. It is granted nothing new before it has
    /// answered.
    fn recall_largest(&mut self, now: Time) {
        let size = |state: &HolderState| state.leases().len();
        let largest = self.holders.iter_mut().max_by_key(|(_, state)| size(state));
        if let Some((key, state)) = largest {
            state.recall_all(now);
            self.unsent.insert(*key);
        }
    }
}
