use super::*;

const BLOCK: u64 = 128 * 1024;

#[test]
fn a_sequential_reader_gets_twice_what_the_wire_holds() {
    let wire = 12 * 1024 * 1024;
    let mut ahead = ReadAhead::default();
    let mut distance = 0;
    for i in 0..20 {
        let end = (i + 1) * BLOCK;
        distance = ahead.advance(i * BLOCK, end, wire) - end;
    }
    assert_eq!(distance, 2 * wire);
}

#[test]
fn before_the_wire_is_measured_a_reader_gets_a_multiple_of_what_it_has_read() {
    let mut ahead = ReadAhead::default();
    for i in 0..200 {
        let end = (i + 1) * BLOCK;
        let distance = ahead.advance(i * BLOCK, end, 0) - end;
        assert!(distance <= (end * TRUST_FACTOR).clamp(4 * WINDOW_BYTES_MIN, TRUST_BYTES_MAX));
        assert!(i < 10 || distance == TRUST_BYTES_MAX);
    }
}

#[test]
fn a_random_reader_gets_what_it_asks_for_only() {
    let mut ahead = ReadAhead::default();
    ahead.advance(0, BLOCK, 0);
    for i in [90u64, 17, 60, 3] {
        let start = i * 10 * 1024 * 1024;
        assert_eq!(ahead.advance(start, start + 4096, 1 << 20), start + 4096);
    }
}

#[test]
fn a_reader_that_jumps_and_goes_on_is_sequential_again() {
    let mut ahead = ReadAhead::default();
    let far = 50 * 1024 * 1024;
    assert_eq!(ahead.advance(far, far + BLOCK, 0), far + BLOCK);
    assert!(ahead.advance(far + BLOCK, far + 2 * BLOCK, 0) > far + 2 * BLOCK);
}

#[test]
fn the_kernels_reordered_reads_do_not_break_a_run() {
    let mut ahead = ReadAhead::default();
    for i in [0u64, 2, 1, 3, 5, 4] {
        assert!(ahead.advance(i * BLOCK, (i + 1) * BLOCK, 0) > (i + 1) * BLOCK);
    }
}

#[test]
fn a_reader_of_much_in_sequence_leaves_behind_each_byte_once() {
    let mut ahead = ReadAhead::default();
    let (mut left, mut end) = (0, 0);
    while end < 64 << 20 {
        ahead.advance(end, end + BLOCK, 0);
        end += BLOCK;
        let Some((from, to)) = ahead.take_passed() else { continue };
        assert!(end >= LONG_RUN_BYTES && from == left && to == end - PASSED_BYTES);
        left = to;
    }
    assert_eq!(left, end - PASSED_BYTES);
    // It begins anew elsewhere: nothing in between was read by it.
    let far = 500 << 20;
    ahead.advance(far, far + BLOCK, 0);
    end = far + BLOCK;
    while end < far + LONG_RUN_BYTES + 2 * BLOCK {
        ahead.advance(end, end + BLOCK, 0);
        end += BLOCK;
    }
    assert!(ahead.take_passed().is_some_and(|(from, _)| from >= far));
}

#[test]
fn a_reader_whose_data_was_dropped_gets_only_what_it_asks_for_until_it_reads_on() {
    let mut ahead = ReadAhead::after_invalidation();
    assert_eq!(ahead.advance(0, BLOCK, 0), BLOCK);
    assert!(ahead.advance(BLOCK, 2 * BLOCK, 0) > 2 * BLOCK);
}
