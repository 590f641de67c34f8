//! The state machine of one node.

mod own;
mod receive;
mod send;
mod timers;

use crate::config::{NodeConfig, NodeTrust, ProbeTiming};
use crate::gossip::{Gossip, UpdateKind};
use crate::key::NodeKey;
use crate::limits::{PACKETS_MAX, PEERS_MAX, REGISTERED_MAX, STALL_MIN};
use crate::member::{Liveness, Member};
use crate::output::{Destination, NodeCounters, NodeInput, NodeOutput, NodeView};
use crate::probes::Probes;
use crate::random::SplitMix64;
use crate::table::MemberTable;
use core::net::SocketAddr;
use own::Own;
use std::collections::VecDeque;
use timers::Timers;
use wirefs_op::Time;

/// One node, and its view of the others.
///
/// # Source
/// SWIM (Das, Gupta, Motivala, 2002): round-robin probing, indirect probes, suspicion, refutation, gossip piggybacked
/// on probes. Ours: signatures, names, and longer deadlines after a stall of this machine.
#[derive(Debug)]
pub struct Node {
    own: Own,
    table: MemberTable,
    probes: Probes,
    gossip: Gossip,
    timers: Timers,
    outputs: VecDeque<NodeOutput>,
    peers: Vec<SocketAddr>,
    /// Addresses from a registry.
    registered: Vec<SocketAddr>,
    trust: NodeTrust,
    timing: ProbeTiming,
    random: SplitMix64,
    counters: NodeCounters,
}

impl Node {
    /// Returns a node that has not announced itself yet; `None` if its key does not sign.
    pub fn new(config: NodeConfig) -> Option<Node> {
        let mut peers = config.peers.clone();
        peers.truncate(PEERS_MAX);
        let (trust, timing, random) = (config.trust.clone(), config.timing, SplitMix64(config.seed));
        Some(Node {
            own: Own::new(config)?,
            table: MemberTable::default(),
            probes: Probes::default(),
            gossip: Gossip::default(),
            timers: Timers::default(),
            outputs: VecDeque::new(),
            peers,
            registered: Vec::new(),
            trust,
            timing,
            random,
            counters: NodeCounters::default(),
        })
    }

    /// Processes an event at time `now`. Times never go back.
    pub fn handle(&mut self, now: Time, input: NodeInput<'_>) {
        self.extend_deadlines(now);
        match input {
            NodeInput::Packet { from, bytes } => self.receive(now, from, bytes),
            NodeInput::Tick => {}
            NodeInput::Load { load_percent, free_bytes, all_bytes } => {
                self.own.update_load(now, load_percent, free_bytes, all_bytes);
            }
            NodeInput::Registered(peers) => {
                self.registered = peers.iter().take(REGISTERED_MAX).copied().collect()
            }
            NodeInput::Trust(trust) => self.trust = trust.clone(),
            NodeInput::Leave => self.leave(),
        }
        self.run_timers(now);
        self.timers.next_call = self.deadline();
    }

    /// Returns the next effect to carry out.
    pub fn poll(&mut self) -> Option<NodeOutput> {
        self.outputs.pop_front()
    }

    /// Returns the latest time for the next call of [`Node::handle`].
    pub fn deadline(&self) -> Option<Time> {
        let suspects = self.table.suspects().map(|(_, member)| member.dead_at).min();
        [self.timers.deadline(), self.probes.deadline(), suspects].into_iter().flatten().min()
    }

    /// Returns the known nodes: this one first, then the others by key.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        let own = NodeView {
            record: &self.own.signed.record,
            state: if self.own.signed.record.leaving { Liveness::Left } else { Liveness::Alive },
            since: self.own.started.unwrap_or_default(),
            holds_name: !self.own.yielded_name,
            is_own: true,
            last_source: None,
        };
        std::iter::once(own).chain(self.table.iter().map(|(_, member)| view(member)))
    }

    /// Returns one of the other nodes.
    pub fn find(&self, key: &NodeKey) -> Option<NodeView<'_>> {
        self.table.find(key).map(view)
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> NodeCounters {
        self.counters
    }

    fn push(&mut self, output: NodeOutput) {
        let can_be_lost = matches!(output, NodeOutput::Send { .. });
        if !can_be_lost || self.outputs.len() < PACKETS_MAX {
            self.outputs.push_back(output);
        }
    }

    /// Extends all deadlines after a stall of this machine: silence of other nodes during the stall proves nothing.
    fn extend_deadlines(&mut self, now: Time) {
        let late = self.timers.next_call.map(|next_call| now.since(next_call)).unwrap_or_default();
        if late >= STALL_MIN {
            self.probes.extend_deadlines(late);
            self.table.extend_deadlines(late);
            self.own.extend_deadlines(now, late);
        }
    }

    /// After a change of a node: assigns names, queues gossip, reports the change.
    fn publish_change(&mut self, key: NodeKey, kind: UpdateKind) {
        self.table.assign_names(self.own.name());
        self.gossip.add(key, kind);
        if let Some(state) = self.table.find(&key).map(|member| member.state) {
            self.push(NodeOutput::Changed { key, state });
        }
    }

    fn leave(&mut self) {
        self.own.leave();
        for _ in 0..LEAVE_TIMES {
            self.announce_to_all();
        }
    }

    /// Announces this node on the segment, to the peers, and to all nodes that are up.
    fn announce_to_all(&mut self) {
        self.announce();
        let others: Vec<SocketAddr> = self
            .table
            .iter()
            .filter(|(_, member)| member.state.is_up())
            .flat_map(|(_, member)| member.addresses())
            .collect();
        for address in others {
            self.send(Destination::Address(address), crate::packet::Message::Announce, &[]);
        }
    }
}

/// Copies of the leave message; it is not acknowledged.
const LEAVE_TIMES: usize = 2;

fn view(member: &Member) -> NodeView<'_> {
    NodeView {
        record: member.record(),
        state: member.state,
        since: member.since,
        holds_name: member.holds_name,
        is_own: false,
        last_source: member.last_source,
    }
}

#[cfg(test)]
pub(crate) mod tests;
