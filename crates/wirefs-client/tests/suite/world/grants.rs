//! A job at the tree: what it may promise, and who must hear of it first.

use super::World;
use wirefs_op::{FileId, Reply, Stat, Time};
use wirefs_server::{Job, JobKey, Parked, Replies, ServerInput, Sessions, Stopped, Touched, Tree};

/// The replies to one job, and the leases that they give.
pub(super) struct Granting<'a> {
    sessions: &'a mut Sessions,
    now: Time,
    job: JobKey,
    replies: Vec<Reply>,
    is_parked: bool,
}

impl Replies for Granting<'_> {
    fn send(&mut self, reply: Reply) -> Result<(), Stopped> {
        self.replies.push(reply);
        Ok(())
    }
    fn is_stopped(&self) -> bool {
        false
    }
    fn wait(&mut self) {}
    fn touch(&mut self, touched: &[Touched]) -> Result<(), Parked> {
        let outcome = self.sessions.touch(self.now, self.job, touched);
        self.is_parked |= outcome.is_err();
        outcome
    }
    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        self.sessions.grant(self.now, self.job, stats);
    }
    fn grant_names(&mut self, dir: FileId) -> bool {
        self.sessions.grant_names(self.now, self.job, dir)
    }
}

impl World {
    /// The reply of the tree; `None` if others must be recalled first.
    pub(super) fn serve_job(&mut self, job: &Job) -> Option<Vec<Reply>> {
        let sessions = &mut self.sessions;
        let (now, key) = (self.now, job.key);
        let mut granting = Granting { sessions, now, job: key, replies: Vec::new(), is_parked: false };
        self.tree.serve(job.session, job.request.clone(), &mut granting);
        let Granting { replies, is_parked, .. } = granting;
        self.follow();
        if is_parked {
            assert!(replies.is_empty(), "{replies:?} to a request that was put aside");
            self.handle(ServerInput::Parked(key, job.request.clone()));
            return None;
        }
        Some(replies)
    }
}
