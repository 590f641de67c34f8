use proptest::prelude::*;

use super::*;

fn taken(buffer: &mut SendBuffer, room: u64) -> Vec<DataRange> {
    std::iter::from_fn(|| if buffer.is_ready() { buffer.take(room) } else { None }).collect()
}

#[test]
fn sending_respects_credit_and_ends_with_the_last_byte() {
    let mut buffer = SendBuffer::new();
    let mut bytes = Bytes::from(vec![1; INITIAL_CREDIT as usize + 10]);
    assert_eq!(buffer.write(&mut bytes) as u64, INITIAL_CREDIT + 10);
    buffer.finish();
    assert_eq!(taken(&mut buffer, 1 << 20), [DataRange { offset: 0, bytes: INITIAL_CREDIT, is_last: false }]);
    buffer.grant(INITIAL_CREDIT + 100);
    assert_eq!(taken(&mut buffer, 1 << 20), [DataRange { offset: INITIAL_CREDIT, bytes: 10, is_last: true }]);
}

#[test]
fn end_without_data_is_retransmitted_when_lost() {
    let mut buffer = SendBuffer::new();
    buffer.finish();
    let end = DataRange { offset: 0, bytes: 0, is_last: true };
    assert_eq!(taken(&mut buffer, 100), [end]);
    buffer.mark_lost(end);
    assert_eq!(taken(&mut buffer, 100), [end]);
    assert!(!buffer.is_done());
    buffer.acknowledge(end);
    buffer.mark_lost(end);
    assert!(buffer.is_done() && !buffer.is_ready());
    assert_eq!(buffer.write(&mut "late".into()), 0);
}

#[test]
fn tiny_writes_are_bounded_too() {
    let mut buffer = SendBuffer::new();
    let mut count = 0;
    while buffer.write(&mut "x".into()) == 1 {
        count += 1;
    }
    assert!(count <= SEND_BYTES_MAX / CHUNK_BYTES);
    assert!(!buffer.has_write_room());
}

proptest! {
    #[test]
    fn everything_arrives_despite_losses(
        writes in proptest::collection::vec(1usize..400, 1..20),
        fates in proptest::collection::vec((1u64..300, 0u8..4), 1..40),
    ) {
        let all: Vec<u8> = (0..writes.iter().sum()).map(|at: usize| ((at * 31) >> 3) as u8).collect();
        let (mut buffer, mut arrived, mut at) = (SendBuffer::new(), vec![None; all.len()], 0);
        for bytes in writes {
            let mut chunk = Bytes::copy_from_slice(&all[at..at + bytes]);
            prop_assert_eq!(buffer.write(&mut chunk), bytes);
            at += bytes;
        }
        buffer.finish();
        let mut fates = fates.into_iter();
        for _ in 0..10_000 {
            if !buffer.is_ready() {
                break;
            }
            // Once the random fates are used up, everything arrives.
            let (room, fate) = fates.next().unwrap_or((97, 3));
            let Some(piece) = buffer.take(room) else { break };
            let mut copy = vec![0; piece.bytes as usize];
            buffer.copy(piece.offset, &mut copy);
            let span = piece.offset as usize..(piece.offset + piece.bytes) as usize;
            prop_assert_eq!(&copy, &all[span.clone()]);
            match fate {
                0 => buffer.mark_lost(piece),
                // A spurious loss: declared lost, then acknowledged.
                1 => {
                    buffer.mark_lost(piece);
                    buffer.acknowledge(piece);
                }
                _ => buffer.acknowledge(piece),
            }
            if fate > 0 {
                arrived[span].fill(Some(()));
            }
        }
        prop_assert!(buffer.is_done());
        prop_assert!(arrived.iter().all(Option::is_some));
        prop_assert_eq!(buffer.held_bytes(), 0);
    }
}
