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
//! INVARIANT: what a holder may believe, or may believe again, is known (`Knowledge`), recalled and not cleared, or in
//! `missed`, which is sent to it before anything else once its leases may count again.

use super::delivery::Delivery;
use super::knowledge::{Knowledge, Mark};
use super::missed::Missed;
use super::named::Named;
use super::{Config, HolderKey, Output};
use crate::limits::{OUTSTANDING_MAX, SILENCE};
use crate::recall::{Item, Serial};
use bytes::Bytes;
use std::collections::VecDeque;
use wirefs_op::{FileId, Time};

/// Whether changes wait for the holder, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// Changes wait for its answers.
    Live,
    /// It was silent for so long that its leases have run out. What it misses is noted.
    Fenced,
    /// It did not answer. Changes wait until its leases have run out, then it is forgotten.
    Expelled,
}

/// What became of a holder while time passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// It is still there.
    Stays,
    /// Its connection has to be closed.
    Expelled,
    /// Nothing is known of it any more.
    Forgotten,
}

/// One holder.
#[derive(Debug)]
pub(super) struct Standing {
    key: HolderKey,
    trust: Trust,
    connected: bool,
    /// It has sent a request since it was told that nothing counts, so it knows.
    confirmed: bool,
    heard: Time,
    knowledge: Knowledge,
    delivery: Delivery,
    missed: Missed,
    /// Since when somebody waits for what was missed.
    missed_since: Option<Time>,
    named: Named,
    /// When the leases of one that was expelled have run out, and what is cleared then. Several when it came back and was
    /// expelled again: who waits since the first time waits no longer for that.
    lapses: VecDeque<(Time, Mark)>,
}

impl Standing {
    pub(super) fn new(key: HolderKey, now: Time) -> Standing {
        Standing {
            key,
            trust: Trust::Live,
            connected: true,
            confirmed: false,
            heard: now,
            knowledge: Knowledge::default(),
            delivery: Delivery::default(),
            missed: Missed::default(),
            missed_since: None,
            named: Named::default(),
            lapses: VecDeque::new(),
        }
    }

    /// Whether it may be granted anything: not while it could not be told of a recall, nor while it forgets everything.
    pub(super) fn is_grantable(&self) -> bool {
        self.trust == Trust::Live && self.connected && !self.knowledge.is_leaving()
    }

    /// Whether its leases have run out since it was silent.
    pub(super) fn is_fenced(&self) -> bool {
        self.trust == Trust::Fenced
    }

    /// Whether a connection to it is known.
    pub(super) fn is_connected(&self) -> bool {
        self.connected
    }

    /// When it was last heard.
    pub(super) fn heard_at(&self) -> Time {
        self.heard
    }

    /// What it may believe.
    pub(super) fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// It is told of this object under a lease. True when it did not know it.
    pub(super) fn learn(&mut self, id: FileId) -> bool {
        self.knowledge.learn(id)
    }

    /// Whether it has forgotten all that it was told to forget.
    pub(super) fn is_settled(&self) -> bool {
        self.knowledge.cleared() == self.knowledge.mark() && self.delivery.is_empty()
    }

    /// Whether it believes nothing, or its leases have run out.
    pub(super) fn is_idle(&self) -> bool {
        self.is_fenced() || (self.is_settled() && self.knowledge.is_empty())
    }

    /// A number that no recall has.
    pub(super) fn next_serial(&mut self) -> Serial {
        self.delivery.next_serial()
    }

    /// Somebody changes the object, or what one name in it means: the holder is told to forget that, if it knows it.
    /// Says which mark must be cleared before the change is made.
    pub(super) fn recall(&mut self, now: Time, id: FileId, name: Option<&Bytes>) -> Option<Mark> {
        if !self.knowledge.knows(id) {
            return self.knowledge.pending(id);
        }
        let name = name.filter(|_| self.named.count(now, id)).cloned();
        self.knowledge.recall(id, name.is_none());
        let item = Item { id, name };
        match (self.trust, self.connected) {
            (Trust::Live, true) if self.delivery.items() >= OUTSTANDING_MAX => self.recall_all(now),
            (Trust::Live, true) => self.delivery.push(now, now, item, self.knowledge.mark()),
            (Trust::Live, false) | (Trust::Fenced | Trust::Expelled, _) => self.miss(now, item),
        }
        Some(self.knowledge.mark()).filter(|mark| *mark > self.knowledge.cleared())
    }

    /// The holder is told to forget everything.
    pub(super) fn recall_all(&mut self, now: Time) {
        match (self.trust, self.connected) {
            (Trust::Live, true) => {
                let is_told = self.knowledge.is_leaving();
                let has_nothing = self.knowledge.is_empty() && self.delivery.items() < OUTSTANDING_MAX;
                if !is_told && !has_nothing {
                    self.knowledge.leave();
                    self.delivery.push_everything(now, now, self.knowledge.mark());
                }
            }
            (Trust::Live, false) | (Trust::Fenced, _) => {
                self.missed = Missed::Everything;
                self.miss_everything(now);
            }
            // It is told when it comes back.
            (Trust::Expelled, _) => {}
        }
    }

    /// The holder is told to forget everything, whatever is known of it: it may believe what another server granted it.
    pub(super) fn doubt(&mut self, now: Time) {
        self.knowledge.leave();
        self.delivery.push_everything(now, now, self.knowledge.mark());
    }

    fn miss(&mut self, now: Time, item: Item) {
        if self.missed.add(item) {
            self.missed_at(now);
        } else {
            self.miss_everything(now);
        }
    }

    fn miss_everything(&mut self, now: Time) {
        self.knowledge.leave();
        self.missed_at(now);
    }

