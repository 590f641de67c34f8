use super::*;
use crate::together::message::{Body, Header, Latest};

fn post(node: u16, life: u64) -> Post {
    let address = [10, 0, 0, node as u8];
    Post::new(Key([7; 32]), NodeId(node), Life(life), address, 1_472).unwrap()
}

/// Both say hello until nothing more is to be said.
fn meet(one: &mut Post, other: &mut Post) -> Vec<Letter> {
    let mut said = one.hello();
    let mut heard = Vec::new();
    for turn in 0.. {
        let Some(mut packet) = said else { break };
        assert!(turn < 6, "it ends");
        let reader = if turn % 2 == 0 { &mut *other } else { &mut *one };
        let letter = reader.open(&mut packet).unwrap();
        said = match &letter {
            Letter::Hello { reply, .. } => reply.clone(),
            Letter::Message { .. } | Letter::Block { .. } => panic!("{letter:?}"),
        };
        heard.push(letter);
    }
    heard
}

fn message(ids: u128) -> Message {
    let made = Some((1..=ids).map(BlockId::from).collect());
    let body = Body::Root { root: BlockId::from(7), made, freed: Vec::new(), latest: Latest::new() };
    Message { header: Header::default(), body }
}

#[test]
fn nodes_that_said_hello_understand_each_other_and_nobody_else_does() {
    let (mut one, mut two, mut three) = (post(1, 11), post(2, 22), post(3, 33));
    assert_eq!(one.message(NodeId(2), &message(1)), Vec::<Vec<u8>>::new(), "its life is not known");
    meet(&mut one, &mut two);
    assert_eq!((one.address(NodeId(2)), two.address(NodeId(1))), (Some([10, 0, 0, 2]), Some([10, 0, 0, 1])));
    for ids in [0, 1, 500, 2_000] {
        let packets = one.message(NodeId(2), &message(ids));
        assert!(packets.iter().all(|packet| packet.len() <= 1_472));
        assert!(packets.iter().all(|packet| three.open(&mut packet.clone()).is_none()));
        // The last part comes first.
        let mut letters: Vec<Letter> =
            packets.into_iter().rev().filter_map(|mut packet| two.open(&mut packet)).collect();
        assert_eq!(letters.pop(), Some(Letter::Message { from: NodeId(1), message: message(ids) }));
        assert!(letters.is_empty());
    }
}

#[test]
fn block_that_fits_a_packet_fits_a_letter_and_a_larger_one_several() {
    let (mut one, mut two) = (post(1, 11), post(2, 22));
    meet(&mut one, &mut two);
    for (bytes, count) in [(1_472 - OVERHEAD_BYTES, 1), (5_000, 4), (0, 1)] {
        let (id, block) = (BlockId::from(9), Bytes::from(vec![5; bytes]));
        let packets = one.block(NodeId(2), id, &block);
        assert_eq!(packets.len(), count);
        let letters: Vec<Letter> =
            packets.into_iter().filter_map(|mut packet| two.open(&mut packet)).collect();
        assert_eq!(letters, [Letter::Block { id, block }]);
    }
}

#[test]
fn letter_counts_once_unchanged_and_for_the_life_that_it_was_written_to() {
    let (mut one, mut two) = (post(1, 11), post(2, 22));
    meet(&mut one, &mut two);
    let packet = one.message(NodeId(2), &message(1)).pop().unwrap();
    for place in 0..packet.len() {
        let mut changed = packet.clone();
        changed[place] ^= 1;
        assert_eq!(two.open(&mut changed), None, "byte {place}");
    }
    assert!(two.open(&mut packet.clone()).is_some());
    assert_eq!(two.open(&mut packet.clone()), None, "it came before");
    let mut anew = post(2, 23);
    meet(&mut one, &mut anew);
    assert_eq!(anew.open(&mut packet.clone()), None, "it was for another life");
}

#[test]
fn node_that_was_started_anew_is_noticed_and_its_former_life_is_not_believed_again() {
    let (mut one, mut two) = (post(1, 11), post(2, 22));
    // What is recorded while they meet.
    let mut hello = one.hello().unwrap();
    let Some(Letter::Hello { reply: Some(mut old), .. }) = two.open(&mut hello) else { panic!("a hello") };
    let recorded = old.clone();
    one.open(&mut old).unwrap();
    let mut anew = post(2, 23);
    let heard = meet(&mut one, &mut anew);
    assert!(heard.iter().any(|letter| matches!(letter, Letter::Hello { is_reborn: true, .. })));
    assert_eq!(one.open(&mut recorded.clone()), None);
    assert!(!one.message(NodeId(2), &message(1)).is_empty());
}

#[test]
fn letters_overtake_one_another_within_a_window() {
    let mut seen = Seen::default();
    let took = [5, 3, 5, 3, 9_000, 4, 8_999, 9_000, 8_999, 809, 808, 807, 1 << 40, 9_001];
    let expected =
        [true, true, false, false, true, false, true, false, false, true, false, false, true, false];
    assert_eq!(took.map(|number| seen.take(number)), expected);
}
