//! A job at the tree: the leases that it may grant, and the clients that must invalidate first.

use crate::flaw::Flaw;
use crate::server::plain::serve;
use wirefs_model::ModelTree;
use wirefs_op::message::get::{GetMode, Tget};
use wirefs_op::message::lock::{LockAction, Tlock};
use wirefs_op::{FileId, LockKind, Reply, Request, Stat, Time};
use wirefs_server::{JobKey, Parked, PriorState, Replies, SessionKey, Sessions, Stopped, Touched, Tree};

/// The replies to one job, and their leases.
pub(super) struct Granting<'a> {
    pub(super) sessions: &'a mut Sessions,
    pub(super) flaw: Option<Flaw>,
    pub(super) now: Time,
    pub(super) job: JobKey,
    pub(super) replies: Vec<Reply>,
    pub(super) is_parked: bool,
}

impl Granting<'_> {
    /// Returns the attributes with a granted lock; they are leased only if the watch has reported all earlier changes.
    pub(super) fn stat_of_locked(
        &mut self,
        tree: &ModelTree,
        session: SessionKey,
        lock: &Tlock,
        is_quiet: bool,
    ) -> Option<Stat> {
        if lock.range.kind == LockKind::Unlock || lock.action == LockAction::Test {
            return None;
        }
        let get = Tget { target: lock.target.clone(), mode: GetMode::STAT, nmsgs: 1, offset: 0, count: 0 };
        let replies = if is_quiet {
            tree.serve(session, Request::Get(get), self);
            std::mem::take(&mut self.replies)
        } else {
            serve(tree, session, Request::Get(get))
        };
        replies.into_iter().find_map(|reply| match reply {
            Reply::Get(got) => got.stat,
            _ => None,
        })
    }
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

    fn record_prior_state(&mut self, find: &mut dyn FnMut() -> Option<PriorState>) {
        if let Some(found) = find() {
            self.sessions.record_prior_state(self.job, &found);
        }
    }

    fn grant(&mut self, stats: &mut dyn Iterator<Item = &mut Stat>) {
        if self.flaw == Some(Flaw::GrantsEverything) {
            return stats.for_each(|stat| stat.leased = true);
        }
        self.sessions.grant(self.now, self.job, stats);
    }

    fn grant_names(&mut self, dir: FileId) -> bool {
        self.flaw == Some(Flaw::GrantsEverything) || self.sessions.grant_names(self.now, self.job, dir)
    }
}
