//! Two nodes that joined, and what tests ask of them.

use std::time::Duration;

use bytes::Bytes;
use wirefs_circuit::{CircuitId, Class, GroupId, Output, Read, Time};
use wirefs_lab::LaneProfile;

use crate::world::{World, node_key, us};

pub(crate) struct Pair {
    pub(crate) world: World,
    /// The group at the dialler, node 0, and at the dialled, node 1.
    pub(crate) groups: [GroupId; 2],
    pub(crate) told: Vec<(u8, Output)>,
}

/// A lane of Ethernet: 100 µs, so many bits a second.
pub(crate) fn wire(rate_bits: u64) -> LaneProfile {
    LaneProfile { delay: us(100), rate_bits: Some(rate_bits), ..LaneProfile::default() }
}

pub(crate) fn joined(outputs: &[(u8, Output)], node: u8) -> Option<GroupId> {
    outputs.iter().find_map(|(at, output)| match output {
        Output::Joined { group, .. } if *at == node => Some(*group),
        _ => None,
    })
}

impl Pair {
    pub(crate) fn new(cards: u8, card_bytes: usize, profile: &LaneProfile) -> Pair {
        Pair::in_world(World::new(2, cards, card_bytes, profile, 7))
    }

    pub(crate) fn in_world(mut world: World) -> Pair {
        let (now, ways) = (world.now, world.ways(1));
        world.nodes[0].dial(now, &ways, Some(node_key(1))).unwrap();
        world.pass(Duration::from_secs(1));
        let told = std::mem::take(&mut world.outputs);
        let groups = [0, 1].map(|node| joined(&told, node).unwrap());
        Pair { world, groups, told }
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.world.pass(span);
        self.told.append(&mut self.world.outputs);
    }

    pub(crate) fn open(&mut self, class: Class) -> CircuitId {
        self.world.nodes[0].open(self.groups[0], class).unwrap()
    }

    /// What the other node calls a circuit that node 0 opened.
    pub(crate) fn far(&self, circuit: CircuitId) -> CircuitId {
        CircuitId { group: self.groups[1], number: circuit.number }
    }

    /// Writes zeros as fast as they are taken and reads them at once, until this much time passed. Returns how many bytes
    /// were read, and the longest time in which none were.
    pub(crate) fn pump(&mut self, circuit: CircuitId, span: Duration) -> (u64, Duration) {
        let far = self.far(circuit);
        let (until, mut bytes, mut gap, mut last) =
            (self.world.now + span, 0, Duration::ZERO, self.world.now);
        while self.world.now < until {
            let mut zeros = Bytes::from_static(&[0; 1 << 16]);
            self.world.nodes[0].write(circuit, &mut zeros).unwrap();
            self.world.settle();
            self.world.step(until);
            self.told.append(&mut self.world.outputs);
            let before = bytes;
            while let Read::Data(read) = self.world.nodes[1].read(far) {
                bytes += read.len() as u64;
            }
            gap = gap.max(self.world.now.since(last));
            if bytes > before {
                last = self.world.now;
            }
        }
        (bytes, gap)
    }

    /// Sends a message and has it sent back; returns how long that took.
    pub(crate) fn echo(&mut self, circuit: CircuitId, bytes: usize) -> Duration {
        let (far, started) = (self.far(circuit), self.world.now);
        self.world.nodes[0].write(circuit, &mut vec![1; bytes].into()).unwrap();
        let (mut there, mut back) = (0, 0);
        while back < bytes {
            self.world.settle();
            self.world.step(self.world.now + us(500));
            self.told.append(&mut self.world.outputs);
            while let Read::Data(mut read) = self.world.nodes[1].read(far) {
                there += read.len();
                self.world.nodes[1].write(far, &mut read).unwrap();
            }
            while let Read::Data(read) = self.world.nodes[0].read(circuit) {
                back += read.len();
            }
            assert!(there <= bytes && back <= bytes);
            assert!(self.world.now.since(started) < Duration::from_secs(20));
        }
        self.world.now.since(started)
    }

    pub(crate) fn count(&self, is: impl Fn(&Output) -> bool) -> usize {
        self.told.iter().filter(|(_, output)| is(output)).count()
    }
}

/// The moment at which worlds begin.
pub(crate) const START: Time = Time(1_000_000);
