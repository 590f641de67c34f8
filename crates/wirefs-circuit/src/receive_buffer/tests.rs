use proptest::prelude::*;

use super::*;

fn read_all(buffer: &mut ReceiveBuffer) -> Vec<u8> {
    std::iter::from_fn(|| buffer.read()).flatten().collect()
}

#[test]
fn data_beyond_the_credit_is_an_error() {
    let mut buffer = ReceiveBuffer::new();
    assert_eq!(buffer.insert(INITIAL_CREDIT - 1, b"a", false), Ok(false));
    assert_eq!(buffer.insert(INITIAL_CREDIT - 1, b"ab", false), Err(ReceiveError::FlowControl));
    assert_eq!(buffer.insert(u64::from(u32::MAX) << 15, b"", false), Err(ReceiveError::FlowControl));
}

#[test]
fn changed_final_size_is_an_error_and_a_repeated_one_is_not() {
    let mut buffer = ReceiveBuffer::new();
    assert_eq!(buffer.insert(5, b"x", true), Ok(false));
    assert_eq!(buffer.insert(5, b"x", true), Ok(false));
    assert_eq!(buffer.insert(4, b"x", true), Err(ReceiveError::FinalSize));
    assert_eq!(buffer.insert(6, b"x", false), Err(ReceiveError::FinalSize));
    assert_eq!(buffer.insert(0, b"12345", false), Ok(true));
    assert_eq!(read_all(&mut buffer), b"12345x");
    assert!(buffer.read_end());
    let mut buffer = ReceiveBuffer::new();
    assert_eq!(buffer.insert(5, b"x", false), Ok(false));
    assert_eq!(buffer.insert(0, b"1", true), Err(ReceiveError::FinalSize), "later data was already received");
}

#[test]
fn out_of_order_chunks_are_bounded() {
    let mut buffer = ReceiveBuffer::new();
    let mut kept = 0;
    for at in (2..INITIAL_CREDIT).step_by(2).take_while(|at| buffer.has_room(*at)).collect::<Vec<_>>() {
        if buffer.has_room(at) {
            buffer.insert(at, b"x", false).unwrap();
            kept += 1;
        }
    }
    assert_eq!(kept, OUT_OF_ORDER_MAX);
    assert!(buffer.has_room(0), "in-order data always fits");
}

#[test]
fn window_grows_with_reads_up_to_its_maximum() {
    let mut buffer = ReceiveBuffer::new();
    for _ in 0..40 {
        while buffer.next < buffer.granted {
            let bytes = (buffer.granted - buffer.next).min(1_000) as usize;
            buffer.insert(buffer.next, &vec![0; bytes], false).unwrap();
        }
        read_all(&mut buffer);
        assert!(buffer.is_grant_due());
        buffer.grow_window(INITIAL_CREDIT * 4, 1 << 30);
        buffer.grant();
    }
    assert_eq!(buffer.granted - buffer.read, INITIAL_CREDIT * 4);
    buffer.grow_window(INITIAL_CREDIT * 8, 5);
    assert_eq!(buffer.window_growth(), INITIAL_CREDIT * 3 + 5, "the pool is exhausted");
}

proptest! {
    #[test]
    fn overlapping_data_in_any_order_is_read_once_in_order(
        all in proptest::collection::vec(any::<u8>(), 1..500),
        pieces in proptest::collection::vec((0usize..500, 0usize..60), 0..60),
    ) {
        let (mut buffer, mut out) = (ReceiveBuffer::new(), Vec::new());
        for (start, bytes) in pieces {
            let start = start.min(all.len());
            let end = (start + bytes).min(all.len());
            buffer.insert(start as u64, &all[start..end], end == all.len()).unwrap();
            out.append(&mut read_all(&mut buffer));
            prop_assert_eq!(&out[..], &all[..out.len()]);
            prop_assert!(buffer.held_bytes() <= all.len() as u64 * 30);
        }
        buffer.insert(0, &all, true).unwrap();
        out.append(&mut read_all(&mut buffer));
        prop_assert_eq!(out, all);
        prop_assert!(buffer.read_end() && buffer.is_done());
        prop_assert_eq!(buffer.held_bytes(), 0);
    }
}

#[test]
fn overlapping_data_uses_no_more_than_the_credit() {
    let mut buffer = ReceiveBuffer::new();
    let long = vec![7; 8_000];
    for offset in 1..1_000 {
        buffer.insert(offset, &long, false).unwrap();
    }
    assert_eq!(buffer.held_bytes(), 8_998);
    buffer.insert(20_000, &long, false).unwrap();
    buffer.insert(10_000, &vec![7; 20_000], false).unwrap();
    buffer.insert(8_999, &long, false).unwrap();
    assert_eq!(buffer.held_bytes(), 29_999);
    assert_eq!(buffer.insert(2, &[7], true), Err(ReceiveError::FinalSize), "later data was already received");
    buffer.insert(0, &[7], false).unwrap();
    assert!(read_all(&mut buffer) == vec![7; 30_000]);
}

#[test]
fn tiny_chunks_are_merged() {
    let mut buffer = ReceiveBuffer::new();
    let bytes: Vec<u8> = (0..INITIAL_CREDIT).map(|at| (at * 7) as u8).collect();
    for (at, byte) in bytes.iter().enumerate() {
        buffer.insert(at as u64, &[*byte], false).unwrap();
    }
    assert!(buffer.ready.len() <= bytes.len() / READY_BYTES_JOINED, "{}", buffer.ready.len());
    assert_eq!(read_all(&mut buffer), bytes);
}
