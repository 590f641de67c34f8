use super::*;
use crate::node::tests::network::signer;
use proptest::prelude::*;

pub(crate) fn record(number: u8) -> NodeRecord {
    let (key, _) = signer(number);
    NodeRecord {
        key,
        name: NodeName::new(&format!("linus{number}")).unwrap(),
        born: 1_000,
        incarnation: 1_000,
        edition: 3,
        leaving: false,
        port: 6440,
        addresses: vec![[10, 0, 0, number].into(), "fe80::1".parse().unwrap()],
        exports: vec![NodeExport {
            name: NodeName::new("share").unwrap(),
            read_only: true,
            acts_for_callers: false,
        }],
        load_percent: 150,
        free_bytes: 1 << 40,
        all_bytes: 1 << 41,
        cards: vec![card(number, 0)],
    }
}

/// Returns the card of a node in network number `network`.
fn card(node: u8, network: u8) -> EtherCard {
    EtherCard { hardware: [2, 0, 0, 0, network, node], network: [10, 0, network, 0].into(), prefix: 24 }
}

pub(crate) fn signed(number: u8, change: impl FnOnce(&mut NodeRecord)) -> SignedRecord {
    let mut record = record(number);
    change(&mut record);
    record.sign(&signer(number).1).unwrap()
}

#[test]
fn record_round_trips_with_a_valid_signature() {
    let signed = signed(1, |_| {});
    let read = SignedRecord::read(&signed.bytes).unwrap();
    assert_eq!(read, signed);
    assert!(read.is_genuine());
}

#[test]
fn largest_record_fits_the_limit() {
    let address = "2001:db8::1".parse().unwrap();
    let name = NodeName::new(&"x".repeat(crate::limits::NAME_BYTES_MAX)).unwrap();
    let export = NodeExport { name: name.clone(), read_only: true, acts_for_callers: true };
    let signed = signed(1, |record| {
        record.name = name;
        record.addresses = vec![address; ADDRESSES_MAX];
        record.exports = vec![export; EXPORTS_MAX];
        record.cards = vec![card(1, 1); CARDS_MAX];
    });
    assert!(signed.bytes.len() <= RECORD_BYTES_MAX, "{}", signed.bytes.len());
    assert_eq!(SignedRecord::read(&signed.bytes), Some(signed));
}

#[test]
fn record_signed_or_changed_by_another_node_is_not_genuine() {
    let foreign = record(1).sign(&signer(2).1).unwrap();
    assert!(!foreign.is_genuine());
    let mut bytes = signed(1, |_| {}).bytes;
    // A byte of the card's hardware address.
    let at = bytes.len() - SIGNATURE_BYTES - 9;
    bytes[at] ^= 1;
    assert!(!SignedRecord::read(&bytes).unwrap().is_genuine());
}

/// A card ends a record: count 1, 02 00 00 00 00 01, 10.0.0.0, 24.
#[test]
fn cards_are_encoded_last_and_only_if_present() {
    let with = signed(1, |_| {}).bytes;
    let without = signed(1, |record| record.cards.clear()).bytes;
    assert_eq!(with.len(), without.len() + 12);
    let record_send = &with[with.len() - SIGNATURE_BYTES - 12..with.len() - SIGNATURE_BYTES];
    assert_eq!(record_send, [1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 0, 24]);
    assert!(SignedRecord::read(&without).unwrap().record.cards.is_empty());
}

#[test]
fn each_card_is_paired_with_one_of_its_own_network() {
    let ours = [card(1, 0), card(1, 1), card(1, 1), card(1, 7)];
    let theirs = [card(2, 1), card(2, 0), card(3, 1), card(2, 9)];
    let pair_cards: Vec<(usize, [u8; 6])> =
        pair_cards(&ours, &theirs).into_iter().map(|(at, card)| (at, card.hardware)).collect();
    assert_eq!(pair_cards, [(0, theirs[1].hardware), (1, theirs[0].hardware), (2, theirs[2].hardware)]);
    assert!(super::pair_cards(&ours[3..], &theirs).is_empty());
}

proptest! {
    #[test]
    fn parsing_arbitrary_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _any = SignedRecord::read(&bytes);
    }

    #[test]
    fn damaged_record_is_malformed_or_not_genuine(at in 0_usize..200, bit in 0_u8..8) {
        let signed = signed(1, |_| {});
        let mut bytes = signed.bytes.clone();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(SignedRecord::read(&bytes).is_none_or(|read| !read.is_genuine()));
    }
}
