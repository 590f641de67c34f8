use proptest::prelude::*;

use super::*;
use crate::redundancy::Redundancy;

fn all(shape: Shape, block: &Bytes) -> Vec<Bytes> {
    let data = BlockEncoder::new(shape, block);
    (0..shape.lanes).map(|lane| data.piece(lane)).collect()
}

#[test]
fn copies_share_the_memory_of_the_block() {
    let shape = Redundancy::Copies(3).shape().unwrap();
    let block = Bytes::from(vec![7; 1_000]);
    let pieces = all(shape, &block);
    assert!(pieces.iter().all(|piece| piece.as_ptr() == block.as_ptr() && piece.len() == 1_000));
}

#[test]
fn first_pieces_are_data_and_the_rest_parity() {
    let shape = Redundancy::Code { pieces: 2, extra: 2 }.shape().unwrap();
    let pieces = all(shape, &Bytes::from_static(b"\x01\x00\x00\x01"));
    assert_eq!(pieces[..2], [&b"\x01\x00"[..], b"\x00\x01"]);
    // The factors are the inverses of 128, 129 and of 129, 128.
    assert_eq!([pieces[2][0], pieces[2][1]], [field::invert(128), field::invert(129)]);
    assert_eq!([pieces[3][0], pieces[3][1]], [field::invert(129), field::invert(128)]);
    assert_eq!([pieces[2][0], pieces[2][1]], [27, 84]);
}

#[test]
fn too_few_pieces_restore_no_block() {
    let shape = Redundancy::Code { pieces: 3, extra: 2 }.shape().unwrap();
    let pieces = all(shape, &Bytes::from_static(b"some block"));
    let here: Vec<_> =
        pieces.into_iter().enumerate().map(|(lane, piece)| (lane < 2).then_some(piece)).collect();
    assert_eq!(reassemble(shape, 10, &here), None);
}

#[test]
fn every_four_of_eight_pieces_restore_the_block() {
    let shape = Redundancy::Code { pieces: 4, extra: 4 }.shape().unwrap();
    let block = Bytes::from((0..61).collect::<Vec<u8>>());
    let pieces = all(shape, &block);
    for choice in (0..256u32).filter(|choice| choice.count_ones() == 4) {
        let here: Vec<_> = pieces
            .iter()
            .enumerate()
            .map(|(lane, piece)| (choice >> lane & 1 == 1).then(|| piece.clone()))
            .collect();
        assert_eq!(reassemble(shape, 61, &here).as_ref(), Some(&block), "{choice:b}");
    }
}

proptest! {
    #[test]
    fn any_sufficient_pieces_restore_the_block(
        block in proptest::collection::vec(any::<u8>(), 0..3_000),
        pieces in 1u8..17,
        extra in 0u8..16,
        order in any::<u64>(),
    ) {
        let shape = Redundancy::Code { pieces, extra }.shape().unwrap();
        let block = Bytes::from(block);
        let all = all(shape, &block);
        prop_assert!(all.iter().all(|piece| piece.len() == shape.piece_bytes(block.len())));
        let mut kept: Vec<usize> = (0..shape.lanes).collect();
        kept.sort_by_key(|&lane| (lane as u64 + 1).wrapping_mul(order | 1).rotate_left(17));
        kept.truncate(shape.needed);
        let here: Vec<_> =
            all.into_iter().enumerate().map(|(lane, piece)| kept.contains(&lane).then_some(piece)).collect();
        prop_assert_eq!(reassemble(shape, block.len(), &here), Some(block));
    }
}
