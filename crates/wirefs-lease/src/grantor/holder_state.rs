//! The server's state of one holder, and whether changes wait for it.
//!
//! ```text
//!            silent for term + margin                  next message or join
//!    Live ────────────────────────────► Fenced ──────────────────────────────────► Live
//!      │                               all is cleared               missed recalls are sent first
//!      │ not silent, does not answer
//!      └────────────────────────────► Expelled ── joins again: everything is recalled ──► Live
//!                                        │ term + margin: all is cleared
//!                                        ▼
//!                                     removed
//! ```
//! INVARIANT: each lease that a holder uses or may use again is in `HeldLeases`, recalled and not cleared, or
//! in `missed`. The missed recalls are sent before anything else once the holder's leases can become valid
//! again.

use super::delivery::Delivery;
use super::held_leases::{HeldLeases, RecallPosition};
use super::missed::Missed;
use super::name_recalls::NameRecalls;
use super::{GrantorOutput, HolderKey, LeaseConfig, PartyKey};
use crate::limits::{OUTSTANDING_MAX, SILENCE};
use crate::recall::{LeaseItem, Serial};
use bytes::Bytes;
use std::collections::VecDeque;
use wirefs_op::{FileId, Time};

/// Whether changes wait for the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HolderPhase {
    /// Changes wait for its answers.
    Live,
    /// The holder was silent until its leases expired. Recalls are noted as missed.
    Fenced,
    /// The holder did not answer a recall. Changes wait until its leases expire, then it is removed.
    Expelled,
}

/// The result of [`HolderState::tick`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TickOutcome {
    /// The holder remains.
    Stays,
    /// The holder's leases have expired.
    Fenced,
    /// The holder did not answer a recall. The caller must close its connection.
    Expelled,
    /// The holder was silent for long. The caller must close its connection.
    Outdated,
    /// The caller must discard its state.
    Removed,
}

/// The state of one holder.
#[derive(Debug)]
pub(super) struct HolderState {
    key: HolderKey,
    party: PartyKey,
    phase: HolderPhase,
    connected: bool,
    /// The holder has sent a request after the reply that voided its leases.
    confirmed: bool,
    renewed_at: Time,
    leases: HeldLeases,
    delivery: Delivery,
    missed: Missed,
    /// The time since when a change waits for a missed recall.
    missed_since: Option<Time>,
    named: NameRecalls,
    /// The times when the leases of an expelled holder expire, and the positions that this clears. Several if
    /// the holder came back and was expelled again: a change that waits since the first time waits only for
    /// the first.
    expiries: VecDeque<(Time, RecallPosition)>,
}

impl HolderState {
    pub(super) fn new(key: HolderKey, party: PartyKey, now: Time) -> HolderState {
        HolderState {
            key,
            party,
            phase: HolderPhase::Live,
            connected: true,
            confirmed: false,
            renewed_at: now,
            leases: HeldLeases::default(),
            delivery: Delivery::default(),
            missed: Missed::default(),
            missed_since: None,
            named: NameRecalls::default(),
            expiries: VecDeque::new(),
        }
    }

    /// Returns the party that it belongs to.
    pub(super) fn party(&self) -> &PartyKey {
        &self.party
    }

    /// Returns true if leases may be granted: the holder is connected, and no recall of everything is
    /// pending.
    pub(super) fn is_grantable(&self) -> bool {
        self.phase == HolderPhase::Live && self.connected && !self.leases.is_recalling_all()
    }

    /// Returns true if its leases expired while it was silent.
    pub(super) fn is_fenced(&self) -> bool {
        self.phase == HolderPhase::Fenced
    }

    /// Returns true if the holder has a connection.
    pub(super) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Returns the time of its last message.
    pub(super) fn renewed_at(&self) -> Time {
        self.renewed_at
    }

    /// Returns its leases.
    pub(super) fn leases(&self) -> &HeldLeases {
        &self.leases
    }

    /// Grants a lease on the object. Returns true if the holder did not have it.
    pub(super) fn grant(&mut self, id: FileId) -> bool {
        self.leases.grant(id)
    }

    /// Returns true if all recalls are answered.
    pub(super) fn is_settled(&self) -> bool {
        self.leases.cleared() == self.leases.position() && self.delivery.is_empty()
    }

    /// Returns true if the holder has no valid lease.
    pub(super) fn is_idle(&self) -> bool {
        self.is_fenced() || (self.is_settled() && self.leases.is_empty())
    }

