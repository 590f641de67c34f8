//! The node and its lanes: what is behind the one lock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use wirefs_circuit::{
    CircuitClass as Class, CircuitId, CircuitMisuse as Misuse, CircuitNode as Node, CircuitOutput as Output,
    CloseReason, GroupId, NetworkPath, PeerKey as NodeKey, Time,
};
use wirefs_op::Frame;

use super::lane::{Gone, Lane};
use super::node::top_up;
use crate::carrier::SendProgress;
use crate::limits::PENDING_MAX;
use crate::lost::CarrierLost;

/// Bytes that were never sent above which a carrier counts as blocked: an urgent frame waits behind no more.
const UNSENT_MAX: u64 = 256 << 10;
/// Data up to this size, in bytes, is put behind its head in one piece.
const JOIN_BYTES_MAX: usize = 1024;
/// How long a peer may take to be accepted, or to read what was written before we closed.
const LINGER: Duration = Duration::from_secs(10);

/// Who turns the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leader {
    Nobody,
    Keeper,
    Waiter,
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) node: Node,
    lanes: BTreeMap<GroupId, Lane>,
    /// Groups that peers made and nobody took yet.
    arrivals: VecDeque<GroupId>,
    /// Whether the peers of new groups are wanted.
    pub(super) is_accepting: bool,
    pub(super) leader: Leader,
    /// Counts changes of the leader: who led knows by it whether it still does.
    pub(super) term: u64,
    /// The keeper sleeps until it is called.
    pub(super) is_keeper_deep: bool,
    /// Threads that sleep until their lane is ready, or nobody leads.
    sleepers: usize,
    /// All handles are gone.
    pub(super) is_ending: bool,
}

impl Machine {
    pub(super) fn new(node: Node, is_accepting: bool) -> Machine {
        Machine {
            node,
            lanes: BTreeMap::new(),
            arrivals: VecDeque::new(),
            is_accepting,
            leader: Leader::Nobody,
            term: 0,
            is_keeper_deep: false,
            sleepers: 0,
            is_ending: false,
        }
    }

    /// The next time at which something is to be done.
    pub(super) fn deadline(&self) -> Time {
        let lanes = self.lanes.values().filter_map(|lane| lane.until);
        self.node.deadline().into_iter().chain(lanes).min().unwrap_or(Time(u64::MAX))
    }

    pub(super) fn tick(&mut self, now: Time) {
        if self.node.deadline().is_some_and(|at| at <= now) {
            self.node.tick(now);
        }
        let node = &mut self.node;
        for (group, lane) in &mut self.lanes {
            if lane.until.is_some_and(|until| until <= now) {
                lane.until = None;
                node.close(now, *group);
            }
        }
        top_up(node);
    }

    /// Whether nothing has to be sent or told now, beside what the next one who comes sees to.
    pub(super) fn can_wait(&mut self, now: Time) -> bool {
        self.settle(now);
        self.arrivals.is_empty() && !self.node.has_packets(now)
    }

    /// Takes note of what happened.
    pub(super) fn settle(&mut self, now: Time) {
        while let Some(output) = self.node.poll() {
            match output {
                Output::Established { group, peer, is_initiator } => {
                    self.joined(now, group, peer, is_initiator)
                }
                Output::Failed { group, reason } => self.over(group, Gone::Failed(reason)),
                Output::Closed { group, reason } => self.over(group, Gone::Lost(reason)),
                Output::Opened(circuit) => self.opened(circuit),
                Output::Readable(circuit) => {
                    if let Some(lane) = self.lanes.get_mut(&circuit.group) {
                        lane.note_readable(now, &mut self.node);
                    }
                    self.call(circuit.group);
                }
                Output::Writable(circuit) => {
                    if let Some(lane) = self.lanes.get_mut(&circuit.group) {
                        lane.is_full = false;
                    }
                    self.call(circuit.group);
                }
                Output::Reset(circuit) => {
                    if let Some(lane) = self.lanes.get_mut(&circuit.group) {
                        lane.gone.get_or_insert(Gone::Reset);
                    }
                    self.node.close(now, circuit.group);
                    self.call(circuit.group);
                }
                Output::PathUp { .. } | Output::PathDown { .. } | Output::Finished(_) => {}
            }
        }
        self.call_who_want_room();
    }

