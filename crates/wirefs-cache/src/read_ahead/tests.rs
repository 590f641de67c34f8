use super::*;

const BLOCK: u64 = 128 * 1024;

#[test]
fn a_sequential_reader_gets_twice_the_bandwidth_delay_product() {
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
fn before_the_path_is_measured_read_ahead_is_a_multiple_of_the_run() {
    let mut ahead = ReadAhead::default();
    for i in 0..200 {
        let end = (i + 1) * BLOCK;
        let distance = ahead.advance(i * BLOCK, end, 0) - end;
        assert!(distance <= (end * RAMP_FACTOR).clamp(4 * WINDOW_BYTES_MIN, RAMP_BYTES_MAX));
        assert!(i < 10 || distance == RAMP_BYTES_MAX);
    }
}

#[test]
fn a_random_reader_gets_no_read_ahead() {
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
fn a_long_sequential_reader_passes_each_byte_once() {
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
    // The reader jumps: it did not read the bytes in between.
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
fn a_reader_gets_no_read_ahead_after_invalidation_until_its_second_read() {
    let mut ahead = ReadAhead::after_invalidation();
    assert_eq!(ahead.advance(0, BLOCK, 0), BLOCK);
    assert!(ahead.advance(BLOCK, 2 * BLOCK, 0) > 2 * BLOCK);
}
