use proptest::prelude::*;

use super::*;

fn taken(sending: &mut Sending, room: u64) -> Vec<Piece> {
    std::iter::from_fn(|| if sending.is_ready() { sending.take(room) } else { None }).collect()
}

#[test]
fn no_more_is_sent_than_was_granted_and_the_end_goes_with_the_last_byte() {
    let mut sending = Sending::new();
    let mut bytes = Bytes::from(vec![1; CREDIT_FIRST as usize + 10]);
    assert_eq!(sending.write(&mut bytes) as u64, CREDIT_FIRST + 10);
    sending.finish();
    assert_eq!(taken(&mut sending, 1 << 20), [Piece { offset: 0, bytes: CREDIT_FIRST, is_last: false }]);
    sending.grant(CREDIT_FIRST + 100);
    assert_eq!(taken(&mut sending, 1 << 20), [Piece { offset: CREDIT_FIRST, bytes: 10, is_last: true }]);
}

#[test]
fn end_alone_is_sent_once_and_again_when_it_is_lost() {
    let mut sending = Sending::new();
    sending.finish();
    let end = Piece { offset: 0, bytes: 0, is_last: true };
    assert_eq!(taken(&mut sending, 100), [end]);
    sending.lose(end);
    assert_eq!(taken(&mut sending, 100), [end]);
    assert!(!sending.is_done());
    sending.arrive(end);
    sending.lose(end);
    assert!(sending.is_done() && !sending.is_ready());
    assert_eq!(sending.write(&mut "late".into()), 0);
}

#[test]
fn tiny_writes_are_bounded_too() {
    let mut sending = Sending::new();
    let mut count = 0;
    while sending.write(&mut "x".into()) == 1 {
        count += 1;
    }
    assert!(count <= SEND_BYTES_MAX / CHUNK_BYTES);
    assert!(!sending.is_roomy());
}

proptest! {
    #[test]
    fn whatever_is_lost_everything_arrives(
        writes in proptest::collection::vec(1usize..400, 1..20),
        fates in proptest::collection::vec((1u64..300, 0u8..4), 1..40),
    ) {
        let all: Vec<u8> = (0..writes.iter().sum()).map(|at: usize| ((at * 31) >> 3) as u8).collect();
        let (mut sending, mut arrived, mut at) = (Sending::new(), vec![None; all.len()], 0);
        for bytes in writes {
            let mut chunk = Bytes::copy_from_slice(&all[at..at + bytes]);
            prop_assert_eq!(sending.write(&mut chunk), bytes);
            at += bytes;
        }
        sending.finish();
        let mut fates = fates.into_iter();
        for _ in 0..10_000 {
            if !sending.is_ready() {
                break;
            }
            // After all misfortunes everything arrives.
            let (room, fate) = fates.next().unwrap_or((97, 3));
            let Some(piece) = sending.take(room) else { break };
            let mut copy = vec![0; piece.bytes as usize];
            sending.copy(piece.offset, &mut copy);
            let span = piece.offset as usize..(piece.offset + piece.bytes) as usize;
            prop_assert_eq!(&copy, &all[span.clone()]);
            match fate {
                0 => sending.lose(piece),
                // Lost, as it seemed, and arrived after all.
                1 => {
                    sending.lose(piece);
                    sending.arrive(piece);
                }
                _ => sending.arrive(piece),
            }
            if fate > 0 {
                arrived[span].fill(Some(()));
            }
        }
        prop_assert!(sending.is_done());
        prop_assert!(arrived.iter().all(Option::is_some));
        prop_assert_eq!(sending.held_bytes(), 0);
    }
}