    fn joined(&mut self, now: Time, group: GroupId, peer: NodeKey, is_dialled: bool) {
        if is_dialled {
            if let Some(lane) = self.lanes.get_mut(&group) {
                lane.peer = Some(peer);
            }
            return self.call(group);
        }
        if self.arrivals.len() >= PENDING_MAX || !self.is_accepting || self.is_ending {
            self.node.close(now, group);
            return;
        }
        let mut lane = Lane::new(false);
        lane.peer = Some(peer);
        lane.until = Some(now + LINGER);
        self.lanes.insert(group, lane);
        self.arrivals.push_back(group);
    }

    /// The server opens the one circuit of a group. No other is wanted.
    fn opened(&mut self, circuit: CircuitId) {
        match self.lanes.get_mut(&circuit.group) {
            Some(lane) if lane.is_dialled && lane.circuit.is_none() => lane.circuit = Some(circuit),
            // It may be over already.
            Some(_) | None => drop(self.node.reset(circuit)),
        }
        self.call(circuit.group);
    }

    fn over(&mut self, group: GroupId, why: Gone) {
        let Some(lane) = self.lanes.get_mut(&group) else {
            return;
        };
        lane.gone.get_or_insert(why);
        lane.until = None;
        if lane.is_held {
            self.call(group);
        } else {
            self.lanes.remove(&group);
            self.arrivals.retain(|arrival| *arrival != group);
        }
    }

    /// Wakes those who sleep for a lane.
    fn call(&mut self, group: GroupId) {
        if let Some(lane) = self.lanes.get(&group)
            && lane.sleepers > 0
        {
            lane.signal.notify_all();
        }
    }

    fn call_who_want_room(&mut self) {
        for lane in self.lanes.values_mut().filter(|lane| lane.wants_room) {
            if is_roomy(&mut self.node, lane) {
                lane.wants_room = false;
                lane.signal.notify_all();
            }
        }
    }

    pub(super) fn lane(&mut self, group: GroupId) -> Option<&mut Lane> {
        self.lanes.get_mut(&group)
    }

    /// A lane with the node.
    pub(super) fn both(&mut self, group: GroupId) -> Option<(&mut Lane, &mut Node)> {
        Some((self.lanes.get_mut(&group)?, &mut self.node))
    }

    /// Whether all groups are over.
    pub(super) fn is_quiet(&self) -> bool {
        self.lanes.values().all(|lane| lane.gone.is_some())
    }

    pub(super) fn dial(
        &mut self,
        now: Time,
        ways: &[NetworkPath],
        expected: Option<NodeKey>,
    ) -> Result<GroupId, Misuse> {
        let group = self.node.dial(now, ways, expected)?;
        self.lanes.insert(group, Lane::new(true));
        Ok(group)
    }

    /// The next group that a peer made, to be accepted or refused.
    pub(super) fn next_arrival(&mut self) -> Option<GroupId> {
        let group = self.arrivals.pop_front()?;
        if let Some(lane) = self.lanes.get_mut(&group) {
            lane.is_held = true;
        }
        Some(group)
    }

