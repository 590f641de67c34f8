//! Two connected nodes.

use std::time::Duration;

use bytes::Bytes;
use wirefs_circuit::{CircuitClass, CircuitId, CircuitOutput, GroupId, Read, Time};
use wirefs_lab::LaneProfile;

use crate::network::{SimNetwork, node_key, us};

pub(crate) struct Pair {
    pub(crate) network: SimNetwork,
    /// The group at the initiator (node 0) and at the responder (node 1).
    pub(crate) groups: [GroupId; 2],
    pub(crate) outputs: Vec<(u8, CircuitOutput)>,
}

/// An Ethernet lane with a delay of 100 µs and this rate in bits per second.
pub(crate) fn wire(rate_bits: u64) -> LaneProfile {
    LaneProfile { delay: us(100), rate_bits: Some(rate_bits), ..LaneProfile::default() }
}

pub(crate) fn joined(outputs: &[(u8, CircuitOutput)], node: u8) -> Option<GroupId> {
    outputs.iter().find_map(|(at, output)| match output {
        CircuitOutput::Established { group, .. } if *at == node => Some(*group),
        _ => None,
    })
}

impl Pair {
    pub(crate) fn new(cards: u8, card_bytes: usize, profile: &LaneProfile) -> Pair {
        Pair::in_network(SimNetwork::new(2, cards, card_bytes, profile, 7))
    }

    pub(crate) fn in_network(mut network: SimNetwork) -> Pair {
        let (now, network_paths) = (network.now, network.network_paths(1));
        network.nodes[0].dial(now, &network_paths, Some(node_key(1))).unwrap();
        network.pass(Duration::from_secs(1));
        let outputs = std::mem::take(&mut network.outputs);
        let groups = [0, 1].map(|node| joined(&outputs, node).unwrap());
        Pair { network, groups, outputs }
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.network.pass(span);
        self.outputs.append(&mut self.network.outputs);
    }

    pub(crate) fn open(&mut self, class: CircuitClass) -> CircuitId {
        self.network.nodes[0].open(self.groups[0], class).unwrap()
    }

    /// Returns the id at node 1 of a circuit that node 0 opened.
    pub(crate) fn far(&self, circuit: CircuitId) -> CircuitId {
        CircuitId { group: self.groups[1], number: circuit.number }
    }

    /// Transfers zeros at full speed for this long. Returns the number of bytes read, and the longest pause
    /// between reads.
    pub(crate) fn pump(&mut self, circuit: CircuitId, span: Duration) -> (u64, Duration) {
        let far = self.far(circuit);
        let (until, mut bytes, mut gap, mut last) =
            (self.network.now + span, 0, Duration::ZERO, self.network.now);
        while self.network.now < until {
            let mut zeros = Bytes::from_static(&[0; 1 << 16]);
            self.network.nodes[0].write(circuit, &mut zeros).unwrap();
            self.network.settle();
            self.network.step(until);
            self.outputs.append(&mut self.network.outputs);
            let before = bytes;
            while let Read::Data(read) = self.network.nodes[1].read(far) {
                bytes += read.len() as u64;
            }
            gap = gap.max(self.network.now.since(last));
            if bytes > before {
                last = self.network.now;
            }
        }
        (bytes, gap)
    }

    /// Sends a message and its echo; returns the elapsed time.
    pub(crate) fn echo(&mut self, circuit: CircuitId, bytes: usize) -> Duration {
        let (far, started) = (self.far(circuit), self.network.now);
        self.network.nodes[0].write(circuit, &mut vec![1; bytes].into()).unwrap();
        let (mut there, mut back) = (0, 0);
        while back < bytes {
            self.network.settle();
            self.network.step(self.network.now + us(500));
            self.outputs.append(&mut self.network.outputs);
            while let Read::Data(mut read) = self.network.nodes[1].read(far) {
                there += read.len();
                self.network.nodes[1].write(far, &mut read).unwrap();
            }
            while let Read::Data(read) = self.network.nodes[0].read(circuit) {
                back += read.len();
            }
            assert!(there <= bytes && back <= bytes);
            assert!(self.network.now.since(started) < Duration::from_secs(20));
        }
        self.network.now.since(started)
    }

    pub(crate) fn count(&self, is: impl Fn(&CircuitOutput) -> bool) -> usize {
        self.outputs.iter().filter(|(_, output)| is(output)).count()
    }
}

/// The start of simulated time.
pub(crate) const START: Time = Time(1_000_000);