    /// Returns a serial that no recall has.
    pub(super) fn next_serial(&mut self) -> Serial {
        self.delivery.next_serial()
    }

    /// Recalls the object or one name in it, if the holder has a lease on it. Returns the position that must
    /// be cleared before the change may run.
    pub(super) fn recall(&mut self, now: Time, id: FileId, name: Option<&Bytes>) -> Option<RecallPosition> {
        if !self.leases.contains(id) {
            return self.leases.pending(id);
        }
        let name = name.filter(|_| self.named.count(now, id)).cloned();
        self.leases.recall(id, name.is_none());
        let item = LeaseItem { id, name };
        match (self.phase, self.connected) {
            (HolderPhase::Live, true) if self.delivery.items() >= OUTSTANDING_MAX => self.recall_all(now),
            (HolderPhase::Live, true) => self.delivery.push(now, now, item, self.leases.position()),
            (HolderPhase::Live, false) | (HolderPhase::Fenced | HolderPhase::Expelled, _) => {
                self.miss(now, item)
            }
        }
        Some(self.leases.position()).filter(|position| *position > self.leases.cleared())
    }

    /// Recalls everything from the holder.
    pub(super) fn recall_all(&mut self, now: Time) {
        match (self.phase, self.connected) {
            (HolderPhase::Live, true) => {
                let is_told = self.leases.is_recalling_all();
                let has_nothing = self.leases.is_empty() && self.delivery.items() < OUTSTANDING_MAX;
                if !is_told && !has_nothing {
                    self.leases.recall_all();
                    self.delivery.push_everything(now, now, self.leases.position());
                }
            }
            (HolderPhase::Live, false) | (HolderPhase::Fenced, _) => {
                self.missed = Missed::Everything;
                self.miss_everything(now);
            }
            // The missed recall is sent when the holder joins again.
            (HolderPhase::Expelled, _) => {}
        }
    }

    /// Recalls everything from the holder, whether or not leases are recorded: a different server may have
    /// granted some.
    pub(super) fn recall_unrecorded(&mut self, now: Time) {
        self.leases.recall_all();
        self.delivery.push_everything(now, now, self.leases.position());
    }

    fn miss(&mut self, now: Time, item: LeaseItem) {
        if self.missed.add(item) {
            self.note_missed(now);
        } else {
            self.miss_everything(now);
        }
    }

    fn miss_everything(&mut self, now: Time) {
        self.leases.recall_all();
        self.note_missed(now);
    }

    fn note_missed(&mut self, now: Time) {
        match self.phase {
            HolderPhase::Live => {
                self.missed_since = Some(self.missed_since.map_or(now, |since| since.min(now)))
            }
            HolderPhase::Fenced => self.clear_all(),
            HolderPhase::Expelled => {}
        }
    }

    /// Moves the unsent recalls to `outputs`.
    pub(super) fn flush(&mut self, outputs: &mut VecDeque<GrantorOutput>) {
        self.delivery.flush(self.key, outputs);
    }

    /// Records that the holder has answered the recall `serial`. Ignores a serial that is not outstanding: it
    /// belongs to a broken connection, and its recall is sent again.
    pub(super) fn answered(&mut self, serial: Serial) {
        for batch in self.delivery.answered(serial) {
            self.leases.clear(batch.position);
            let ids = batch.items.iter().map(|item| item.id);
            self.leases.trim(ids, self.delivery.items());
        }
    }

    fn clear_all(&mut self) {
        self.leases.clear_all();
        self.expiries.clear();
        self.missed_since = None;
    }

    /// Records a message from the holder. Returns true if recalls for it are queued now.
    pub(super) fn renew(&mut self, now: Time) -> bool {
        let was_silent = now.since(self.renewed_at) > SILENCE;
        self.renewed_at = self.renewed_at.max(now);
        match (self.phase, self.connected) {
            (HolderPhase::Live, _) if was_silent => self.delivery.restart_timers(now),
            (HolderPhase::Fenced, true) => {
                self.phase = HolderPhase::Live;
                self.delivery.reset_timers(now);
                self.send_missed(now);
                return true;
            }
            (HolderPhase::Live, _) | (HolderPhase::Fenced, false) | (HolderPhase::Expelled, _) => {}
        }
        false
    }

    /// Records a request from the holder. A holder sends none before it has the reply to its join.
    pub(super) fn confirm(&mut self) {
        self.confirmed |= self.connected;
    }

