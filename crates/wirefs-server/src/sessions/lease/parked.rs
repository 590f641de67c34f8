//! Parked jobs: they wait until other clients have answered recalls.

use crate::sessions::job::ParkState;
use crate::sessions::{JobKey, Sessions};
use wirefs_op::{Request, Time};

impl Sessions {
    /// Parks a job that the tree returned unchanged
    /// ([`ServerInput::Parked`](crate::sessions::ServerInput::Parked)).
    pub(in crate::sessions) fn parked(&mut self, now: Time, job: JobKey, request: Request) {
        let is_over = self.is_stopped();
        let Some(pending) = self.jobs.get_mut(&job) else {
            return;
        };
        pending.times.parked.get_or_insert(now);
        let park_state = std::mem::take(&mut pending.park_state);
        if is_over {
            return self.drop_job(now, job);
        }
        if pending.is_withdrawn {
            return self.finished(now, job);
        }
        match park_state {
            ParkState::Parking => pending.park_state = ParkState::Parked(Box::new(request)),
            // All answers arrived meanwhile, or none was needed.
            ParkState::Resumed | ParkState::Running | ParkState::Parked(_) => self.execute(job, request),
        }
    }

    /// Resumes a job: all recalls are answered or expired.
    pub(super) fn resume_job(&mut self, job: JobKey) {
        let Some(pending) = self.jobs.get_mut(&job) else {
            return;
        };
        match std::mem::take(&mut pending.park_state) {
            ParkState::Parked(request) => self.execute(job, *request),
            ParkState::Parking | ParkState::Resumed => pending.park_state = ParkState::Resumed,
            ParkState::Running => {}
        }
    }

    /// Drops all parked jobs: no client is left that could answer.
    pub(in crate::sessions) fn drop_parked(&mut self, now: Time) {
        let is_away = |park_state: &ParkState| matches!(park_state, ParkState::Parked(_));
        let away = self.jobs.iter().filter(|(_, pending)| is_away(&pending.park_state));
        for key in away.map(|(key, _)| *key).collect::<Vec<JobKey>>() {
            self.drop_job(now, key);
        }
    }

    /// Drops a job, and all queued jobs behind it. Executed without it, they would make the next process assume
    /// that it was done before them.
    fn drop_job(&mut self, now: Time, job: JobKey) {
        let session = self.jobs.get(&job).map(|pending| pending.session);
        let owner = session.and_then(|session| self.sessions.get_mut(&session));
        let behind = owner
            .filter(|owner| owner.write_slot.holder() == Some(job))
            .map(|owner| owner.write_slot.waiting());
        for key in behind.unwrap_or_default() {
            if self.sessions.values_mut().any(|owner| owner.write_slot.remove(key)) {
                self.finished(now, key);
            }
        }
        self.finished(now, job);
    }
}