    fn missed_at(&mut self, now: Time) {
        match self.trust {
            Trust::Live => self.missed_since = Some(self.missed_since.map_or(now, |since| since.min(now))),
            Trust::Fenced => self.clear_all(),
            Trust::Expelled => {}
        }
    }

    /// Hands out what was recalled since the last time.
    pub(super) fn flush(&mut self, outputs: &mut VecDeque<Output>) {
        self.delivery.flush(self.key, outputs);
    }

    /// The holder has forgotten what the recall of this number named. A number that is not outstanding says nothing: it
    /// was sent over a connection that broke, and is sent again.
    pub(super) fn answered(&mut self, serial: Serial) {
        for batch in self.delivery.answered(serial) {
            self.knowledge.clear(batch.mark);
            let ids = batch.items.iter().map(|item| item.id);
            self.knowledge.trim(ids, self.delivery.items());
        }
    }

    fn clear_all(&mut self) {
        self.knowledge.clear_all();
        self.lapses.clear();
        self.missed_since = None;
    }

    /// A message of it came. Says whether something has to be sent to it now.
    pub(super) fn heard(&mut self, now: Time) -> bool {
        let was_silent = now.since(self.heard) > SILENCE;
        self.heard = self.heard.max(now);
        match (self.trust, self.connected) {
            (Trust::Live, _) if was_silent => self.delivery.excuse_silence(now),
            (Trust::Fenced, true) => {
                self.trust = Trust::Live;
                self.delivery.start_anew(now);
                self.send_missed(now);
                return true;
            }
            (Trust::Live, _) | (Trust::Fenced, false) | (Trust::Expelled, _) => {}
        }
        false
    }

    /// A request of it came. It sends none before it has seen the reply to its joining.
    pub(super) fn confirm(&mut self) {
        self.confirmed |= self.connected;
    }

    /// Its connection is gone: what it did not answer has to be told to it again.
    pub(super) fn cut(&mut self) {
        self.connected = false;
        for batch in self.delivery.take_back() {
            if batch.items.is_empty() {
                self.missed = Missed::Everything;
            }
            for item in batch.items {
                self.missed.add(item);
            }
            self.missed_at(batch.first);
        }
        if matches!(self.missed, Missed::Everything) && !self.knowledge.is_empty() {
            let since = self.missed_since.unwrap_or(self.heard);
            self.miss_everything(since);
        }
    }

    /// It has connected again. Says whether what it was granted counts still.
    pub(super) fn join(&mut self, now: Time) -> bool {
        self.cut();
        self.confirmed &= self.trust != Trust::Expelled;
        self.trust = Trust::Live;
        self.connected = true;
        self.heard = now;
        self.send_missed(now);
        self.confirmed
    }

    /// What was missed is sent ahead of anything else. It is cleared as a whole, since it is in no order.
    fn send_missed(&mut self, now: Time) {
        let first = self.missed_since.take().unwrap_or(now);
        match std::mem::take(&mut self.missed) {
            Missed::Everything => self.delivery.push_everything(now, first, self.knowledge.mark()),
            Missed::Items(items) => {
                for item in items {
                    self.delivery.push(now, first, item, self.knowledge.cleared());
                }
                self.delivery.mark_last(self.knowledge.mark());
            }
        }
    }

    /// Lets its time pass.
    pub(super) fn pass(&mut self, now: Time, config: &Config) -> Passed {
        while let Some((_, mark)) = self.lapses.front().copied().filter(|(at, _)| *at <= now) {
            self.lapses.pop_front();
            self.knowledge.clear(mark);
        }
        match self.trust {
            Trust::Expelled if self.lapses.is_empty() => Passed::Forgotten,
            Trust::Live | Trust::Fenced if now >= self.heard + config.forget_after => {
                if !self.connected {
                    return Passed::Forgotten;
                }
                // It has to learn that nothing of it is left before a request of it is answered.
                self.expel(now, config);
                Passed::Expelled
            }
            Trust::Live if now >= self.fence_at(config) => {
                self.trust = Trust::Fenced;
                self.clear_all();
                Passed::Stays
            }
            Trust::Live if self.expel_at(config).is_some_and(|due| due <= now) => {
                self.expel(now, config);
                Passed::Expelled
            }
            Trust::Live | Trust::Fenced | Trust::Expelled => Passed::Stays,
        }
    }

    fn fence_at(&self, config: &Config) -> Time {
        self.heard + config.term + config.margin
    }

    /// It believes nothing until it has asked anew: what it misses is noted, as of one that was silent for too long.
    pub(super) fn rest(&mut self) {
        if self.trust == Trust::Live {
            self.trust = Trust::Fenced;
            self.clear_all();
        }
    }

    /// When it must have answered. Not when it will be silent by then: it is fenced instead, unless it is heard before.
    fn expel_at(&self, config: &Config) -> Option<Time> {
        self.delivery.due(config).filter(|due| *due <= self.heard + SILENCE)
    }

    /// Its connection is to be closed, but it may not have noticed: what it knows counts until the leases have run out.
    fn expel(&mut self, now: Time, config: &Config) {
        self.knowledge.leave();
        self.trust = Trust::Expelled;
        self.connected = false;
        self.delivery.take_back();
        self.missed = Missed::Everything;
        self.missed_since = None;
        self.lapses.push_back((now + config.term + config.margin, self.knowledge.mark()));
    }

    /// When time has to pass next.
    pub(super) fn deadline(&self, config: &Config) -> Time {
        let forget = self.heard + config.forget_after;
        let next = match self.trust {
            Trust::Live => {
                let fence = self.fence_at(config);
                self.expel_at(config).map_or(fence, |due| due.min(fence))
            }
            Trust::Fenced | Trust::Expelled => forget,
        };
        self.lapses.front().map_or(next, |(at, _)| next.min(*at))
    }
}
