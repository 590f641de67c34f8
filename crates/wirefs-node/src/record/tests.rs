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
    }
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
    });
    assert!(signed.bytes.len() <= RECORD_BYTES_MAX, "{}", signed.bytes.len());
    assert_eq!(SignedRecord::read(&signed.bytes), Some(signed));
}

#[test]
fn a_record_that_another_signed_or_changed_is_not_genuine() {
    let foreign = record(1).sign(&signer(2).1).unwrap();
    assert!(!foreign.is_genuine());
    let mut bytes = signed(1, |_| {}).bytes;
    // The last byte of the free space.
    let at = bytes.len() - SIGNATURE_BYTES - 9;
    bytes[at] ^= 1;
    assert!(!SignedRecord::read(&bytes).unwrap().is_genuine());
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
