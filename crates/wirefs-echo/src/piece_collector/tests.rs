use super::*;
use crate::packet::LaneId;
use crate::redundancy::Redundancy;

fn piece(number: u128, lane: u8, block_bytes: usize) -> Piece {
    Piece { id: EchoBlockId::from(number), lane: LaneId(lane), block_bytes: block_bytes as u32 }
}

#[test]
fn block_is_complete_with_the_last_needed_piece() {
    let shape = Redundancy::Code { pieces: 3, extra: 2 }.shape().unwrap();
    let block = Bytes::from((0..1_000u32).map(|i| i as u8).collect::<Vec<_>>());
    let encoder = pieces::BlockEncoder::new(shape, &block);
    let encoder: Vec<Bytes> = (0..5).map(|lane| encoder.piece(lane)).collect();
    let mut collector = PieceCollector::new(shape);
    assert_eq!(collector.add(piece(1, 4, 1_000), &encoder[4]), None);
    assert_eq!(collector.add(piece(1, 4, 1_000), &encoder[4]), None, "the same piece again");
    assert_eq!(collector.add(piece(1, 0, 1_000), &encoder[0]), None);
    assert_eq!(collector.add(piece(1, 3, 1_000), &encoder[3]), Some(block));
    assert_eq!(collector.bytes(), 0);
}

#[test]
fn memory_is_bounded_and_freed() {
    let shape = Redundancy::Code { pieces: 4, extra: 1 }.shape().unwrap();
    let mut collector = PieceCollector::new(shape);
    let body = vec![0; 1_000];
    for number in 0..10_000 {
        assert_eq!(collector.add(piece(number, 0, 4_000), &body), None);
        assert!(collector.bytes() <= COLLECTED_BYTES_MAX);
    }
    (0..10_000).for_each(|number| collector.discard(EchoBlockId::from(number)));
    assert_eq!(collector.bytes(), 0);
}

#[test]
fn piece_of_another_size_is_ignored() {
    let shape = Redundancy::Code { pieces: 2, extra: 0 }.shape().unwrap();
    let mut collector = PieceCollector::new(shape);
    assert_eq!(collector.add(piece(1, 0, 1_000), &[0; 400]), None);
    assert_eq!(collector.bytes(), 0);
}
