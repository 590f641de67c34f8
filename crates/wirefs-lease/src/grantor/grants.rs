//! Granting: what a reply may tell under a lease.

use super::holder_state::HolderState;
use super::{Grantor, HolderKey, JobKey};
use wirefs_op::{FileId, Time};

impl Grantor {
    /// Which of these objects a job's reply to its holder may tell under a lease. Each is granted unless somebody else's
    /// change of it is waiting, under way, or has ended since the job began; a second reply of one job asks again.
    ///
    /// # Cost
    /// For each object a look-up in the set of what the holder knows, and one each in the changes under way and those that
    /// ended since, if there are any.
    pub fn grant(&mut self, now: Time, job: JobKey, holder: HolderKey, ids: &[FileId]) -> Vec<bool> {
        let refused = vec![false; ids.len()];
        let Some(begun) = self.jobs.get(&job).map(|job| job.begun) else { return refused };
        if self.changes.is_before_horizon(begun) {
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
                room -= usize::from(state.learn(*id));
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

    /// Takes everything from the holder that knows most. Until it has forgotten, nothing new is granted.
    fn recall_largest(&mut self, now: Time) {
        let size = |state: &HolderState| state.leases().len();
        let largest = self.holders.iter_mut().max_by_key(|(_, state)| size(state));
        if let Some((key, state)) = largest {
            state.recall_all(now);
            self.unsent.insert(*key);
        }
    }
}