    pub(super) fn has_arrivals(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// Opens the circuit of a group that a peer made, and says the first word.
    pub(super) fn greet(&mut self, group: GroupId, word: &'static [u8]) -> Result<(), CarrierLost> {
        let (lane, node) = self.both(group).ok_or(CarrierLost::Closed)?;
        lane.until = None;
        if let Some(gone) = lane.gone {
            return Err(gone.carrier_lost());
        }
        let opened = node.open(group, Class::Bulk).and_then(|circuit| {
            lane.circuit = Some(circuit);
            node.write(circuit, &mut Bytes::from_static(word))
        });
        opened.map(|_| ()).map_err(|_| CarrierLost::PeerClosed)
    }

    /// Takes frames from the front of a queue, as many as may wait to be sent.
    pub(super) fn write(
        &mut self,
        group: GroupId,
        partial: &mut VecDeque<Bytes>,
        queue: &mut VecDeque<Frame>,
    ) -> Result<SendProgress, CarrierLost> {
        let (lane, node) = self.both(group).ok_or(CarrierLost::Closed)?;
        if let Some(lost) = lane.refusal() {
            return Err(lost);
        }
        let circuit = lane.circuit.ok_or(CarrierLost::Closed)?;
        loop {
            while let Some(chunk) = partial.front_mut() {
                node.write(circuit, chunk).map_err(|_| CarrierLost::PeerClosed)?;
                if !chunk.is_empty() {
                    lane.is_full = true;
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

    /// Whether a write can make progress, or finds out why not. Whoever asks is told when it becomes so.
    pub(super) fn room(&mut self, group: GroupId) -> Option<Result<(), CarrierLost>> {
        let Some((lane, node)) = self.both(group) else {
            return Some(Err(CarrierLost::Closed));
        };
        if let Some(lost) = lane.refusal() {
            return Some(Err(lost));
        }
        lane.wants_room = !is_roomy(node, lane);
        (!lane.wants_room).then_some(Ok(()))
    }

    /// Closes a lane on this side: what was written still goes out.
    pub(super) fn close(&mut self, now: Time, group: GroupId) {
        let Some((lane, node)) = self.both(group) else {
            return;
        };
        if lane.is_closed {
            return;
        }
        lane.is_closed = true;
        let is_finishing = lane.circuit.is_some_and(|circuit| node.finish(circuit).is_ok());
        if is_finishing && !lane.is_ended {
            lane.until = Some(now + LINGER);
            lane.discard(now, node);
        } else {
            node.close(now, group);
            if lane.peer.is_none() {
                // A dial that is given up: the node says nothing of it any more.
                lane.gone.get_or_insert(Gone::Lost(CloseReason::Local));
            }
        }
        self.call(group);
    }

    /// The last handle of a lane is gone.
    pub(super) fn release(&mut self, now: Time, group: GroupId) {
        self.close(now, group);
        if let Some(lane) = self.lanes.get_mut(&group) {
            lane.is_held = false;
            if lane.gone.is_some() {
                self.lanes.remove(&group);
            }
        }
    }

    /// All handles are gone: no more is accepted.
    pub(super) fn end(&mut self, now: Time) {
        self.is_ending = true;
        self.arrivals.clear();
        let groups: Vec<GroupId> = self.lanes.keys().copied().collect();
        groups.into_iter().for_each(|group| self.release(now, group));
    }

    /// Makes the caller the leader, for the term that is returned.
    pub(super) fn lead(&mut self, leader: Leader) -> u64 {
        self.leader = leader;
        self.term += 1;
        self.term
    }

    /// Ends the term of the leader. Returns whether the keeper has to be called.
    pub(super) fn resign(&mut self) -> bool {
        self.lead(Leader::Nobody);
        self.pass_on()
    }

    /// Calls a thread that may lead, where nobody does. Returns whether that has to be the keeper.
    pub(super) fn pass_on(&mut self) -> bool {
        if self.leader != Leader::Nobody {
            return false;
        }
        if self.sleepers > 0
            && let Some(lane) = self.lanes.values().find(|lane| lane.sleepers > 0)
        {
            lane.signal.notify_one();
            return false;
        }
        std::mem::take(&mut self.is_keeper_deep)
    }

    /// Notes that a thread goes to sleep for a lane, or wakes up.
    pub(super) fn note_sleeper(&mut self, group: GroupId, sleeps: bool) {
        let change = |count: &mut usize| *count = if sleeps { *count + 1 } else { count.saturating_sub(1) };
        change(&mut self.sleepers);
        if let Some(lane) = self.lanes.get_mut(&group) {
            change(&mut lane.sleepers);
        }
    }
}

fn is_roomy(node: &mut Node, lane: &Lane) -> bool {
    let unsent = lane.circuit.and_then(|circuit| node.unsent_bytes(circuit));
    !lane.is_full && unsent.is_none_or(|bytes| bytes <= UNSENT_MAX / 2)
}
