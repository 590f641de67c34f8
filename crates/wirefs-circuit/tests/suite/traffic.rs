//! Random traffic on circuits, and its verification.

use std::collections::BTreeMap;

use bytes::Bytes;
use wirefs_circuit::{CircuitClass, CircuitId, CircuitOutput, GroupId, Read, Time};
use wirefs_lab::random::Random;

use crate::network::{SimNetwork, us};

/// The prefix of each circuit that identifies its transfer, in bytes.
const NAME_BYTES: usize = 8;

/// One circuit, from opening to end.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) opener: u8,
    pub(crate) class: CircuitClass,
    /// Bytes from the opener, and bytes to it.
    pub(crate) bytes: [u64; 2],
    /// The size of a write, in bytes.
    pub(crate) chunk: u64,
    pub(crate) starts: Time,
    /// One side resets the circuit at this time.
    pub(crate) reset: Option<(bool, Time)>,
    /// The delay before each read.
    pub(crate) lazy_us: u64,
}

/// An injected flaw, to test that verification detects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    LosesPiece,
    DoublesPiece,
    SwapsPieces,
    FlipsBit,
    EndsEarly,
    NeverEnds,
}

/// One end of a transfer.
#[derive(Debug)]
struct End {
    node: u8,
    circuit: CircuitId,
    transfer: Option<usize>,
    written: u64,
    pending: Bytes,
    read: u64,
    name: Vec<u8>,
    is_finished: bool,
    is_all_there: bool,
    is_end_read: bool,
    is_reset: bool,
    wakes: Option<Time>,
    held_back: Option<Bytes>,
}

/// Returns a byte of a transfer.
fn byte(transfer: usize, back: bool, offset: u64) -> u8 {
    let mixed =
        (offset ^ (transfer as u64) << 40 ^ u64::from(back) << 63).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 56) as u8
}

fn content(transfer: usize, back: bool, offset: u64, bytes: u64) -> Bytes {
    (offset..offset + bytes).map(|offset| byte(transfer, back, offset)).collect()
}

pub(crate) struct Traffic {
    plan: Vec<Transfer>,
    /// The group at each node.
    groups: BTreeMap<u8, GroupId>,
    ends: BTreeMap<(u8, CircuitId), End>,
    started: Vec<bool>,
    pub(crate) flaw: Option<Flaw>,
    pub(crate) delivered: u64,
    pub(crate) lost: Vec<String>,
    pub(crate) downs: u32,
    random: Random,
}

impl Traffic {
    pub(crate) fn new(plan: Vec<Transfer>, seed: u64) -> Traffic {
        let started = vec![false; plan.len()];
        Traffic {
            plan,
            groups: BTreeMap::new(),
            ends: BTreeMap::new(),
            started,
            flaw: None,
            delivered: 0,
            lost: Vec::new(),
            downs: 0,
            random: Random::new(seed),
        }
    }

