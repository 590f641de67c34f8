//! A job at the tree: what it may promise, and who must hear of it first.

use crate::flaw::Flaw;
use wirefs_op::{FileId, Reply, Stat, Time};
use wirefs_server::{Found, JobKey, Parked, Replies, Sessions, Stopped, Touched};

/// The replies to one job, and the leases that they give.
pub(super) struct Granting<'a> {
    pub(super) sessions: &'a mut Sessions,
    pub(super) flaw: Option<Flaw>,
    pub(super) now: Time,
    pub(super) job: JobKey,
    pub(super) replies: Vec<Reply>,
    pub(super) is_parked: bool,
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
        let touched = match self.flaw {
            Some(Flaw::TouchesNothing) => &[],
            Some(Flaw::TouchesTheFirst) => touched.get(..1).unwrap_or_default(),
            _ => touched,
        };
        let outcome = self.sessions.touch(self.now, self.job, touched);
        if self.flaw == Some(Flaw::ChangesTheParked) {
            return Ok(());
        }
        self.is_parked |= outcome.is_err();
        outcome
    }

    fn begins(&mut self, find: &mut dyn FnMut() -> Option<Found>) {
        if let Some(found) = find() {
            self.sessions.begins(self.job, &found);
        }
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        if self.flaw == Some(Flaw::GrantsEverything) {
            return stats.for_each(|stat| stat.leased = true);
        }
        self.sessions.grant(self.now, self.job, stats);
    }

    fn grant_place(&mut self, dir: FileId) -> bool {
        self.flaw == Some(Flaw::GrantsEverything) || self.sessions.grant_place(self.now, self.job, dir)
    }
}
