//! One holder as the server sees it, and whether changes wait for it.
//!
//! ```text
//!            silent for term + margin                  heard again, or joins again
//!    Live ────────────────────────────► Fenced ──────────────────────────────────► Live
//!      │                               all is cleared                 what it missed is sent first
//!      │ heard, but does not answer
//!      └────────────────────────────► Expelled ── joins again: everything is recalled ──► Live
//!                                        │ term + margin: all is cleared
//!                                        ▼
//!                                    forgotten
//! ```
//! INVARIANT: what a holder may believe, or may believe again, is known (`HeldLeases`), recalled and not cleared, or in
//! `missed`, which is sent to it before anything else once its leases may count again.

use super::delivery::Delivery;
use super::held_leases::{HeldLeases, RecallPosition};
use super::missed::Missed;
use super::name_recalls::NameRecalls;
use super::{GrantorOutput, HolderKey, LeaseConfig};
use crate::limits::{OUTSTANDING_MAX, SILENCE};
use crate::recall::{LeaseItem, Serial};
use bytes::Bytes;
use std::collections::VecDeque;
use wirefs_op::{FileId, Time};

/// Whether changes wait for the holder, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HolderPhase {
    /// Changes wait for its answers.
    Live,
    /// It was silent for so long that its leases have run out. What it misses is noted.
    Fenced,
    /// It did not answer. Changes wait until its leases have run out, then it is forgotten.
    Expelled,
}

/// What became of a holder while time passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TickOutcome {
    /// It is still there.
    Stays,
    /// Its connection has to be closed.
    Expelled,
    /// Nothing is known of it any more.
    Removed,
}

/// One holder.
#[derive(Debug)]
pub(super) struct HolderState {
    key: HolderKey,
    phase: HolderPhase,
    connected: bool,
    /// It has sent a request since it was told that nothing counts, so it knows.
    confirmed: bool,
    renewed_at: Time,
    leases: HeldLeases,
    delivery: Delivery,
    missed: Missed,
    /// Since when somebody waits for what was missed.
    missed_since: Option<Time>,
    named: NameRecalls,
    /// When the leases of one that was expelled have run out, and what is cleared then. Several when it came back and was
    /// expelled again: who waits since the first time waits no longer for that.
    expiries: VecDeque<(Time, RecallPosition)>,
}

impl HolderState {
    pub(super) fn new(key: HolderKey, now: Time) -> HolderState {
        HolderState {
            key,
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

    /// Whether it may be granted anything: not while it could not be told of a recall, nor while it forgets everything.
    pub(super) fn is_grantable(&self) -> bool {
        self.phase == HolderPhase::Live && self.connected && !self.leases.is_recalling_all()
    }

    /// Whether its leases have run out since it was silent.
    pub(super) fn is_fenced(&self) -> bool {
        self.phase == HolderPhase::Fenced
    }

    /// Whether a connection to it is known.
    pub(super) fn is_connected(&self) -> bool {
        self.connected
    }

    /// When it was last heard.
    pub(super) fn renewed_at(&self) -> Time {
        self.renewed_at
    }

    /// What it may believe.
    pub(super) fn leases(&self) -> &HeldLeases {
        &self.leases
    }

    /// It is told of this object under a lease. True when it did not know it.
    pub(super) fn learn(&mut self, id: FileId) -> bool {
        self.leases.learn(id)
    }

    /// Whether it has forgotten all that it was told to forget.
    pub(super) fn is_settled(&self) -> bool {
        self.leases.cleared() == self.leases.position() && self.delivery.is_empty()
    }

    /// Whether it believes nothing, or its leases have run out.
    pub(super) fn is_idle(&self) -> bool {
        self.is_fenced() || (self.is_settled() && self.leases.is_empty())
    }

    /// A number that no recall has.
    pub(super) fn next_serial(&mut self) -> Serial {
        self.delivery.next_serial()
    }

    /// Somebody changes the object, or what one name in it means: the holder is told to forget that, if it knows it.
    /// Says which mark must be cleared before the change is made.
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

    /// The holder is told to forget everything.
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
            // It is told when it comes back.
            (HolderPhase::Expelled, _) => {}
        }
    }

    /// The holder is told to forget everything, whatever is known of it: it may believe what another server granted it.
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

    /// Hands out what was recalled since the last time.
    pub(super) fn flush(&mut self, outputs: &mut VecDeque<GrantorOutput>) {
        self.delivery.flush(self.key, outputs);
    }

    /// The holder has forgotten what the recall of this number named. A number that is not outstanding says nothing: it
    /// was sent over a connection that broke, and is sent again.
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

    /// A message of it came. Says whether something has to be sent to it now.
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

    /// A request of it came. It sends none before it has seen the reply to its joining.
    pub(super) fn confirm(&mut self) {
        self.confirmed |= self.connected;
    }

    /// Its connection is gone: what it did not answer has to be told to it again.
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

    /// It has connected again. Says whether what it was granted counts still.
    pub(super) fn join(&mut self, now: Time) -> bool {
        self.disconnected();
        self.confirmed &= self.phase != HolderPhase::Expelled;
        self.phase = HolderPhase::Live;
        self.connected = true;
        self.renewed_at = now;
        self.send_missed(now);
        self.confirmed
    }

    /// What was missed is sent ahead of anything else. It is cleared as a whole, since it is in no order.
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

    /// Lets its time pass.
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
                // It has to learn that nothing of it is left before a request of it is answered.
                self.expel(now, config);
                TickOutcome::Expelled
            }
            HolderPhase::Live if now >= self.fence_at(config) => {
                self.phase = HolderPhase::Fenced;
                self.clear_all();
                TickOutcome::Stays
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

    /// It believes nothing until it has asked anew: what it misses is noted, as of one that was silent for too long.
    pub(super) fn release_all(&mut self) {
        if self.phase == HolderPhase::Live {
            self.phase = HolderPhase::Fenced;
            self.clear_all();
        }
    }

    /// When it must have answered. Not when it will be silent by then: it is fenced instead, unless it is heard before.
    fn expel_at(&self, config: &LeaseConfig) -> Option<Time> {
        self.delivery.due(config).filter(|due| *due <= self.renewed_at + SILENCE)
    }

    /// Its connection is to be closed, but it may not have noticed: what it knows counts until the leases have run out.
    fn expel(&mut self, now: Time, config: &LeaseConfig) {
        self.leases.recall_all();
        self.phase = HolderPhase::Expelled;
        self.connected = false;
        self.delivery.take_unanswered();
        self.missed = Missed::Everything;
        self.missed_since = None;
        self.expiries.push_back((now + config.term + config.margin, self.leases.position()));
    }

    /// When time has to pass next.
    pub(super) fn deadline(&self, config: &LeaseConfig) -> Time {
        let forget = self.renewed_at + config.remove_after;
        let next = match self.phase {
            HolderPhase::Live => {
                let fence = self.fence_at(config);
                self.expel_at(config).map_or(fence, |due| due.min(fence))
            }
            HolderPhase::Fenced | HolderPhase::Expelled => forget,
        };
        self.expiries.front().map_or(next, |(at, _)| next.min(*at))
    }
}
