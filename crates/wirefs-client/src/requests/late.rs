//! Requests that get no reply although the connection is up.

use super::{Outstanding, Requests};
use crate::pending::Pending;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::message::lock::LockAction;
use wirefs_op::{Request, Time};

/// A sync may take this many times as long as another request: it waits for all data that the server's disk lacks.
pub(crate) const SYNC_FACTOR: u32 = 10;

impl Outstanding {
    /// Whether other clients decide when the reply comes.
    fn waits_for_lock(&self) -> bool {
        matches!(&self.request, Request::Lock(lock) if lock.action == LockAction::Wait)
    }

    /// Whether nothing of the reply has come for this long.
    fn is_late(&self, now: Time, silence_max: Duration) -> bool {
        let silence_max = match &self.request {
            Request::Commit(_) => silence_max * SYNC_FACTOR,
            _ => silence_max,
        };
        !self.waits_for_lock() && now.since(self.last_progress) >= silence_max
    }
}

impl Requests {
    /// Takes the continuations of the queries that are late. A reply that comes nevertheless is ignored.
    pub(crate) fn take_late(&mut self, now: Time, silence_max: Duration) -> Vec<Pending> {
        // Replies to requests that were sent before are progress: there are finitely many. Later ones are none.
        if let Some(from) = self.link.replied_from.take() {
            let behind = self.sent.values_mut().filter(|outstanding| outstanding.order >= from);
            behind.for_each(|outstanding| outstanding.last_progress = now);
        }
        let is_late = |outstanding: &&mut Outstanding| {
            let has_reader = !matches!(outstanding.pending, Pending::Ignore(_));
            has_reader && !outstanding.request.is_change() && outstanding.is_late(now, silence_max)
        };
        let late = self.sent.values_mut().filter(is_late);
        late.map(|outstanding| std::mem::replace(&mut outstanding.pending, Pending::IGNORE)).collect()
    }

    /// The requests without any reply for this long, by kind.
    pub(crate) fn late(&self, now: Time, silence_max: Duration) -> BTreeMap<&'static str, u64> {
        let mut kinds = BTreeMap::new();
        let late = |outstanding: &&Outstanding| {
            !outstanding.waits_for_lock() && now.since(outstanding.last_progress) >= silence_max
        };
        for outstanding in self.sent.values().filter(late) {
            *kinds.entry(outstanding.request.name()).or_default() += 1;
        }
        kinds
    }

    /// Time in which the machine slept is no waiting time.
    pub(crate) fn slept(&mut self, now: Time, passed: Duration) {
        for outstanding in self.sent.values_mut() {
            outstanding.last_progress = now.min(outstanding.last_progress + passed);
        }
    }
}
