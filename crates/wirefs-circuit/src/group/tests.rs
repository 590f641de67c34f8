//! An authenticated but hostile peer.

use proptest::prelude::*;
use ring::hkdf::{HKDF_SHA256, Salt};

use super::*;
use crate::address::{CardAddress, CardId};
use crate::limits::{CREDIT_POOL, INITIAL_CREDIT, PACKET_BYTES_BASE};
use crate::seal::{PathKeys, TAG_BYTES};
use crate::wire::part::{CLOSE, FREE, PING, RESET};
use crate::wire::writer::Writer;

const HERE: CardAddress = CardAddress([1; 6]);
const THERE: CardAddress = CardAddress([2; 6]);
const PATH: NetworkPath = NetworkPath { card: CardId(0), remote: THERE };
const CARDS: [Card; 1] = [Card { address: HERE, packet_bytes: PACKET_BYTES_BASE }];
const REMOTE: GroupId = GroupId { slot: 0, generation: 0 };

fn secrets() -> TrafficSecrets {
    let agreed = Salt::new(HKDF_SHA256, b"test").extract(b"secret");
    TrafficSecrets {
        initiator: TrafficSecret::derive(&agreed, b"dialler").unwrap(),
        responder: TrafficSecret::derive(&agreed, b"dialled").unwrap(),
    }
}

/// A group of the responder, and the keys of its peer.
struct Victim {
    group: Group,
    keys: PathKeys,
    packet_number: u64,
    now: Time,
}

impl Victim {
    fn new() -> Victim {
        let now = Time(1_000);
        let group = Group::responder(now, PeerKey([0; 32]), REMOTE, secrets(), PATH, 0, &CARDS);
        Victim { group, keys: secrets().initiator.path(0), packet_number: 0, now }
    }

    /// Delivers these parts in an authentic packet, then lets the group send.
    fn deliver(&mut self, content: &[u8]) {
        let mut packet = [&[0x80, 0, 0, 0][..], &(self.packet_number as u32).to_le_bytes(), content].concat();
        packet.resize(packet.len() + TAG_BYTES, 0);
        assert!(self.keys.seal(self.packet_number, THERE, HERE, &mut packet));
        self.packet_number += 1;
        self.now = self.now + Duration::from_micros(100);
        let _ = self.group.receive(self.now, 0, PATH, &mut packet, &CARDS);
        let mut buffer = [0; PACKET_BYTES_BASE];
        let packets = std::iter::from_fn(|| self.group.poll_packet(self.now, CardId(0), &mut buffer, &CARDS));
        assert!(packets.take(10_000).count() < 10_000, "an endless loop");
        self.group.tick(self.now);
    }

    fn faults(&self) -> bool {
        matches!(self.group.close_reason(), Some(CloseReason::Fault(_)))
    }
}

fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut room = [0; 1_400];
    let mut writer = Writer::new(&mut room);
    write(&mut writer);
    let bytes = writer.bytes();
    room[..bytes].to_vec()
}

/// A plausible part: small numbers, which match existing circuits.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let number =
        (0u32..4, 0u32..3, any::<bool>(), any::<bool>()).prop_map(|(slot, generation, opener, bulk)| {
            CircuitNumber(u32::from(opener) << 31 | u32::from(bulk) << 30 | slot << 16 | generation)
        });
    let offset = prop_oneof![0u64..2_000, Just(INITIAL_CREDIT - 1), 0u64..1 << 48];
    (number, offset, 0usize..1_000, any::<bool>(), 0u8..8).prop_map(
        |(number, offset, bytes, is_last, kind)| {
            written(|to| match kind {
                0 => to.mark(PING),
                1 => to.control(RESET, number),
                2 => to.control(FREE, number),
                3 => to.credit(number, offset),
                4 => to.ack(0, Duration::ZERO, [(offset, offset + bytes as u64 % 7)]),
                5 if bytes < 20 => to.mark(CLOSE),
                _ => to.data(number, offset, bytes, is_last, |room| room.fill(3)),
            })
        },
    )
}

proptest! {
    #[test]
    fn arbitrary_packets_of_a_peer_are_survived_within_limits(
        packets in proptest::collection::vec(prop_oneof![
            4 => part(),
            1 => proptest::collection::vec(any::<u8>(), 0..100),
        ], 1..60),
    ) {
        let mut victim = Victim::new();
        let own = victim.group.open(CircuitClass::Bulk).unwrap();
        victim.group.circuits.write(own, &mut vec![5; 100_000].into()).unwrap();
        for content in packets {
            victim.deliver(&content);
            prop_assert!(victim.group.held_bytes() <= CREDIT_POOL + 16 * INITIAL_CREDIT + 1_000_000);
            let numbers: Vec<CircuitNumber> = victim.group.circuits.events.drain(..).filter_map(|event| match event {
                crate::circuits::Event::Readable(number) => Some(number),
                _ => None,
            }).collect();
            numbers.into_iter().for_each(|number| {
                victim.group.circuits.read(number);
            });
        }
        let _ = victim.group.deadline();
    }
}

#[test]
fn malformed_authentic_packet_closes_the_group_with_a_fault() {
    let lie = written(|to| to.ack(0, Duration::ZERO, [(1 << 40, 1 << 40)]));
    let path_that_is_not = written(|to| to.ack(7, Duration::ZERO, [(0, 0)]));
    let too_much = written(|to| to.data(CircuitNumber(0), INITIAL_CREDIT, 1, false, |room| room.fill(1)));
    let no_circuit = written(|to| to.control(RESET, CircuitNumber(0x0FFF_0000)));
    for content in [vec![0x99], vec![3, 1], lie, path_that_is_not, too_much, no_circuit] {
        let mut victim = Victim::new();
        victim.deliver(&[PING]);
        assert!(!victim.faults());
        victim.deliver(&content);
        assert!(victim.faults(), "{content:?}");
        assert_eq!(victim.group.open(CircuitClass::Bulk), None);
    }
}

#[test]
fn flood_of_resets_is_a_fault_and_bounded() {
    // Resets of unused slots, each generation in turn: each must be freed.
    let mut victim = Victim::new();
    let mut generations = [0u16; 64];
    for round in 0..2_000 {
        let mut room = [0; 1_400];
        let mut writer = Writer::new(&mut room);
        while writer.left() >= 5 {
            let slot = (round * 7 + writer.bytes()) % generations.len();
            let number = CircuitNumber::new(Side::Initiator, CircuitClass::Bulk, slot, generations[slot]);
            generations[slot] = generations[slot].wrapping_add(1);
            writer.control(RESET, number);
        }
        let bytes = writer.bytes();
        victim.deliver(&room[..bytes]);
        assert!(victim.group.circuits.control_parts() <= crate::limits::CONTROL_PARTS_MAX + 300);
        if victim.faults() {
            assert_eq!(
                victim.group.close_reason(),
                Some(CloseReason::Fault(crate::output::CircuitFault::Flood))
            );
            return;
        }
    }
    panic!("no fault was reported");
}
