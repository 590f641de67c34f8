//! Probes under way: this node's own, and those it makes as a favour.

use crate::chance::Chance;
use crate::key::NodeKey;
use crate::limits::FAVOURS_MAX;
use core::net::SocketAddr;
use std::time::Duration;
use wirefs_op::Time;

/// How long a favour is remembered.
const FAVOUR_LIFE: Duration = Duration::from_secs(1);

/// A probe of this node's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) target: NodeKey,
    pub(crate) nonce: u64,
    /// Others were asked too.
    pub(crate) is_helped: bool,
    /// What comes next, comes then.
    pub(crate) due: Time,
}

/// A probe for another node.
#[derive(Clone, Copy, Debug)]
struct Favour {
    target: NodeKey,
    nonce: u64,
    asker: SocketAddr,
    asker_nonce: u64,
    until: Time,
}

/// Probes under way.
#[derive(Debug, Default)]
pub(crate) struct Probing {
    /// Whose turn it is, from the back.
    turns: Vec<NodeKey>,
    probes: Vec<Probe>,
    favours: Vec<Favour>,
}

impl Probing {
    /// Whom to probe now: each in turn, in an order that is new each time around.
    pub(crate) fn next_target(&mut self, up: &[NodeKey], chance: &mut Chance) -> Option<NodeKey> {
        loop {
            if self.turns.is_empty() {
                self.turns = up.to_vec();
                chance.shuffle(&mut self.turns);
            }
            let target = self.turns.pop()?;
            if up.contains(&target) {
                let is_probed = self.probes.iter().any(|probe| probe.target == target);
                return (!is_probed).then_some(target);
            }
        }
    }

    pub(crate) fn begin(&mut self, target: NodeKey, nonce: u64, due: Time) {
        self.probes.push(Probe { target, nonce, is_helped: false, due });
    }

    /// The probes whose time has come; those that others were asked for are over.
    pub(crate) fn take_due(&mut self, now: Time, helped_patience: Duration) -> Vec<Probe> {
        let due: Vec<Probe> = self.probes.iter().filter(|probe| probe.due <= now).copied().collect();
        self.probes.retain(|probe| probe.due > now || !probe.is_helped);
        for probe in self.probes.iter_mut().filter(|probe| probe.due <= now) {
            probe.is_helped = true;
            probe.due = now + helped_patience;
        }
        due
    }

    /// An answer to one of our probes came.
    pub(crate) fn answered(&mut self, sender: &NodeKey, nonce: u64) {
        self.probes.retain(|probe| probe.nonce != nonce || probe.target != *sender);
    }

    /// Another says that one of our probes was answered.
    pub(crate) fn vouched(&mut self, nonce: u64) {
        self.probes.retain(|probe| probe.nonce != nonce || !probe.is_helped);
    }

    /// A node gave a sign of life in another way, or is gone.
    pub(crate) fn drop_target(&mut self, target: &NodeKey) {
        self.probes.retain(|probe| probe.target != *target);
    }

    /// Remembers for whom a probe is made; false: there are too many.
    pub(crate) fn promise(
        &mut self,
        now: Time,
        target: NodeKey,
        nonce: u64,
        asker: SocketAddr,
        asker_nonce: u64,
    ) -> bool {
        self.favours.retain(|favour| favour.until > now);
        let fits = self.favours.len() < FAVOURS_MAX;
        if fits {
            let until = now + FAVOUR_LIFE;
            self.favours.push(Favour { target, nonce, asker, asker_nonce, until });
        }
        fits
    }

    /// The favour that an answer is for: who asked, and by which nonce.
    pub(crate) fn keep_promise(&mut self, sender: &NodeKey, nonce: u64) -> Option<(SocketAddr, u64)> {
        let is_it = |favour: &Favour| favour.nonce == nonce && favour.target == *sender;
        let index = self.favours.iter().position(is_it)?;
        let favour = self.favours.swap_remove(index);
        Some((favour.asker, favour.asker_nonce))
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.probes.iter().map(|probe| probe.due).min()
    }

    /// All answers get so much more time.
    pub(crate) fn excuse(&mut self, span: Duration) {
        for probe in &mut self.probes {
            probe.due = probe.due + span;
        }
    }
}
