//! Outstanding probes: this node's own, and indirect ones on behalf of others.

use crate::key::NodeKey;
use crate::limits::INDIRECT_PROBES_MAX;
use crate::random::SplitMix64;
use core::net::SocketAddr;
use std::time::Duration;
use wirefs_op::Time;

/// Lifetime of an indirect probe.
const INDIRECT_PROBE_TTL: Duration = Duration::from_secs(1);

/// A probe by this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) target: NodeKey,
    pub(crate) nonce: u64,
    /// Ping requests were sent to other nodes.
    pub(crate) is_indirect: bool,
    /// When the current timeout expires.
    pub(crate) due: Time,
}

/// A probe on behalf of another node.
#[derive(Clone, Copy, Debug)]
struct IndirectProbe {
    target: NodeKey,
    nonce: u64,
    requester: SocketAddr,
    requester_nonce: u64,
    until: Time,
}

/// All outstanding probes.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    /// Nodes still to be probed in this round; the next one is the last.
    round: Vec<NodeKey>,
    pending: Vec<Probe>,
    indirect: Vec<IndirectProbe>,
}

impl Probes {
    /// Returns the next node to probe: round-robin, shuffled anew in each round.
    pub(crate) fn next_target(&mut self, reachable: &[NodeKey], random: &mut SplitMix64) -> Option<NodeKey> {
        loop {
            if self.round.is_empty() {
                self.round = reachable.to_vec();
                random.shuffle(&mut self.round);
            }
            let target = self.round.pop()?;
            if reachable.contains(&target) {
                let is_probed = self.pending.iter().any(|probe| probe.target == target);
                return (!is_probed).then_some(target);
            }
        }
    }

    pub(crate) fn begin(&mut self, target: NodeKey, nonce: u64, due: Time) {
        self.pending.push(Probe { target, nonce, is_indirect: false, due });
    }

    /// Returns the probes whose timeout has expired. Direct ones become indirect; indirect ones are removed.
    pub(crate) fn take_due(&mut self, now: Time, indirect_timeout: Duration) -> Vec<Probe> {
        let due: Vec<Probe> = self.pending.iter().filter(|probe| probe.due <= now).copied().collect();
        self.pending.retain(|probe| probe.due > now || !probe.is_indirect);
        for probe in self.pending.iter_mut().filter(|probe| probe.due <= now) {
            probe.is_indirect = true;
            probe.due = now + indirect_timeout;
        }
        due
    }

    /// An ack of one of our probes arrived.
    pub(crate) fn handle_ack(&mut self, sender: &NodeKey, nonce: u64) {
        self.pending.retain(|probe| probe.nonce != nonce || probe.target != *sender);
    }

    /// An indirect ack of one of our probes arrived.
    pub(crate) fn handle_indirect_ack(&mut self, nonce: u64) {
        self.pending.retain(|probe| probe.nonce != nonce || !probe.is_indirect);
    }

    /// Removes the probes of a node that is known to be alive, or has left.
    pub(crate) fn cancel(&mut self, target: &NodeKey) {
        self.pending.retain(|probe| probe.target != *target);
    }

    /// Records an indirect probe; `false` if there are too many.
    pub(crate) fn begin_indirect(
        &mut self,
        now: Time,
        target: NodeKey,
        nonce: u64,
        requester: SocketAddr,
        requester_nonce: u64,
    ) -> bool {
        self.indirect.retain(|probe| probe.until > now);
        let fits = self.indirect.len() < INDIRECT_PROBES_MAX;
        if fits {
            let until = now + INDIRECT_PROBE_TTL;
            self.indirect.push(IndirectProbe { target, nonce, requester, requester_nonce, until });
        }
        fits
    }

    /// Ends the indirect probe that an ack belongs to. Returns the address and the nonce of the requester.
    pub(crate) fn finish_indirect(&mut self, sender: &NodeKey, nonce: u64) -> Option<(SocketAddr, u64)> {
        let matches = |probe: &IndirectProbe| probe.nonce == nonce && probe.target == *sender;
        let index = self.indirect.iter().position(matches)?;
        let probe = self.indirect.swap_remove(index);
        Some((probe.requester, probe.requester_nonce))
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.pending.iter().map(|probe| probe.due).min()
    }

    /// Extends all timeouts after a stall.
    pub(crate) fn extend_deadlines(&mut self, span: Duration) {
        for probe in &mut self.pending {
            probe.due = probe.due + span;
        }
    }
}
