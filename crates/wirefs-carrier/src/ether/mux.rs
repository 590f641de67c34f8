//! The node and its connections, under one lock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use wirefs_circuit::{
    CircuitClass, CircuitId, CircuitMisuse, CircuitNode, CircuitOutput, CloseReason, GroupId, NetworkPath,
    PeerKey, Time,
};
use wirefs_op::Frame;

use super::connection::{ConnectionEnd, EtherConnection};
use super::node::top_up;
use crate::carrier::SendProgress;
use crate::limits::PENDING_MAX;
use crate::lost::CarrierLost;

/// Unsent bytes above which a carrier counts as blocked: an urgent frame waits for no more.
const UNSENT_MAX: u64 = 256 << 10;
/// Data up to this size, in bytes, is copied behind its header.
const JOIN_BYTES_MAX: usize = 1024;
/// The time for a peer to be accepted, or to read the data written before our close.
const LINGER: Duration = Duration::from_secs(10);

/// The thread that polls the cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leader {
    None,
    Background,
    Waiter,
}

#[derive(Debug)]
pub(super) struct Mux {
    pub(super) node: CircuitNode,
    connections: BTreeMap<GroupId, EtherConnection>,
    /// Groups that peers opened and no thread accepted yet.
    arrivals: VecDeque<GroupId>,
    /// Whether groups of peers are accepted.
    pub(super) is_accepting: bool,
    pub(super) leader: Leader,
    /// Counts changes of the leader; a thread that led compares it to know whether it still does.
    pub(super) term: u64,
    /// The background thread sleeps until it is woken.
    pub(super) is_background_parked: bool,
    /// Threads that sleep until their connection is ready, or until there is no leader.
    sleepers: usize,
    /// All handles are dropped.
    pub(super) is_ending: bool,
}

impl Mux {
    pub(super) fn new(node: CircuitNode, is_accepting: bool) -> Mux {
        Mux {
            node,
            connections: BTreeMap::new(),
            arrivals: VecDeque::new(),
            is_accepting,
            leader: Leader::None,
            term: 0,
            is_background_parked: false,
            sleepers: 0,
            is_ending: false,
        }
    }

    /// Returns the next timer.
    pub(super) fn deadline(&self) -> Time {
        let connections = self.connections.values().filter_map(|connection| connection.timeout_at);
        self.node.deadline().into_iter().chain(connections).min().unwrap_or(Time(u64::MAX))
    }

    pub(super) fn tick(&mut self, now: Time) {
        if self.node.deadline().is_some_and(|at| at <= now) {
            self.node.tick(now);
        }
        let node = &mut self.node;
        for (group, connection) in &mut self.connections {
            if connection.timeout_at.is_some_and(|timeout_at| timeout_at <= now) {
                connection.timeout_at = None;
                node.close(now, *group);
            }
        }
        top_up(node);
    }

    /// Returns whether nothing has to be sent or reported now that the next thread would not do.
    pub(super) fn can_wait(&mut self, now: Time) -> bool {
        self.process_outputs(now);
        self.arrivals.is_empty() && !self.node.has_packets(now)
    }

    /// Processes the node's outputs.
    pub(super) fn process_outputs(&mut self, now: Time) {
        while let Some(output) = self.node.poll() {
            match output {
                CircuitOutput::Established { group, peer, is_initiator } => {
                    self.joined(now, group, peer, is_initiator)
                }
                CircuitOutput::Failed { group, reason } => {
                    self.end_connection(group, ConnectionEnd::Failed(reason))
                }
                CircuitOutput::Closed { group, reason } => {
                    self.end_connection(group, ConnectionEnd::Lost(reason))
                }
                CircuitOutput::Opened(circuit) => self.opened(circuit),
                CircuitOutput::Readable(circuit) => {
                    if let Some(connection) = self.connections.get_mut(&circuit.group) {
                        connection.note_readable(now, &mut self.node);
                    }
                    self.wake(circuit.group);
                }
                CircuitOutput::Writable(circuit) => {
                    if let Some(connection) = self.connections.get_mut(&circuit.group) {
                        connection.is_full = false;
                    }
                    self.wake(circuit.group);
                }
                CircuitOutput::Reset(circuit) => {
                    if let Some(connection) = self.connections.get_mut(&circuit.group) {
                        connection.end.get_or_insert(ConnectionEnd::Reset);
                    }
                    self.node.close(now, circuit.group);
                    self.wake(circuit.group);
                }
                CircuitOutput::PathUp { .. }
                | CircuitOutput::PathDown { .. }
                | CircuitOutput::Finished(_) => {}
            }
        }
        self.wake_writers();
    }

