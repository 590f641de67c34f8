//! Jobs that are put aside until others have forgotten what they change.

use crate::sessions::job::Pause;
use crate::sessions::{JobKey, Sessions};
use wirefs_op::{Request, Time};

impl Sessions {
    /// The tree has given a job back unchanged ([`Input::Parked`](crate::sessions::Input::Parked)).
    pub(in crate::sessions) fn parked(&mut self, now: Time, job: JobKey, request: Request) {
        let is_over = self.is_stopped();
        let Some(pending) = self.jobs.get_mut(&job) else {
            return;
        };
        let pause = std::mem::take(&mut pending.pause);
        if is_over {
            return self.drop_job(now, job);
        }
        if pending.is_withdrawn {
            return self.finished(now, job);
        }
        match pause {
            Pause::Coming => pending.pause = Pause::Away(Box::new(request)),
            // All have answered meanwhile, or nobody had to.
            Pause::Over | Pause::None | Pause::Away(_) => self.execute(job, request),
        }
    }

    /// Nobody has to be waited for any more.
    pub(super) fn resume_job(&mut self, job: JobKey) {
        let Some(pending) = self.jobs.get_mut(&job) else {
            return;
        };
        match std::mem::take(&mut pending.pause) {
            Pause::Away(request) => self.execute(job, *request),
            Pause::Coming | Pause::Over => pending.pause = Pause::Over,
            Pause::None => {}
        }
    }

    /// Gives up all jobs that are put aside: nobody is there any more who could answer.
    pub(in crate::sessions) fn drop_parked(&mut self, now: Time) {
        let is_away = |pause: &Pause| matches!(pause, Pause::Away(_));
        let away = self.jobs.iter().filter(|(_, pending)| is_away(&pending.pause));
        for key in away.map(|(key, _)| *key).collect::<Vec<JobKey>>() {
            self.drop_job(now, key);
        }
    }

    /// Gives up a job that will not be done, and those behind it: they would be done without it, and the next process would believe
    /// that it was done before them.
    fn drop_job(&mut self, now: Time, job: JobKey) {
        let session = self.jobs.get(&job).map(|pending| pending.session);
        let owner = session.and_then(|session| self.sessions.get_mut(&session));
        let behind = owner.filter(|owner| owner.lane.holder() == Some(job)).map(|owner| owner.lane.waiting());
        for key in behind.unwrap_or_default() {
            if self.sessions.values_mut().any(|owner| owner.lane.remove(key)) {
                self.finished(now, key);
            }
        }
        self.finished(now, job);
    }
}
