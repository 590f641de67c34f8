//! What is done at its time.

use super::Node;
use crate::gossip::Form;
use crate::key::NodeKey;
use crate::limits::{ANNOUNCE_INTERVAL, ANNOUNCE_INTERVAL_NEW, REFUTE_INTERVAL, SYNC_INTERVAL};
use crate::member::Liveness;
use crate::output::Destination;
use crate::packet::About;
use std::time::Duration;
use wirefs_op::Time;

/// Suspects that are pinged at each turn, at most.
const SUSPECTS_MAX: usize = 8;

/// When what is to be done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    announce: Option<Time>,
    sync: Option<Time>,
    probe: Option<Time>,
    /// All others are to be told that this node lives.
    tell_all: Option<Time>,
    told_all: Option<Time>,
    /// The table of another is being read: whose, and up to which key that has come.
    pub(super) pulling: Option<NodeKey>,
    pub(super) pulled_to: NodeKey,
    /// When the machine was to be called last time.
    pub(super) awaited: Option<Time>,
}

impl Default for NodeKey {
    /// The least key: before all others.
    fn default() -> NodeKey {
        NodeKey([0; NodeKey::BYTES])
    }
}

impl Turns {
    pub(super) fn deadline(&self) -> Option<Time> {
        [self.announce, self.sync, self.probe, self.tell_all].into_iter().flatten().min()
    }

    /// Tells all others, at once unless that was done just now.
    pub(super) fn tell_all_soon(&mut self, now: Time) {
        let soonest = self.told_all.map_or(now, |at| now.max(at + REFUTE_INTERVAL));
        self.tell_all.get_or_insert(soonest);
    }

    /// Announces at once.
    pub(super) fn announce_now(&mut self, now: Time) {
        self.announce = Some(now);
    }
}

/// Whether it is time, and if so when next.
fn is_due(at: &mut Option<Time>, now: Time, interval: Duration) -> bool {
    let is_due = at.is_none_or(|at| at <= now);
    if is_due {
        *at = Some(now + interval);
    }
    is_due
}

impl Node {
    pub(super) fn take_turns(&mut self, now: Time) {
        self.own.start(now);
        if self.own.signed.record.leaving {
            return;
        }
        if self.turns.tell_all.take_if(|at| *at <= now).is_some() {
            self.turns.told_all = Some(now);
            self.announce_to_all();
            self.turns.announce_now(now);
        }
        let interval = if self.own.is_settled(now) { ANNOUNCE_INTERVAL } else { ANNOUNCE_INTERVAL_NEW };
        if is_due(&mut self.turns.announce, now, interval) {
            self.announce();
            for key in self.table.forget(now) {
                self.gossip.forget(&key);
            }
        }
        if is_due(&mut self.turns.sync, now, SYNC_INTERVAL) {
            let up = self.table.up();
            if let Some(key) = up.get(self.chance.below(up.len())).copied() {
                self.pull(key);
            }
        }
        if is_due(&mut self.turns.probe, now, self.pace.turn) {
            self.counters.turns += 1;
            self.probe(now);
        }
        self.look_after_probes(now);
        for key in self.table.overdue(now) {
            if self.table.give_up(now, &key) {
                self.changed(key, Form::Claim);
                self.turns.announce_now(now);
            }
        }
    }

    /// Asks a node for the next page of its table.
    pub(super) fn pull(&mut self, key: NodeKey) {
        let Some(address) = self.table.find(&key).and_then(|member| member.address()) else { return };
        self.turns.pulling = Some(key);
        let after = self.turns.pulled_to;
        self.send(Destination::Address(address), About::Pull { after }, &[]);
    }

    fn probe(&mut self, now: Time) {
        let suspects: Vec<NodeKey> = self.table.suspects().map(|(key, _)| *key).take(SUSPECTS_MAX).collect();
        for key in suspects {
            let nonce = self.chance.next();
            self.ping(&key, nonce);
        }
        let up = self.table.up();
        let Some(target) = self.probing.next_target(&up, &mut self.chance) else { return };
        let nonce = self.chance.next();
        self.probing.begin(target, nonce, now + self.pace.patience);
        self.ping(&target, nonce);
    }

    fn look_after_probes(&mut self, now: Time) {
        for probe in self.probing.take_due(now, self.pace.helped_patience) {
            if probe.is_helped {
                self.suspect(now, probe.target);
            } else {
                self.ask_for_help(probe.target, probe.nonce);
            }
        }
    }

    fn ask_for_help(&mut self, target: NodeKey, nonce: u64) {
        let mut helpers = self.table.up();
        helpers.retain(|key| *key != target);
        self.chance.shuffle(&mut helpers);
        for helper in helpers.into_iter().take(self.pace.helpers) {
            if let Some(address) = self.table.find(&helper).and_then(|member| member.address()) {
                self.send(Destination::Address(address), About::Favour { nonce, target }, &[]);
            }
        }
        // The first ping may just have been lost.
        self.ping(&target, nonce);
    }

    fn suspect(&mut self, now: Time, key: NodeKey) {
        let Some(incarnation) = self.table.find(&key).map(|member| member.record().incarnation) else {
            return;
        };
        if self.table.claim(now, &key, incarnation, Liveness::Suspect, self.pace.suspicion) {
            self.counters.suspicions += 1;
            self.changed(key, Form::Claim);
            self.turns.announce_now(now);
            let nonce = self.chance.next();
            self.ping(&key, nonce);
        }
    }
}
