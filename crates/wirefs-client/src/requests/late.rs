//! Requests that get no reply although the connection is up.

use super::{Outstanding, Requests};
use crate::pending::Pending;
use std::collections::BTreeMap;
use std::time::Duration;
use wirefs_op::message::lock::LockAction;
use wirefs_op::{Request, Time};

/// A sync may take this many times as long as another request: it waits for all data that the server's disk lacks.
pub const SYNC_FACTOR: u32 = 10;

/// Whether other clients decide when the reply comes.
fn waits_for_lock(request: &Request) -> bool {
    matches!(request, Request::Lock(lock) if lock.action == LockAction::Wait)
}

/// Whether a program may wait for this query, and has waited for so long since the last progress.
fn is_late(request: &Request, pending: &Pending, passed: Duration, silence_max: Duration) -> bool {
    let silence_max = match request {
        Request::Commit(_) => silence_max * SYNC_FACTOR,
        _ => silence_max,
    };
    let is_awaited = !matches!(pending, Pending::Ignore(_)) && !request.is_change();
    is_awaited && !waits_for_lock(request) && passed >= silence_max
}

impl Requests {
    /// Takes the continuations of the queries that are late. A reply that comes nevertheless is ignored.
    pub(crate) fn take_late(&mut self, now: Time, silence_max: Duration) -> Vec<Pending> {
        // Replies to requests that were sent before are progress: there are finitely many. Later ones are none.
        if let Some(from) = self.link.replied_from.take() {
            let behind = self.sent.values_mut().filter(|outstanding| outstanding.order >= from);
            behind.for_each(|outstanding| outstanding.last_progress = now);
        }
        let is_sent_late = |outstanding: &&mut Outstanding| {
            let Outstanding { request, pending, last_progress, .. } = &**outstanding;
            is_late(request, pending, now.since(*last_progress), silence_max)
        };
        let sent = self.sent.values_mut().filter(is_sent_late);
        let mut late: Vec<Pending> =
            sent.map(|outstanding| std::mem::replace(&mut outstanding.pending, Pending::IGNORE)).collect();
        // All requests that were sent go before one that waits. The tag of a lock is free only once its end was sent.
        let replied = self.link.replied;
        late.append(&mut self.take_all_waiting(|waiting| {
            let passed = now.since(waiting.told_since.max(replied));
            let is_withdrawal = matches!(waiting.pending, Pending::Withdraw(_));
            !is_withdrawal && is_late(&waiting.request, &waiting.pending, passed, silence_max)
        }));
        late
    }

    /// The requests without any reply for this long, by kind.
    pub(crate) fn late(&self, now: Time, silence_max: Duration) -> BTreeMap<&'static str, u64> {
        let mut kinds = BTreeMap::new();
        let late = |outstanding: &&Outstanding| {
            !waits_for_lock(&outstanding.request) && now.since(outstanding.last_progress) >= silence_max
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
