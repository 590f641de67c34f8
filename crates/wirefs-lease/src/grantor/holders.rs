//! Holders come, are heard, answer, break off and go.

use super::holder_state::HolderState;
use super::{Grantor, GrantorOutput, HolderKey};
use crate::recall::Serial;
use wirefs_op::Time;

/// What became of a holder that joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinOutcome {
    /// Nothing that it was granted before counts.
    Fresh,
    /// What it was granted before counts still, but for what it is told to forget now.
    Retained,
    /// There are too many holders: it is granted nothing.
    Full,
}

impl Grantor {
    /// A holder has attached, for the first time or again over another connection. What it missed meanwhile is recalled
    /// ahead of the answer to anything that it asks over this connection.
    pub fn join(&mut self, now: Time, holder: HolderKey) -> JoinOutcome {
        self.detach(now, holder);
        if let Some(state) = self.holders.get_mut(&holder) {
            let retained = state.join(now);
            self.unsent.insert(holder);
            return if retained { JoinOutcome::Retained } else { JoinOutcome::Fresh };
        }
        if self.holders.len() >= self.config.holders_max && !self.make_room() {
            return JoinOutcome::Full;
        }
        self.holders.insert(holder, HolderState::new(holder, now));
        JoinOutcome::Fresh
    }

    /// A holder that has joined may believe what a server before this one granted it: it is told to forget everything, and is granted
    /// nothing before it has. Then it [`believes nothing`](Self::is_settled).
    pub fn recall_unrecorded(&mut self, now: Time, holder: HolderKey) {
        if let Some(state) = self.holders.get_mut(&holder) {
            state.recall_unrecorded(now);
            self.unsent.insert(holder);
        }
    }

    /// Whether a holder has forgotten all that it was told to.
    pub fn is_settled(&self, holder: HolderKey) -> bool {
        self.holders.get(&holder).is_some_and(HolderState::is_settled)
    }

    /// Whether a holder may believe something.
    pub fn may_hold_leases(&self, holder: HolderKey) -> bool {
        self.holders.get(&holder).is_some_and(|state| !state.is_idle())
    }

    /// Nobody believes any more what the server before this one granted: changes wait for that no longer.
    pub fn recovered(&mut self) {
        self.recovering_until = None;
        self.retry();
    }

    /// Forgets the holder that has been silent the longest, if one has.
    fn make_room(&mut self) -> bool {
        let is_gone = |state: &HolderState| state.is_fenced() && !state.is_connected();
        let gone = self.holders.iter().filter(|(_, state)| is_gone(state));
        let Some(key) = gone.min_by_key(|(_, state)| state.renewed_at()).map(|(key, _)| *key) else {
            return false;
        };
        self.outputs.push_back(GrantorOutput::HolderRemoved(key));
        self.remove(key);
        true
    }

    /// A request of a holder came over the connection that it joined with, or a ping. The one that it joined by is not
    /// among them: a holder that is told to start [`JoinOutcome::Fresh`] is told so each time until it has sent another.
    pub fn renew(&mut self, now: Time, holder: HolderKey) {
        let Some(state) = self.holders.get_mut(&holder) else { return };
        state.confirm();
        if state.renew(now) {
            self.unsent.insert(holder);
        }
    }

    /// A holder says that it has forgotten what this recall named. That counts as hearing it, but not as a request.
    pub fn recall_answered(&mut self, now: Time, holder: HolderKey, serial: Serial) {
        let Some(state) = self.holders.get_mut(&holder) else { return };
        if state.renew(now) {
            self.unsent.insert(holder);
        }
        state.answered(serial);
        self.retry();
    }

    /// The connection that a holder joined with is gone. It may believe what it was granted until its leases have run out.
    pub fn disconnected(&mut self, now: Time, holder: HolderKey) {
        if let Some(state) = self.holders.get_mut(&holder) {
            state.disconnected();
            self.detach(now, holder);
            self.retry();
        }
    }

    /// A holder has said that it believes nothing until a request that it sends after this is answered.
    pub fn release_all(&mut self, holder: HolderKey) {
        if let Some(state) = self.holders.get_mut(&holder) {
            state.release_all();
            self.retry();
        }
    }

    /// A holder has said that it is gone for good, so that nobody believes anything any more.
    pub fn remove(&mut self, holder: HolderKey) {
        self.holders.remove(&holder);
        // One that joins by the same key starts to count anew.
        for work in self.jobs.values_mut() {
            work.stop_waiting_for(holder);
        }
        self.retry();
    }

    /// Recalls everything from everybody: before the server stops, or when a watcher has lost count.
    pub fn recall_everything(&mut self, now: Time) {
        self.changes.ended_everywhere();
        for (key, state) in &mut self.holders {
            state.recall_all(now);
            self.unsent.insert(*key);
        }
    }
}
