use super::*;
use crate::packet::LaneId;
use crate::redundancy::Redundancy;

fn piece(number: u128, lane: u8, block_bytes: usize) -> Piece {
    Piece { id: BlockId::from(number), lane: LaneId(lane), block_bytes: block_bytes as u32 }
}

#[test]
fn block_is_whole_with_the_last_piece_that_was_needed() {
    let shape = Redundancy::Code { pieces: 3, extra: 2 }.shape().unwrap();
    let block = Bytes::from((0..1_000u32).map(|i| i as u8).collect::<Vec<_>>());
    let cut = pieces::Cut::new(shape, &block);
    let cut: Vec<Bytes> = (0..5).map(|lane| cut.piece(lane)).collect();
    let mut gather = Gather::new(shape);
    assert_eq!(gather.add(piece(1, 4, 1_000), &cut[4]), None);
    assert_eq!(gather.add(piece(1, 4, 1_000), &cut[4]), None, "the same once more");
    assert_eq!(gather.add(piece(1, 0, 1_000), &cut[0]), None);
    assert_eq!(gather.add(piece(1, 3, 1_000), &cut[3]), Some(block));
    assert_eq!(gather.bytes(), 0);
}

#[test]
fn memory_is_bounded_and_given_back() {
    let shape = Redundancy::Code { pieces: 4, extra: 1 }.shape().unwrap();
    let mut gather = Gather::new(shape);
    let body = vec![0; 1_000];
    for number in 0..10_000 {
        assert_eq!(gather.add(piece(number, 0, 4_000), &body), None);
        assert!(gather.bytes() <= GATHERED_BYTES_MAX);
    }
    (0..10_000).for_each(|number| gather.forget(BlockId::from(number)));
    assert_eq!(gather.bytes(), 0);
}

#[test]
fn piece_of_another_size_is_no_piece() {
    let shape = Redundancy::Code { pieces: 2, extra: 0 }.shape().unwrap();
    let mut gather = Gather::new(shape);
    assert_eq!(gather.add(piece(1, 0, 1_000), &[0; 400]), None);
    assert_eq!(gather.bytes(), 0);
}