    fn joined(&mut self, now: Time, group: GroupId, peer: PeerKey, is_initiator: bool) {
        if is_initiator {
            if let Some(connection) = self.connections.get_mut(&group) {
                connection.peer = Some(peer);
            }
            return self.wake(group);
        }
        if self.arrivals.len() >= PENDING_MAX || !self.is_accepting || self.is_ending {
            self.node.close(now, group);
            return;
        }
        let mut connection = EtherConnection::new(false);
        connection.peer = Some(peer);
        connection.timeout_at = Some(now + LINGER);
        self.connections.insert(group, connection);
        self.arrivals.push_back(group);
    }

    /// Records the one circuit of a group, opened by the server. Others are reset.
    fn opened(&mut self, circuit: CircuitId) {
        match self.connections.get_mut(&circuit.group) {
            Some(connection) if connection.is_initiator && connection.circuit.is_none() => {
                connection.circuit = Some(circuit)
            }
            // Fails if it has ended already.
            Some(_) | None => drop(self.node.reset(circuit)),
        }
        self.wake(circuit.group);
    }

    fn end_connection(&mut self, group: GroupId, why: ConnectionEnd) {
        let Some(connection) = self.connections.get_mut(&group) else {
            return;
        };
        connection.end.get_or_insert(why);
        connection.timeout_at = None;
        if connection.has_handle {
            self.wake(group);
        } else {
            self.connections.remove(&group);
            self.arrivals.retain(|arrival| *arrival != group);
        }
    }

    /// Wakes the threads that sleep for a connection.
    fn wake(&mut self, group: GroupId) {
        if let Some(connection) = self.connections.get(&group)
            && connection.sleepers > 0
        {
            connection.signal.notify_all();
        }
    }

    fn wake_writers(&mut self) {
        for connection in self.connections.values_mut().filter(|connection| connection.awaits_room) {
            if is_writable(&mut self.node, connection) {
                connection.awaits_room = false;
                connection.signal.notify_all();
            }
        }
    }

    pub(super) fn connection(&mut self, group: GroupId) -> Option<&mut EtherConnection> {
        self.connections.get_mut(&group)
    }

    /// Returns a connection and the node.
    pub(super) fn connection_and_node(
        &mut self,
        group: GroupId,
    ) -> Option<(&mut EtherConnection, &mut CircuitNode)> {
        Some((self.connections.get_mut(&group)?, &mut self.node))
    }

    /// Returns whether all groups have ended.
    pub(super) fn all_ended(&self) -> bool {
        self.connections.values().all(|connection| connection.end.is_some())
    }

    pub(super) fn dial(
        &mut self,
        now: Time,
        paths: &[NetworkPath],
        expected: Option<PeerKey>,
    ) -> Result<GroupId, CircuitMisuse> {
        let group = self.node.dial(now, paths, expected)?;
        self.connections.insert(group, EtherConnection::new(true));
        Ok(group)
    }

    /// Returns the next group that a peer opened, to be accepted or refused.
    pub(super) fn next_arrival(&mut self) -> Option<GroupId> {
        let group = self.arrivals.pop_front()?;
        if let Some(connection) = self.connections.get_mut(&group) {
            connection.has_handle = true;
        }
        Some(group)
    }

