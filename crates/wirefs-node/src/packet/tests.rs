use super::*;
use crate::node::tests::network::signer;
use crate::record::tests::signed;
use proptest::prelude::*;

fn packet(message: Message, updates: &[UpdateRef<'_>]) -> (Vec<u8>, Vec<bool>) {
    let (key, signer) = signer(1);
    let mut draft = Draft::new(key, 77, message);
    let put = updates.iter().map(|update| draft.put(update)).collect();
    (draft.finish(&signer).unwrap(), put)
}

#[test]
fn each_packet_round_trips() {
    let (own, other) = (signed(1, |_| {}), signed(2, |_| {}));
    let key = own.record.key;
    let abouts = [
        Message::Announce,
        Message::Ping { nonce: 1 },
        Message::Ack { nonce: 2 },
        Message::PingRequest { nonce: 3, target: key },
        Message::IndirectAck { nonce: 4 },
        Message::Pull { after: key },
        Message::TablePage { more: true },
    ];
    for message in abouts {
        let updates = [
            UpdateRef::Record(Liveness::Alive, &own),
            UpdateRef::Claim(Liveness::Dead, key, 9),
            UpdateRef::NameConflict(true, &other),
        ];
        let (bytes, put) = packet(message, &updates);
        assert_eq!(put, [true; 3]);
        let read = Packet::read(&bytes).unwrap();
        assert!(read.is_genuine(&bytes));
        assert_eq!((read.sender, read.number, read.message), (key, 77, message));
        let expected = [
            Update::Record { state: Liveness::Alive, signed: own.clone() },
            Update::Claim { state: Liveness::Dead, key, incarnation: 9 },
            Update::NameConflict { settled: true, signed: other.clone() },
        ];
        assert_eq!(read.updates, expected);
    }
}

#[test]
fn full_packet_rejects_updates_and_stays_within_its_limit() {
    let own = signed(1, |_| {});
    let updates = vec![UpdateRef::Record(Liveness::Alive, &own); 12];
    let (bytes, put) = packet(Message::Announce, &updates);
    assert!(bytes.len() <= PACKET_BYTES_MAX);
    let count = put.iter().filter(|put| **put).count();
    assert!((2..12).contains(&count), "{count}");
    assert_eq!(Packet::read(&bytes).unwrap().updates.len(), count);
}

/// The example in the design document.
#[test]
fn ping_matches_the_documentation() {
    let (bytes, _) = packet(Message::Ping { nonce: 0x0102 }, &[]);
    let (head, rest) = bytes.split_at(4 + 32);
    assert_eq!(head[..4], *b"WFN1");
    assert_eq!(rest[..17], [77, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(rest.len(), 17 + SIGNATURE_BYTES);
}

proptest! {
    #[test]
    fn parsing_arbitrary_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1_300)) {
        let _any = Packet::read(&bytes);
        let _other = Packet::read(&[MAGIC.as_slice(), &bytes].concat());
    }

    #[test]
    fn damaged_packet_is_malformed_or_not_genuine(at in 0_usize..1_000, bit in 0_u8..8) {
        let own = signed(1, |_| {});
        let (mut bytes, _) = packet(Message::Ping { nonce: 5 }, &[UpdateRef::Record(Liveness::Alive, &own)]);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(Packet::read(&bytes).is_none_or(|read| !read.is_genuine(&bytes)));
    }
}
