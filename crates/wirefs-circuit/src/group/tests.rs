//! A peer that has proved its key and then does what it likes.

use proptest::prelude::*;
use ring::hkdf::{HKDF_SHA256, Salt};

use super::*;
use crate::address::{Address, CardId};
use crate::limits::{CREDIT_FIRST, CREDIT_POOL, PACKET_BYTES_PLAIN};
use crate::seal::{PathKeys, TAG_BYTES};
use crate::wire::part::{CLOSE, FREE, PING, RESET};
use crate::wire::writer::Writer;

const HERE: Address = Address([1; 6]);
const THERE: Address = Address([2; 6]);
const WAY: Way = Way { card: CardId(0), remote: THERE };
const CARDS: [Card; 1] = [Card { address: HERE, packet_bytes: PACKET_BYTES_PLAIN }];
const REMOTE: GroupId = GroupId { slot: 0, generation: 0 };

fn secrets() -> Secrets {
    let agreed = Salt::new(HKDF_SHA256, b"test").extract(b"secret");
    Secrets {
        by_dialler: Secret::of(&agreed, b"dialler").unwrap(),
        by_dialled: Secret::of(&agreed, b"dialled").unwrap(),
    }
}

/// A group of the dialled side, and what its peer needs to seal packets for it.
struct Victim {
    group: Group,
    keys: PathKeys,
    counter: u64,
    now: Time,
}

impl Victim {
    fn new() -> Victim {
        let now = Time(1_000);
        let group = Group::dialled(now, NodeKey([0; 32]), REMOTE, secrets(), WAY, 0, &CARDS);
        Victim { group, keys: secrets().by_dialler.path(0), counter: 0, now }
    }

    /// Has the peer send these parts, well sealed; then the group sends what it wants, and its user reads.
    fn suffer(&mut self, content: &[u8]) {
        let mut packet = [&[0x80, 0, 0, 0][..], &(self.counter as u32).to_le_bytes(), content].concat();
        packet.resize(packet.len() + TAG_BYTES, 0);
        assert!(self.keys.seal(self.counter, THERE, HERE, &mut packet));
        self.counter += 1;
        self.now = self.now + Duration::from_micros(100);
        let _ = self.group.receive(self.now, 0, WAY, &mut packet, &CARDS);
        let mut buffer = [0; PACKET_BYTES_PLAIN];
        let packets = std::iter::from_fn(|| self.group.poll_packet(self.now, CardId(0), &mut buffer, &CARDS));
        assert!(packets.take(10_000).count() < 10_000, "it never stops");
        self.group.tick(self.now);
    }

    fn faults(&self) -> bool {
        matches!(self.group.lost(), Some(Lost::Fault(_)))
    }
}

fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut room = [0; 1_400];
    let mut writer = Writer::new(&mut room);
    write(&mut writer);
    let bytes = writer.bytes();
    room[..bytes].to_vec()
}

/// A part that could be right: small numbers, so that they meet what there is.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let number =
        (0u32..4, 0u32..3, any::<bool>(), any::<bool>()).prop_map(|(slot, generation, opener, bulk)| {
            Number(u32::from(opener) << 31 | u32::from(bulk) << 30 | slot << 16 | generation)
        });
    let offset = prop_oneof![0u64..2_000, Just(CREDIT_FIRST - 1), 0u64..1 << 48];
    (number, offset, 0usize..1_000, any::<bool>(), 0u8..8).prop_map(
        |(number, offset, bytes, is_last, kind)| {
            written(|to| match kind {
                0 => to.mark(PING),
                1 => to.notice(RESET, number),
                2 => to.notice(FREE, number),
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
    fn whatever_a_peer_sends_is_borne_and_bounded(
        packets in proptest::collection::vec(prop_oneof![
            4 => part(),
            1 => proptest::collection::vec(any::<u8>(), 0..100),
        ], 1..60),
    ) {
        let mut victim = Victim::new();
        let own = victim.group.open(Class::Bulk).unwrap();
        victim.group.circuits.write(own, &mut vec![5; 100_000].into()).unwrap();
        for content in packets {
            victim.suffer(&content);
            prop_assert!(victim.group.held_bytes() <= CREDIT_POOL + 16 * CREDIT_FIRST + 1_000_000);
            let numbers: Vec<Number> = victim.group.circuits.events.drain(..).filter_map(|event| match event {
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
fn nonsense_under_a_good_seal_ends_the_group_and_is_blamed() {
    let lie = written(|to| to.ack(0, Duration::ZERO, [(1 << 40, 1 << 40)]));
    let path_that_is_not = written(|to| to.ack(7, Duration::ZERO, [(0, 0)]));
    let too_much = written(|to| to.data(Number(0), CREDIT_FIRST, 1, false, |room| room.fill(1)));
    let no_circuit = written(|to| to.notice(RESET, Number(0x0FFF_0000)));
    for content in [vec![0x99], vec![3, 1], lie, path_that_is_not, too_much, no_circuit] {
        let mut victim = Victim::new();
        victim.suffer(&[PING]);
        assert!(!victim.faults());
        victim.suffer(&content);
        assert!(victim.faults(), "{content:?}");
        assert_eq!(victim.group.open(Class::Bulk), None);
    }
}

#[test]
fn flood_of_resets_is_blamed_and_bounded() {
    // Of places that were never used, each generation in turn: each has to be freed.
    let mut victim = Victim::new();
    let mut generations = [0u16; 64];
    for round in 0..2_000 {
        let mut room = [0; 1_400];
        let mut writer = Writer::new(&mut room);
        while writer.left() >= 5 {
            let slot = (round * 7 + writer.bytes()) % generations.len();
            let number = Number::new(Side::Dialler, Class::Bulk, slot, generations[slot]);
            generations[slot] = generations[slot].wrapping_add(1);
            writer.notice(RESET, number);
        }
        let bytes = writer.bytes();
        victim.suffer(&room[..bytes]);
        assert!(victim.group.circuits.notices() <= crate::limits::NOTICES_MAX + 300);
        if victim.faults() {
            assert_eq!(victim.group.lost(), Some(Lost::Fault(crate::output::PeerFault::Flood)));
            return;
        }
    }
    panic!("nobody was blamed");
}
