use proptest::prelude::*;

use super::*;

fn read_all(receiving: &mut Receiving) -> Vec<u8> {
    std::iter::from_fn(|| receiving.read()).flatten().collect()
}

#[test]
fn more_than_was_granted_is_a_breach() {
    let mut receiving = Receiving::new();
    assert_eq!(receiving.insert(CREDIT_FIRST - 1, b"a", false), Ok(false));
    assert_eq!(receiving.insert(CREDIT_FIRST - 1, b"ab", false), Err(Breach::Credit));
    assert_eq!(receiving.insert(u64::from(u32::MAX) << 15, b"", false), Err(Breach::Credit));
}

#[test]
fn second_end_elsewhere_is_a_breach_and_the_same_one_is_not() {
    let mut receiving = Receiving::new();
    assert_eq!(receiving.insert(5, b"x", true), Ok(false));
    assert_eq!(receiving.insert(5, b"x", true), Ok(false));
    assert_eq!(receiving.insert(4, b"x", true), Err(Breach::End));
    assert_eq!(receiving.insert(6, b"x", false), Err(Breach::End));
    assert_eq!(receiving.insert(0, b"12345", false), Ok(true));
    assert_eq!(read_all(&mut receiving), b"12345x");
    assert!(receiving.read_end());
    let mut receiving = Receiving::new();
    assert_eq!(receiving.insert(5, b"x", false), Ok(false));
    assert_eq!(receiving.insert(0, b"1", true), Err(Breach::End), "more came already");
}

#[test]
fn pieces_that_wait_for_an_earlier_one_are_bounded() {
    let mut receiving = Receiving::new();
    let mut kept = 0;
    for at in (2..CREDIT_FIRST).step_by(2).take_while(|at| receiving.has_room(*at)).collect::<Vec<_>>() {
        if receiving.has_room(at) {
            receiving.insert(at, b"x", false).unwrap();
            kept += 1;
        }
    }
    assert_eq!(kept, PIECES_MAX);
    assert!(receiving.has_room(0), "what is next always fits");
}

#[test]
fn window_grows_with_a_reader_and_never_over_its_most() {
    let mut receiving = Receiving::new();
    for _ in 0..40 {
        while receiving.next < receiving.granted {
            let bytes = (receiving.granted - receiving.next).min(1_000) as usize;
            receiving.insert(receiving.next, &vec![0; bytes], false).unwrap();
        }
        read_all(&mut receiving);
        assert!(receiving.is_grant_due());
        receiving.widen(CREDIT_FIRST * 4, 1 << 30);
        receiving.grant();
    }
    assert_eq!(receiving.granted - receiving.read, CREDIT_FIRST * 4);
    receiving.widen(CREDIT_FIRST * 8, 5);
    assert_eq!(receiving.extra(), CREDIT_FIRST * 3 + 5, "the pool has no more");
}

proptest! {
    #[test]
    fn pieces_in_any_order_and_overlap_come_out_once_and_in_order(
        all in proptest::collection::vec(any::<u8>(), 1..500),
        pieces in proptest::collection::vec((0usize..500, 0usize..60), 0..60),
    ) {
        let (mut receiving, mut out) = (Receiving::new(), Vec::new());
        for (start, bytes) in pieces {
            let start = start.min(all.len());
            let end = (start + bytes).min(all.len());
            receiving.insert(start as u64, &all[start..end], end == all.len()).unwrap();
            out.append(&mut read_all(&mut receiving));
            prop_assert_eq!(&out[..], &all[..out.len()]);
            prop_assert!(receiving.held_bytes() <= all.len() as u64 * 30);
        }
        receiving.insert(0, &all, true).unwrap();
        out.append(&mut read_all(&mut receiving));
        prop_assert_eq!(out, all);
        prop_assert!(receiving.read_end() && receiving.is_done());
        prop_assert_eq!(receiving.held_bytes(), 0);
    }
}

#[test]
fn pieces_that_overlap_hold_no_more_than_was_granted() {
    let mut receiving = Receiving::new();
    let long = vec![7; 8_000];
    for offset in 1..1_000 {
        receiving.insert(offset, &long, false).unwrap();
    }
    assert_eq!(receiving.held_bytes(), 8_998);
    receiving.insert(20_000, &long, false).unwrap();
    receiving.insert(10_000, &vec![7; 20_000], false).unwrap();
    receiving.insert(8_999, &long, false).unwrap();
    assert_eq!(receiving.held_bytes(), 29_999);
    assert_eq!(receiving.insert(2, &[7], true), Err(Breach::End), "more came already");
    receiving.insert(0, &[7], false).unwrap();
    assert!(read_all(&mut receiving) == vec![7; 30_000]);
}

#[test]
fn tiny_pieces_are_put_together() {
    let mut receiving = Receiving::new();
    let bytes: Vec<u8> = (0..CREDIT_FIRST).map(|at| (at * 7) as u8).collect();
    for (at, byte) in bytes.iter().enumerate() {
        receiving.insert(at as u64, &[*byte], false).unwrap();
    }
    assert!(receiving.ready.len() <= bytes.len() / READY_BYTES_JOINED, "{}", receiving.ready.len());
    assert_eq!(read_all(&mut receiving), bytes);
}