    /// Runs all due actions of users.
    pub(crate) fn run_due(&mut self, network: &mut SimNetwork) -> Result<(), String> {
        for (node, output) in std::mem::take(&mut network.outputs) {
            self.handle(network, node, output)?;
        }
        for index in 0..self.plan.len() {
            self.start(network, index);
        }
        let due: Vec<(u8, CircuitId)> = self
            .ends
            .iter()
            .filter(|(_, end)| end.wakes.is_some_and(|at| at <= network.now))
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            self.act(network, key)?;
        }
        self.reset_due(network);
        Ok(())
    }

    /// Returns the time of the next action.
    pub(crate) fn deadline(&self, now: Time) -> Option<Time> {
        let naps = self.ends.values().filter_map(|end| end.wakes);
        let plan = self.plan.iter().zip(&self.started);
        let starts = plan.clone().filter(|(_, started)| !**started).map(|(transfer, _)| transfer.starts);
        let resets = self.plan.iter().filter_map(|transfer| transfer.reset.map(|(_, at)| at));
        naps.chain(starts.chain(resets).filter(|at| *at > now)).min()
    }

    fn handle(&mut self, network: &mut SimNetwork, node: u8, output: CircuitOutput) -> Result<(), String> {
        match output {
            CircuitOutput::Established { group, .. } => {
                self.groups.insert(node, group);
            }
            CircuitOutput::Failed { reason, .. } => return Err(format!("the dial failed: {reason:?}")),
            CircuitOutput::Closed { reason, .. } => self.lost.push(format!("node {node}: {reason:?}")),
            CircuitOutput::PathUp { .. } => {}
            CircuitOutput::PathDown { .. } => self.downs += 1,
            CircuitOutput::Opened(circuit) => {
                if self.ends.insert((node, circuit), End::new(node, circuit, None)).is_some() {
                    return Err(format!("{circuit:?} is opened twice at {node}"));
                }
            }
            CircuitOutput::Readable(circuit) | CircuitOutput::Writable(circuit) => {
                let lazy = self.ends.get(&(node, circuit)).and_then(|end| end.transfer);
                let lazy = lazy.and_then(|index| self.plan.get(index)).map_or(0, |transfer| transfer.lazy_us);
                if let Some(end) = self.ends.get_mut(&(node, circuit)) {
                    end.wakes = Some(network.now + us(self.random.below(lazy + 1)));
                }
            }
            CircuitOutput::Finished(circuit) => {
                if let Some(end) = self.ends.get_mut(&(node, circuit)) {
                    end.is_all_there = true;
                }
            }
            CircuitOutput::Reset(circuit) => {
                if let Some(end) = self.ends.get_mut(&(node, circuit)) {
                    end.is_reset = true;
                    end.wakes = None;
                }
            }
        }
        Ok(())
    }

    fn start(&mut self, network: &mut SimNetwork, index: usize) {
        let transfer = &self.plan[index];
        let Some(group) = self
            .groups
            .get(&transfer.opener)
            .filter(|_| !self.started[index] && transfer.starts <= network.now)
        else {
            return;
        };
        let node = &mut network.nodes[usize::from(transfer.opener)];
        // If the table is full, the open is repeated at the next event.
        if let Ok(circuit) = node.open(*group, transfer.class) {
            self.started[index] = true;
            let mut end = End::new(transfer.opener, circuit, Some(index));
            end.pending = (index as u64).to_le_bytes().to_vec().into();
            end.wakes = Some(network.now);
            self.ends.insert((transfer.opener, circuit), end);
        }
    }

    /// Reads and writes as much as possible at one end.
    fn act(&mut self, network: &mut SimNetwork, key: (u8, CircuitId)) -> Result<(), String> {
        let Some(mut end) = self.ends.remove(&key) else {
            return Ok(());
        };
        end.wakes = None;
        let result = self.read(network, &mut end).and_then(|()| self.write(network, &mut end));
        self.ends.insert(key, end);
        result
    }

    fn read(&mut self, network: &mut SimNetwork, end: &mut End) -> Result<(), String> {
        loop {
            match network.nodes[usize::from(end.node)].read(end.circuit) {
                Read::Data(bytes) => {
                    for bytes in self.apply_flaw(end, bytes) {
                        self.verify(end, &bytes)?;
                    }
                }
                Read::End => {
                    if self.flaw != Some(Flaw::NeverEnds) {
                        end.is_end_read = true;
                    }
                    return self.verify_end(end);
                }
                Read::Nothing | Read::Gone => return Ok(()),
            }
            if self.flaw == Some(Flaw::EndsEarly) && end.read > 0 {
                end.is_end_read = true;
                return self.verify_end(end);
            }
        }
    }

    /// Applies the flaw to received data.
    fn apply_flaw(&mut self, end: &mut End, bytes: Bytes) -> Vec<Bytes> {
        let is_time = end.read > 0 && self.random.below(4) == 0;
        match self.flaw {
            Some(Flaw::LosesPiece) if is_time => vec![],
            Some(Flaw::DoublesPiece) if is_time => vec![bytes.clone(), bytes],
            Some(Flaw::SwapsPieces) => match end.held_back.take() {
                Some(before) => vec![bytes, before],
                None if is_time => {
                    end.held_back = Some(bytes);
                    vec![]
                }
                None => vec![bytes],
            },
            Some(Flaw::FlipsBit) if is_time => {
                let mut bytes = bytes.to_vec();
                bytes[0] ^= 4;
                vec![bytes.into()]
            }
            Some(_) | None => vec![bytes],
        }
    }

    /// Verifies received data.
    fn verify(&mut self, end: &mut End, bytes: &[u8]) -> Result<(), String> {
        self.delivered += bytes.len() as u64;
        let mut rest = bytes;
        if end.transfer.is_none() {
            let missing = (NAME_BYTES - end.name.len()).min(rest.len());
            let (name, after) = rest.split_at(missing);
            end.name.extend_from_slice(name);
            rest = after;
            let Ok(name) = <[u8; NAME_BYTES]>::try_from(end.name.as_slice()) else {
                return Ok(());
            };
            let index = usize::try_from(u64::from_le_bytes(name)).unwrap();
            let transfer =
                self.plan.get(index).ok_or_else(|| format!("{:?} has a foreign name", end.circuit))?;
            if transfer.opener == end.node || transfer.class != end.circuit.number.class() {
                return Err(format!("{:?} is not what transfer {index} is", end.circuit));
            }
            end.transfer = Some(index);
        }
        let index = end.transfer.unwrap();
        let back = self.plan[index].opener == end.node;
        for (at, &got) in rest.iter().enumerate() {
            let offset = end.read + at as u64;
            if got != byte(index, back, offset) {
                return Err(format!("transfer {index}: wrong byte at {offset}, back {back}"));
            }
        }
        end.read += rest.len() as u64;
        if end.read > self.plan[index].bytes[usize::from(back)] {
            return Err(format!("transfer {index}: more than was written"));
        }
        Ok(())
    }

    fn verify_end(&self, end: &End) -> Result<(), String> {
        let index = end.transfer.ok_or_else(|| format!("{:?} ended without a name", end.circuit))?;
        let transfer = &self.plan[index];
        let all = transfer.bytes[usize::from(transfer.opener == end.node)];
        if end.is_end_read && end.read != all {
            return Err(format!("transfer {index}: ended after {} of {all}", end.read));
        }
        Ok(())
    }

    fn write(&mut self, network: &mut SimNetwork, end: &mut End) -> Result<(), String> {
        let Some(index) = end.transfer.filter(|_| !end.is_finished && !end.is_reset) else {
            return Ok(());
        };
        let transfer = &self.plan[index];
        let back = transfer.opener != end.node;
        let all = transfer.bytes[usize::from(back)];
        let node = &mut network.nodes[usize::from(end.node)];
        loop {
            if end.pending.is_empty() {
                let bytes = transfer.chunk.min(all - end.written);
                if bytes == 0 {
                    end.is_finished = true;
                    return node.finish(end.circuit).map_err(|fault| format!("transfer {index}: {fault}"));
                }
                end.pending = content(index, back, end.written, bytes);
                end.written += bytes;
            }
            node.write(end.circuit, &mut end.pending)
                .map_err(|fault| format!("transfer {index}: {fault}"))?;
            if !end.pending.is_empty() {
                return Ok(());
            }
        }
    }

    /// Resets circuits as planned.
    fn reset_due(&mut self, network: &mut SimNetwork) {
        for end in self.ends.values_mut().filter(|end| !end.is_reset) {
            let Some(transfer) = end.transfer.and_then(|index| self.plan.get(index)) else {
                continue;
            };
            let is_due = |(by_opener, at): (bool, Time)| {
                at <= network.now && by_opener == (transfer.opener == end.node)
            };
            if transfer.reset.is_some_and(is_due)
                && network.nodes[usize::from(end.node)].reset(end.circuit).is_ok()
            {
                end.is_reset = true;
                end.wakes = None;
            }
        }
    }

    /// Returns whether all transfers have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.started.iter().all(|started| *started) && self.ends.values().all(End::is_over)
    }

    /// Describes unfinished transfers.
    pub(crate) fn unfinished(&self) -> String {
        let open: Vec<&End> = self.ends.values().filter(|end| !end.is_over()).take(2).collect();
        format!("{} not started, {open:#?}", self.started.iter().filter(|started| !**started).count())
    }
}

impl End {
    fn new(node: u8, circuit: CircuitId, transfer: Option<usize>) -> End {
        End {
            node,
            circuit,
            transfer,
            written: 0,
            pending: Bytes::new(),
            read: 0,
            name: Vec::new(),
            is_finished: false,
            is_all_there: false,
            is_end_read: false,
            is_reset: false,
            wakes: None,
            held_back: None,
        }
    }

    fn is_over(&self) -> bool {
        self.is_reset || self.is_end_read && self.is_all_there
    }
}
