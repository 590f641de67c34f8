//! The parties that missed a recall: they get no leases for a time that doubles with each further one.
//!
//! A party stands for all holders of one client, for instance of one key. So a client gains nothing by taking leases
//! in several sessions: changes wait once for all of them together.
//!
//! ```text
//!   trusted ── a change waited in vain ──► 30 s without leases ──► trusted, but the next time is 60 s, 120 s …
//!      ▲                                                             │ no miss for as long as 8 such times
//!      └─────────────────────────────────────────────────────────────┘
//! ```

use crate::limits::{OFFENDERS_MAX, PENALTY, PENALTY_MAX, PENALTY_MEMORY};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::Time;

/// A client with all its sessions. The driver chooses the bytes, for instance a public key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartyKey(pub Bytes);

#[derive(Clone, Copy, Debug)]
struct Penalty {
    until: Time,
    span: Duration,
}

impl Penalty {
    fn is_forgotten(&self, now: Time) -> bool {
        now >= self.until + self.span * PENALTY_MEMORY
    }
}

/// The parties that missed recalls.
#[derive(Debug, Default)]
pub(super) struct Offenders(BTreeMap<PartyKey, Penalty>);

impl Offenders {
    /// Records a missed recall.
    pub(super) fn punish(&mut self, now: Time, party: PartyKey) {
        self.0.retain(|_, penalty| !penalty.is_forgotten(now));
        let before = self.0.get(&party).copied();
        // Further sessions that miss the same recall do not count again.
        if before.is_some_and(|penalty| now < penalty.until) {
            return;
        }
        let span = before.map_or(PENALTY, |penalty| (penalty.span * 2).min(PENALTY_MAX));
        if self.0.len() >= OFFENDERS_MAX && before.is_none() {
            let first =
                self.0.iter().min_by_key(|(_, penalty)| penalty.until).map(|(party, _)| party.clone());
            first.and_then(|first| self.0.remove(&first));
        }
        self.0.insert(party, Penalty { until: now + span, span });
    }

    /// Returns true if the party gets no leases.
    pub(super) fn is_punished(&self, now: Time, party: &PartyKey) -> bool {
        self.0.get(party).is_some_and(|penalty| now < penalty.until)
    }
}

#[cfg(test)]
mod tests;
