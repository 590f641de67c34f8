use super::*;
use crate::node::tests::world::signer;
use crate::record::tests::signed;
use proptest::prelude::*;

fn packet(about: About, parts: &[PartOf<'_>]) -> (Vec<u8>, Vec<bool>) {
    let (key, signer) = signer(1);
    let mut draft = Draft::new(key, 77, about);
    let put = parts.iter().map(|part| draft.put(part)).collect();
    (draft.finish(&signer).unwrap(), put)
}

#[test]
fn each_packet_reads_back() {
    let (own, other) = (signed(1, |_| {}), signed(2, |_| {}));
    let key = own.record.key;
    let abouts = [
        About::Announce,
        About::Ping { nonce: 1 },
        About::Ack { nonce: 2 },
        About::Favour { nonce: 3, target: key },
        About::Vouch { nonce: 4 },
        About::Pull { after: key },
        About::Table { more: true },
    ];
    for about in abouts {
        let parts = [
            PartOf::Record(Liveness::Alive, &own),
            PartOf::Claim(Liveness::Dead, key, 9),
            PartOf::Taken(true, &other),
        ];
        let (bytes, put) = packet(about, &parts);
        assert_eq!(put, [true; 3]);
        let read = Packet::read(&bytes).unwrap();
        assert!(read.is_genuine(&bytes));
        assert_eq!((read.sender, read.number, read.about), (key, 77, about));
        let expected = [
            Part::Record { state: Liveness::Alive, signed: own.clone() },
            Part::Claim { state: Liveness::Dead, key, incarnation: 9 },
            Part::Taken { settled: true, signed: other.clone() },
        ];
        assert_eq!(read.parts, expected);
    }
}

#[test]
fn a_full_packet_takes_no_more_and_stays_within_its_limit() {
    let own = signed(1, |_| {});
    let parts = vec![PartOf::Record(Liveness::Alive, &own); 12];
    let (bytes, put) = packet(About::Announce, &parts);
    assert!(bytes.len() <= PACKET_BYTES_MAX);
    let count = put.iter().filter(|put| **put).count();
    assert!((2..12).contains(&count), "{count}");
    assert_eq!(Packet::read(&bytes).unwrap().parts.len(), count);
}

/// The example of the design record.
#[test]
fn a_ping_looks_as_it_is_documented() {
    let (bytes, _) = packet(About::Ping { nonce: 0x0102 }, &[]);
    let (head, rest) = bytes.split_at(4 + 32);
    assert_eq!(head[..4], *b"WFN1");
    assert_eq!(rest[..17], [77, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(rest.len(), 17 + SIGNATURE_BYTES);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..1_300)) {
        let _any = Packet::read(&bytes);
        let _other = Packet::read(&[MAGIC.as_slice(), &bytes].concat());
    }

    #[test]
    fn a_damaged_packet_is_refused_or_not_genuine(at in 0_usize..1_000, bit in 0_u8..8) {
        let own = signed(1, |_| {});
        let (mut bytes, _) = packet(About::Ping { nonce: 5 }, &[PartOf::Record(Liveness::Alive, &own)]);
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(Packet::read(&bytes).is_none_or(|read| !read.is_genuine(&bytes)));
    }
}
