use super::*;
use crate::node::tests::world::signer;
use proptest::prelude::*;

pub(crate) fn record(number: u8) -> Record {
    let (key, _) = signer(number);
    Record {
        key,
        name: Name::new(&format!("linus{number}")).unwrap(),
        born: 1_000,
        incarnation: 1_000,
        edition: 3,
        leaving: false,
        port: 6440,
        addresses: vec![[10, 0, 0, number].into(), "fe80::1".parse().unwrap()],
        exports: vec![Export { name: Name::new("share").unwrap(), read_only: true, acts_for_callers: false }],
        load_percent: 150,
        free_bytes: 1 << 40,
        all_bytes: 1 << 41,
        cards: vec![card(number, 0)],
    }
}

/// The card of a node in network `network`.
fn card(node: u8, network: u8) -> EtherCard {
    EtherCard { hardware: [2, 0, 0, 0, network, node], network: [10, 0, network, 0].into(), prefix: 24 }
}

pub(crate) fn signed(number: u8, change: impl FnOnce(&mut Record)) -> SignedRecord {
    let mut record = record(number);
    change(&mut record);
    record.sign(&signer(number).1).unwrap()
}

#[test]
fn a_record_reads_back_and_its_signature_holds() {
    let signed = signed(1, |_| {});
    let read = SignedRecord::read(&signed.bytes).unwrap();
    assert_eq!(read, signed);
    assert!(read.is_genuine());
}

#[test]
fn the_largest_record_fits_its_limit() {
    let address = "2001:db8::1".parse().unwrap();
    let name = Name::new(&"x".repeat(crate::limits::NAME_BYTES_MAX)).unwrap();
    let export = Export { name: name.clone(), read_only: true, acts_for_callers: true };
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
fn a_record_that_another_signed_or_changed_is_not_genuine() {
    let foreign = record(1).sign(&signer(2).1).unwrap();
    assert!(!foreign.is_genuine());
    let mut bytes = signed(1, |_| {}).bytes;
    // A byte of the card's hardware address.
    let at = bytes.len() - SIGNATURE_BYTES - 9;
    bytes[at] ^= 1;
    assert!(!SignedRecord::read(&bytes).unwrap().is_genuine());
}

/// A card ends a record: 1, 02 00 00 00 00 01, 10.0.0.0, 24.
#[test]
fn cards_are_said_after_all_else_and_only_where_there_are_some() {
    let with = signed(1, |_| {}).bytes;
    let without = signed(1, |record| record.cards.clear()).bytes;
    assert_eq!(with.len(), without.len() + 12);
    let told = &with[with.len() - SIGNATURE_BYTES - 12..with.len() - SIGNATURE_BYTES];
    assert_eq!(told, [1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 0, 24]);
    assert!(SignedRecord::read(&without).unwrap().record.cards.is_empty());
}

#[test]
fn each_card_is_paired_with_one_of_its_own_network() {
    let ours = [card(1, 0), card(1, 1), card(1, 1), card(1, 7)];
    let theirs = [card(2, 1), card(2, 0), card(3, 1), card(2, 9)];
    let pairs: Vec<(usize, [u8; 6])> =
        pairs(&ours, &theirs).into_iter().map(|(at, card)| (at, card.hardware)).collect();
    assert_eq!(pairs, [(0, theirs[1].hardware), (1, theirs[0].hardware), (2, theirs[2].hardware)]);
    assert!(super::pairs(&ours[3..], &theirs).is_empty());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _any = SignedRecord::read(&bytes);
    }

    #[test]
    fn a_damaged_record_is_refused_or_not_genuine(at in 0_usize..200, bit in 0_u8..8) {
        let signed = signed(1, |_| {});
        let mut bytes = signed.bytes.clone();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(SignedRecord::read(&bytes).is_none_or(|read| !read.is_genuine()));
    }
}
