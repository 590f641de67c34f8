//! The machine.

mod own;
mod receive;
mod send;
mod turns;

use crate::chance::Chance;
use crate::config::{Config, Pace, Trust};
use crate::gossip::{Form, Gossip};
use crate::key::NodeKey;
use crate::limits::{PACKETS_MAX, PEERS_MAX, REGISTERED_MAX, STALL};
use crate::member::{Liveness, Member};
use crate::output::{Counters, Destination, Input, NodeView, Output};
use crate::probing::Probing;
use crate::table::Table;
use core::net::SocketAddr;
use own::Own;
use std::collections::VecDeque;
use turns::Turns;
use wirefs_op::Time;

/// One node, and what it knows of the others.
///
/// # Source
/// SWIM (Das, Gupta, Motivala, 2002): probes in turn, with the help of others, suspicion, refutation, news that ride on
/// probes. Ours: signatures, names, and that a machine that did not run excuses the others.
#[derive(Debug)]
pub struct Node {
    own: Own,
    table: Table,
    probing: Probing,
    gossip: Gossip,
    turns: Turns,
    outputs: VecDeque<Output>,
    peers: Vec<SocketAddr>,
    /// Those of a registry.
    registered: Vec<SocketAddr>,
    trust: Trust,
    pace: Pace,
    chance: Chance,
    counters: Counters,
}

impl Node {
    /// A node that has not announced itself yet; `None` where its key does not sign.
    pub fn new(config: Config) -> Option<Node> {
        let mut peers = config.peers.clone();
        peers.truncate(PEERS_MAX);
        let (trust, pace, chance) = (config.trust.clone(), config.pace, Chance(config.seed));
        Some(Node {
            own: Own::new(config)?,
            table: Table::default(),
            probing: Probing::default(),
            gossip: Gossip::default(),
            turns: Turns::default(),
            outputs: VecDeque::new(),
            peers,
            registered: Vec::new(),
            trust,
            pace,
            chance,
            counters: Counters::default(),
        })
    }

    /// Takes what happens, at its time. Times never go back.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.excuse(now);
        match input {
            Input::Packet { from, bytes } => self.receive(now, from, bytes),
            Input::Tick => {}
            Input::Figures { load_percent, free_bytes, all_bytes } => {
                self.own.tell_figures(now, load_percent, free_bytes, all_bytes);
            }
            Input::Registered(peers) => {
                self.registered = peers.iter().take(REGISTERED_MAX).copied().collect()
            }
            Input::Leave => self.leave(),
        }
        self.take_turns(now);
        self.turns.awaited = self.deadline();
    }

    /// What is to be done.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Node::handle`] is to be called at the latest.
    pub fn deadline(&self) -> Option<Time> {
        let suspects = self.table.suspects().map(|(_, member)| member.dead_at).min();
        [self.turns.deadline(), self.probing.deadline(), suspects].into_iter().flatten().min()
    }

    /// The nodes that are known: this one first, then by their keys.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        let own = NodeView {
            record: &self.own.signed.record,
            state: if self.own.signed.record.leaving { Liveness::Left } else { Liveness::Alive },
            since: self.own.started.unwrap_or_default(),
            holds_name: !self.own.gave_way,
            is_own: true,
            heard_from: None,
        };
        std::iter::once(own).chain(self.table.iter().map(|(_, member)| view(member)))
    }

    /// One of the others.
    pub fn find(&self, key: &NodeKey) -> Option<NodeView<'_>> {
        self.table.find(key).map(view)
    }

    /// What was counted since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn push(&mut self, output: Output) {
        let can_be_lost = matches!(output, Output::Send { .. });
        if !can_be_lost || self.outputs.len() < PACKETS_MAX {
            self.outputs.push_back(output);
        }
    }

    /// This machine did not run for a while: what the others did not do meanwhile proves nothing.
    fn excuse(&mut self, now: Time) {
        let late = self.turns.awaited.map(|awaited| now.since(awaited)).unwrap_or_default();
        if late >= STALL {
            self.probing.excuse(late);
            self.table.excuse(late);
            self.own.excuse(now, late);
        }
    }

    /// A node is otherwise than it was: names are settled, others told.
    fn changed(&mut self, key: NodeKey, form: Form) {
        self.table.settle_names(self.own.name());
        self.gossip.add(key, form);
        if let Some(state) = self.table.find(&key).map(|member| member.state) {
            self.push(Output::Changed { key, state });
        }
    }

    fn leave(&mut self) {
        self.own.leave();
        for _ in 0..LEAVE_TIMES {
            self.announce_to_all();
        }
    }

    /// Tells the segment, the peers, and the others where they are.
    fn announce_to_all(&mut self) {
        self.announce();
        let others: Vec<SocketAddr> = self
            .table
            .iter()
            .filter(|(_, member)| member.state.is_up())
            .flat_map(|(_, member)| member.addresses())
            .collect();
        for address in others {
            self.send(Destination::Address(address), crate::packet::About::Announce, &[]);
        }
    }
}

/// How often a node that goes says so: nobody acknowledges it.
const LEAVE_TIMES: usize = 2;

fn view(member: &Member) -> NodeView<'_> {
    NodeView {
        record: member.record(),
        state: member.state,
        since: member.since,
        holds_name: member.holds_name,
        is_own: false,
        heard_from: member.heard_from,
    }
}

#[cfg(test)]
pub(crate) mod tests;