    pub(super) fn has_arrivals(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// Opens the circuit of a group that a peer opened, and writes the first byte.
    pub(super) fn send_greeting(&mut self, group: GroupId, word: &'static [u8]) -> Result<(), CarrierLost> {
        let (connection, node) = self.connection_and_node(group).ok_or(CarrierLost::Closed)?;
        connection.timeout_at = None;
        if let Some(end) = connection.end {
            return Err(end.carrier_lost());
        }
        let opened = node.open(group, CircuitClass::Bulk).and_then(|circuit| {
            connection.circuit = Some(circuit);
            node.write(circuit, &mut Bytes::from_static(word))
        });
        opened.map(|_| ()).map_err(|_| CarrierLost::PeerClosed)
    }

    /// Takes frames from the front of a queue, up to the limit of unsent bytes.
    pub(super) fn write(
        &mut self,
        group: GroupId,
        partial: &mut VecDeque<Bytes>,
        queue: &mut VecDeque<Frame>,
    ) -> Result<SendProgress, CarrierLost> {
        let (connection, node) = self.connection_and_node(group).ok_or(CarrierLost::Closed)?;
        if let Some(lost) = connection.refusal() {
            return Err(lost);
        }
        let circuit = connection.circuit.ok_or(CarrierLost::Closed)?;
        loop {
            while let Some(chunk) = partial.front_mut() {
                node.write(circuit, chunk).map_err(|_| CarrierLost::PeerClosed)?;
                if !chunk.is_empty() {
                    connection.is_full = true;
                    return Ok(SendProgress::Blocked);
                }
                partial.pop_front();
            }
            if queue.is_empty() {
                return Ok(SendProgress::Drained);
            }
            if node.unsent_bytes(circuit).unwrap_or(0) > UNSENT_MAX {
                return Ok(SendProgress::Blocked);
            }
            if let Some(Frame { mut head, data }) = queue.pop_front() {
                let is_small = data.len() <= JOIN_BYTES_MAX;
                if is_small {
                    head.extend_from_slice(&data);
                }
                partial.push_back(head.into());
                if !is_small {
                    partial.push_back(data);
                }
            }
        }
    }

    /// Returns whether a write can make progress or would fail; `None` if it would block. The caller is then woken when
    /// that changes.
    pub(super) fn writable(&mut self, group: GroupId) -> Option<Result<(), CarrierLost>> {
        let Some((connection, node)) = self.connection_and_node(group) else {
            return Some(Err(CarrierLost::Closed));
        };
        if let Some(lost) = connection.refusal() {
            return Some(Err(lost));
        }
        connection.awaits_room = !is_writable(node, connection);
        (!connection.awaits_room).then_some(Ok(()))
    }

    /// Closes a connection on this side: data already written is still sent.
    pub(super) fn close(&mut self, now: Time, group: GroupId) {
        let Some((connection, node)) = self.connection_and_node(group) else {
            return;
        };
        if connection.is_closed {
            return;
        }
        connection.is_closed = true;
        let is_finishing = connection.circuit.is_some_and(|circuit| node.finish(circuit).is_ok());
        if is_finishing && !connection.is_ended {
            connection.timeout_at = Some(now + LINGER);
            connection.discard(now, node);
        } else {
            node.close(now, group);
            if connection.peer.is_none() {
                // A cancelled dial: the node sends no further output about it.
                connection.end.get_or_insert(ConnectionEnd::Lost(CloseReason::Local));
            }
        }
        self.wake(group);
    }

    /// The last handle of a connection is dropped.
    pub(super) fn release(&mut self, now: Time, group: GroupId) {
        self.close(now, group);
        if let Some(connection) = self.connections.get_mut(&group) {
            connection.has_handle = false;
            if connection.end.is_some() {
                self.connections.remove(&group);
            }
        }
    }

    /// All handles are dropped: no more groups are accepted.
    pub(super) fn end(&mut self, now: Time) {
        self.is_ending = true;
        self.arrivals.clear();
        let groups: Vec<GroupId> = self.connections.keys().copied().collect();
        groups.into_iter().for_each(|group| self.release(now, group));
    }

    /// Makes the caller the leader, for the returned term.
    pub(super) fn lead(&mut self, leader: Leader) -> u64 {
        self.leader = leader;
        self.term += 1;
        self.term
    }

    /// Ends the leader's term. Returns whether the background thread must be woken.
    pub(super) fn resign(&mut self) -> bool {
        self.lead(Leader::None);
        self.wake_next_leader()
    }

    /// Wakes a thread that may lead, if there is no leader. Returns whether the background thread must be woken.
    pub(super) fn wake_next_leader(&mut self) -> bool {
        if self.leader != Leader::None {
            return false;
        }
        if self.sleepers > 0
            && let Some(connection) = self.connections.values().find(|connection| connection.sleepers > 0)
        {
            connection.signal.notify_one();
            return false;
        }
        std::mem::take(&mut self.is_background_parked)
    }

    /// Counts a thread that sleeps for a connection, or wakes up.
    pub(super) fn count_sleeper(&mut self, group: GroupId, sleeps: bool) {
        let change = |count: &mut usize| *count = if sleeps { *count + 1 } else { count.saturating_sub(1) };
        change(&mut self.sleepers);
        if let Some(connection) = self.connections.get_mut(&group) {
            change(&mut connection.sleepers);
        }
    }
}

fn is_writable(node: &mut CircuitNode, connection: &EtherConnection) -> bool {
    let unsent = connection.circuit.and_then(|circuit| node.unsent_bytes(circuit));
    !connection.is_full && unsent.is_none_or(|bytes| bytes <= UNSENT_MAX / 2)
}
