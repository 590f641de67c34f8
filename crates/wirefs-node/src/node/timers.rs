//! Timers: announcements, table sync, probes, suspicion timeouts.

use super::Node;
use crate::gossip::UpdateKind;
use crate::key::NodeKey;
use crate::limits::{ANNOUNCE_INTERVAL, ANNOUNCE_INTERVAL_NEW, REFUTE_INTERVAL_MIN, SYNC_INTERVAL};
use crate::member::Liveness;
use crate::output::Destination;
use crate::packet::Message;
use std::time::Duration;
use wirefs_op::Time;

/// Suspects pinged in one probe interval, at most.
const SUSPECTS_MAX: usize = 8;

/// The next time of each periodic task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    announce: Option<Time>,
    sync: Option<Time>,
    probe: Option<Time>,
    /// The next broadcast of this node's record, to refute a suspicion.
    broadcast: Option<Time>,
    last_broadcast: Option<Time>,
    /// The node whose table is being pulled, and the last key received of it.
    pub(super) pull_source: Option<NodeKey>,
    pub(super) pull_cursor: NodeKey,
    /// The deadline promised to the driver; a call long after it means a stall.
    pub(super) next_call: Option<Time>,
}

impl Default for NodeKey {
    /// The smallest key.
    fn default() -> NodeKey {
        NodeKey([0; NodeKey::BYTES])
    }
}

impl Timers {
    pub(super) fn deadline(&self) -> Option<Time> {
        [self.announce, self.sync, self.probe, self.broadcast].into_iter().flatten().min()
    }

    /// Schedules a broadcast: at once, or after the minimum interval since the last one.
    pub(super) fn schedule_broadcast(&mut self, now: Time) {
        let soonest = self.last_broadcast.map_or(now, |at| now.max(at + REFUTE_INTERVAL_MIN));
        self.broadcast.get_or_insert(soonest);
    }

    /// Schedules an announcement for now.
    pub(super) fn announce_now(&mut self, now: Time) {
        self.announce = Some(now);
    }
}

/// Returns whether a timer has expired, and then restarts it.
fn is_due(at: &mut Option<Time>, now: Time, interval: Duration) -> bool {
    let is_due = at.is_none_or(|at| at <= now);
    if is_due {
        *at = Some(now + interval);
    }
    is_due
}

impl Node {
    pub(super) fn run_timers(&mut self, now: Time) {
        self.own.start(now);
        if self.own.signed.record.leaving {
            return;
        }
        if self.timers.broadcast.take_if(|at| *at <= now).is_some() {
            self.timers.last_broadcast = Some(now);
            self.announce_to_all();
            self.timers.announce_now(now);
        }
        let interval = if self.own.is_settled(now) { ANNOUNCE_INTERVAL } else { ANNOUNCE_INTERVAL_NEW };
        if is_due(&mut self.timers.announce, now, interval) {
            self.announce();
            for key in self.table.remove_expired(now) {
                self.gossip.remove(&key);
            }
        }
        if is_due(&mut self.timers.sync, now, SYNC_INTERVAL) {
            let reachable = self.table.reachable();
            if let Some(key) = reachable.get(self.random.below(reachable.len())).copied() {
                self.pull(key);
            }
        }
        if is_due(&mut self.timers.probe, now, self.timing.probe_interval) {
            self.counters.probe_periods += 1;
            self.probe(now);
        }
        self.expire_probes(now);
        for key in self.table.expired_suspects(now) {
            if self.table.declare_dead(now, &key) {
                self.publish_change(key, UpdateKind::Claim);
                self.timers.announce_now(now);
            }
        }
    }

    /// Requests the next page of a node's table.
    pub(super) fn pull(&mut self, key: NodeKey) {
        let Some(address) = self.table.find(&key).and_then(|member| member.address()) else { return };
        self.timers.pull_source = Some(key);
        let after = self.timers.pull_cursor;
        self.send(Destination::Address(address), Message::Pull { after }, &[]);
    }

    fn probe(&mut self, now: Time) {
        let suspects: Vec<NodeKey> = self.table.suspects().map(|(key, _)| *key).take(SUSPECTS_MAX).collect();
        for key in suspects {
            let nonce = self.random.next();
            self.ping(&key, nonce);
        }
        let reachable = self.table.reachable();
        let Some(target) = self.probes.next_target(&reachable, &mut self.random) else { return };
        let nonce = self.random.next();
        self.probes.begin(target, nonce, now + self.timing.ack_timeout);
        self.ping(&target, nonce);
    }

    fn expire_probes(&mut self, now: Time) {
        for probe in self.probes.take_due(now, self.timing.indirect_timeout) {
            if probe.is_indirect {
                self.suspect(now, probe.target);
            } else {
                self.send_ping_requests(probe.target, probe.nonce);
            }
        }
    }

    fn send_ping_requests(&mut self, target: NodeKey, nonce: u64) {
        let mut helpers = self.table.reachable();
        helpers.retain(|key| *key != target);
        self.random.shuffle(&mut helpers);
        for helper in helpers.into_iter().take(self.timing.helpers) {
            if let Some(address) = self.table.find(&helper).and_then(|member| member.address()) {
                self.send(Destination::Address(address), Message::PingRequest { nonce, target }, &[]);
            }
        }
        // Pings once more: the first ping may have been lost.
        self.ping(&target, nonce);
    }

    fn suspect(&mut self, now: Time, key: NodeKey) {
        let Some(incarnation) = self.table.find(&key).map(|member| member.record().incarnation) else {
            return;
        };
        if self.table.merge_claim(now, &key, incarnation, Liveness::Suspect, self.timing.suspicion_timeout) {
            self.counters.suspicions += 1;
            self.publish_change(key, UpdateKind::Claim);
            self.timers.announce_now(now);
            let nonce = self.random.next();
            self.ping(&key, nonce);
        }
    }
}
