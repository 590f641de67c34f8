use proptest::prelude::*;

use super::*;
use crate::address::{CircuitClass, Side};
use crate::wire::writer::Writer;

fn number() -> CircuitNumber {
    CircuitNumber::new(Side::Responder, CircuitClass::Bulk, 0x123, 0x4567)
}

fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut room = [0; 200];
    let mut writer = Writer::new(&mut room);
    write(&mut writer);
    let bytes = writer.bytes();
    room[..bytes].to_vec()
}

fn only(bytes: &[u8]) -> Part<'_> {
    let mut parts = Parts::new(bytes);
    let part = parts.next().unwrap().unwrap();
    assert!(parts.next().is_none());
    part
}

#[test]
fn parts_have_golden_bytes_and_round_trip() {
    let number_bytes = [0x67, 0x45, 0x23, 0xC1];
    let data = written(|to| to.data(number(), 0x0102_0304_0506, 2, true, |room| room.copy_from_slice(b"ab")));
    let golden = [&[4], &number_bytes[..], &[6, 5, 4, 3, 2, 1], &[2, 0], b"ab"].concat();
    assert_eq!(data, golden);
    let part = Part::Data { number: number(), offset: 0x0102_0304_0506, bytes: b"ab", is_last: true };
    assert_eq!(only(&data), part);
    let credit = written(|to| to.credit(number(), 9));
    assert_eq!(credit, [&[5], &number_bytes[..], &[9, 0, 0, 0, 0, 0]].concat());
    assert_eq!(only(&credit), Part::Credit { number: number(), limit: 9 });
    assert_eq!(only(&written(|to| to.control(RESET, number()))), Part::Reset(number()));
    assert_eq!(only(&written(|to| to.control(FREE, number()))), Part::Free(number()));
    assert_eq!(only(&[PING]), Part::Ping);
    assert_eq!(only(&[0, 0, CLOSE, 0]), Part::Close);
}

#[test]
fn ack_part_encodes_ranges_and_gaps() {
    let ranges = [(20, 22), (10, 18), (0, 3)];
    let bytes = written(|to| to.ack(3, Duration::from_micros(80), ranges));
    assert_eq!(bytes, [2, 3, 22, 0, 0, 0, 0, 0, 10, 0, 3, 0, 2, 1, 0, 9, 0, 6, 0, 4, 0]);
    let Part::Ack(ack) = only(&bytes) else { panic!("{bytes:?}") };
    assert_eq!((ack.path, ack.largest, ack.ack_delay), (3, 22, Duration::from_micros(80)));
    assert_eq!(ack.ranges().collect::<Vec<_>>(), ranges);
}

#[test]
fn ack_ranges_below_zero_are_dropped() {
    for bytes in [
        [2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0].as_slice(),
        &[2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 1, 0, 1, 0],
        &[2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0],
    ] {
        let Part::Ack(ack) = only(bytes) else { panic!("{bytes:?}") };
        assert!(ack.ranges().count() <= 1);
        assert!(ack.ranges().all(|run| run == (0, 3)), "{bytes:?}");
    }
}

#[test]
fn truncated_or_unknown_parts_are_malformed() {
    let whole = written(|to| {
        to.data(number(), 5, 3, false, |room| room.fill(7));
        to.ack(0, Duration::ZERO, [(5, 9), (1, 2)]);
    });
    assert_eq!(Parts::new(&whole).count(), 2);
    for cut in (1..whole.len()).filter(|cut| *cut != 16) {
        assert!(Parts::new(&whole[..cut]).any(|part| part.is_err()), "{cut}");
    }
    assert_eq!(Parts::new(&[9, 0, 0]).collect::<Vec<_>>(), [Err(Malformed)]);
}

proptest! {
    #[test]
    fn arbitrary_bytes_decode_safely(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for part in Parts::new(&bytes).flatten() {
            if let Part::Ack(ack) = part {
                prop_assert!(ack.ranges().all(|(first, last)| first <= last && last <= ack.largest));
            }
        }
    }
}