    /// Records that the connection was closed: unanswered recalls become missed ones.
    pub(super) fn disconnected(&mut self) {
        self.connected = false;
        for batch in self.delivery.take_unanswered() {
            if batch.items.is_empty() {
                self.missed = Missed::Everything;
            }
            for item in batch.items {
                self.missed.add(item);
            }
            self.note_missed(batch.first);
        }
        if matches!(self.missed, Missed::Everything) && !self.leases.is_empty() {
            let since = self.missed_since.unwrap_or(self.renewed_at);
            self.miss_everything(since);
        }
    }

    /// Records a new connection. Returns true if earlier leases are still valid.
    pub(super) fn join(&mut self, now: Time) -> bool {
        self.disconnected();
        self.confirmed &= self.phase != HolderPhase::Expelled;
        self.phase = HolderPhase::Live;
        self.connected = true;
        self.renewed_at = now;
        self.send_missed(now);
        self.confirmed
    }

    /// Sends the missed recalls before anything else. They are cleared together, since their order is
    /// unknown.
    fn send_missed(&mut self, now: Time) {
        let first = self.missed_since.take().unwrap_or(now);
        match std::mem::take(&mut self.missed) {
            Missed::Everything => self.delivery.push_everything(now, first, self.leases.position()),
            Missed::Items(items) => {
                for item in items {
                    self.delivery.push(now, first, item, self.leases.cleared());
                }
                self.delivery.set_last_position(self.leases.position());
            }
        }
    }

    /// Advances the clock of this holder.
    pub(super) fn tick(&mut self, now: Time, config: &LeaseConfig) -> TickOutcome {
        while let Some((_, position)) = self.expiries.front().copied().filter(|(at, _)| *at <= now) {
            self.expiries.pop_front();
            self.leases.clear(position);
        }
        match self.phase {
            HolderPhase::Expelled if self.expiries.is_empty() => TickOutcome::Removed,
            HolderPhase::Live | HolderPhase::Fenced if now >= self.renewed_at + config.remove_after => {
                if !self.connected {
                    return TickOutcome::Removed;
                }
                // The holder must learn that its leases are void before any of its requests is answered.
                self.expel(now, config);
                TickOutcome::Outdated
            }
            HolderPhase::Live if now >= self.fence_at(config) => {
                self.phase = HolderPhase::Fenced;
                self.clear_all();
                TickOutcome::Fenced
            }
            HolderPhase::Live if self.expel_at(config).is_some_and(|due| due <= now) => {
                self.expel(now, config);
                TickOutcome::Expelled
            }
            HolderPhase::Live | HolderPhase::Fenced | HolderPhase::Expelled => TickOutcome::Stays,
        }
    }

    fn fence_at(&self, config: &LeaseConfig) -> Time {
        self.renewed_at + config.term + config.margin
    }

    /// Records that the holder uses no lease before its next request. It is treated like a silent holder:
    /// recalls are noted as missed.
    pub(super) fn release_all(&mut self) {
        if self.phase == HolderPhase::Live {
            self.phase = HolderPhase::Fenced;
            self.clear_all();
        }
    }

    /// Returns the time by which the holder must have answered. `None` if it will count as silent by then,
    /// since it is fenced instead.
    fn expel_at(&self, config: &LeaseConfig) -> Option<Time> {
        self.delivery.due(config).filter(|due| *due <= self.renewed_at + SILENCE)
    }

    /// Marks the holder as expelled. Its leases count until they expire, since it may not notice the closed
    /// connection.
    fn expel(&mut self, now: Time, config: &LeaseConfig) {
        self.leases.recall_all();
        self.phase = HolderPhase::Expelled;
        self.connected = false;
        self.delivery.take_unanswered();
        self.missed = Missed::Everything;
        self.missed_since = None;
        self.expiries.push_back((now + config.term + config.margin, self.leases.position()));
    }

    /// Returns the time when [`tick`](Self::tick) is due.
    pub(super) fn deadline(&self, config: &LeaseConfig) -> Time {
        let removal = self.renewed_at + config.remove_after;
        let next = match self.phase {
            HolderPhase::Live => {
                let fence = self.fence_at(config);
                self.expel_at(config).map_or(fence, |due| due.min(fence))
            }
            HolderPhase::Fenced | HolderPhase::Expelled => removal,
        };
        self.expiries.front().map_or(next, |(at, _)| next.min(*at))
    }
}
