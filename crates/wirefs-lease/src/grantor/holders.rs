//! The life of holders: join, renewal, answers to recalls, disconnection, removal.

use super::holder_state::HolderState;
use super::{Grantor, GrantorOutput, HolderKey, PartyKey};
use crate::recall::Serial;
use wirefs_op::Time;

/// The result of [`Grantor::join`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinOutcome {
    /// Earlier leases are void.
    Fresh,
    /// Earlier leases are valid, except for the missed recalls, which are sent now.
    Retained,
    /// The table of holders is full: this one gets no leases.
    Full,
}

impl Grantor {
    /// Registers a holder that has attached, for the first time or again. Missed recalls are sent before any
    /// reply on this connection. The party of a holder stays the first one.
    pub fn join(&mut self, now: Time, holder: HolderKey, party: PartyKey) -> JoinOutcome {
        self.detach(now, holder);
        if let Some(state) = self.holders.get_mut(&holder) {
            let retained = state.join(now);
            self.unsent.insert(holder);
            return if retained { JoinOutcome::Retained } else { JoinOutcome::Fresh };
        }
        if self.holders.len() >= self.config.holders_max && !self.make_room() {
            return JoinOutcome::Full;
        }
        self.holders.insert(holder, HolderState::new(holder, party, now));
        JoinOutcome::Fresh
    }

    /// Recalls everything from a holder that has joined, because a previous run of the server may have
    /// granted it leases. It is granted nothing before it has answered; then [`is_settled`](Self::is_settled)
    /// returns true.
    pub fn recall_unrecorded(&mut self, now: Time, holder: HolderKey) {
        if let Some(state) = self.holders.get_mut(&holder) {
            state.recall_unrecorded(now);
            self.unsent.insert(holder);
        }
    }

    /// Returns true if a holder has answered all recalls.
    pub fn is_settled(&self, holder: HolderKey) -> bool {
        self.holders.get(&holder).is_some_and(HolderState::is_settled)
    }

    /// Returns true if a holder may have a valid lease.
    pub fn may_hold_leases(&self, holder: HolderKey) -> bool {
        self.holders.get(&holder).is_some_and(|state| !state.is_idle())
    }

    /// Ends the wait of changes for the leases of the server's previous run, since no client uses them any
    /// more.
    pub fn recovered(&mut self) {
        self.recovering_until = None;
        self.retry();
    }

    /// Removes the holder that was silent for the longest time. Returns false if none is both fenced and
    /// disconnected.
    fn make_room(&mut self) -> bool {
        let is_removable = |state: &HolderState| state.is_fenced() && !state.is_connected();
        let candidates = self.holders.iter().filter(|(_, state)| is_removable(state));
        let Some(key) = candidates.min_by_key(|(_, state)| state.renewed_at()).map(|(key, _)| *key) else {
            return false;
        };
        self.outputs.push_back(GrantorOutput::HolderRemoved(key));
        self.remove(key);
        true
    }

    /// Records a request or ping of a holder on its current connection, which renews its leases. The request
    /// by which it joined does not count: the holder gets [`JoinOutcome::Fresh`] until it has sent another
    /// one.
    pub fn renew(&mut self, now: Time, holder: HolderKey) {
        let Some(state) = self.holders.get_mut(&holder) else { return };
        state.confirm();
        if state.renew(now) {
            self.unsent.insert(holder);
        }
    }

    /// Records a holder's answer to a recall: the recalled items are invalidated. The answer renews the
    /// leases but does not count as a request.
    pub fn recall_answered(&mut self, now: Time, holder: HolderKey, serial: Serial) {
        let Some(state) = self.holders.get_mut(&holder) else { return };
        if state.renew(now) {
            self.unsent.insert(holder);
        }
        state.answered(serial);
        self.retry();
    }

    /// Records that a holder's connection was closed. Its leases are valid until they expire.
    pub fn disconnected(&mut self, now: Time, holder: HolderKey) {
        if let Some(state) = self.holders.get_mut(&holder) {
            state.disconnected();
            self.detach(now, holder);
            self.retry();
        }
    }

    /// Records that a holder uses no lease before the reply to its next request.
    pub fn release_all(&mut self, holder: HolderKey) {
        if let Some(state) = self.holders.get_mut(&holder) {
            state.release_all();
            self.retry();
        }
    }

    /// Removes a holder that has ended its session, with all its leases.
    pub fn remove(&mut self, holder: HolderKey) {
        self.holders.remove(&holder);
        // A new holder with the same key starts counting from the beginning.
        for work in self.jobs.values_mut() {
            work.stop_waiting_for(holder);
        }
        self.retry();
    }

    /// Recalls everything from all holders, before the server stops or after a watcher lost events.
    pub fn recall_everything(&mut self, now: Time) {
        self.changes.ended_everywhere();
        for (key, state) in &mut self.holders {
            state.recall_all(now);
            self.unsent.insert(*key);
        }
    }
}
