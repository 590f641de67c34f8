use super::{Pays, SKIP_MAX, SKIP_MIN};
use std::time::Duration;

const SLOW_LINE: f64 = 10e6;

/// 1 MB in 2 ms: 500 MB/s.
fn pack(pays: &mut Pays, packed: usize, line: f64) {
    pays.packed(1_000_000, packed, Duration::from_millis(2), line);
}

#[test]
fn texts_are_packed_for_lines_that_are_slower_than_the_compressor() {
    let mut pays = Pays::new();
    for _ in 0..50 {
        pack(&mut pays, 250_000, SLOW_LINE);
    }
    assert!(pays.pays(125e6), "1 Gbit/s");
    assert!(pays.pays(370e6));
    assert!(!pays.pays(380e6), "500 MB/s, of which 3/4 are saved");
}

#[test]
fn what_does_not_shrink_is_tried_less_and_less() {
    let mut pays = Pays::new();
    let mut skipped = Vec::new();
    while skipped.len() < 10 {
        if pays.pays(SLOW_LINE) {
            pack(&mut pays, 1_000_100, SLOW_LINE);
            skipped.push(0);
        } else {
            pays.skipped(1 << 19);
            *skipped.last_mut().unwrap() += 1 << 19;
        }
    }
    skipped.retain(|bytes| *bytes > 0);
    assert!(skipped.is_sorted(), "{skipped:?}");
    assert_eq!(skipped.iter().min(), Some(&SKIP_MIN));
    assert_eq!(skipped.iter().max(), Some(&SKIP_MAX));
    // Texts again.
    while !pays.pays(SLOW_LINE) {
        pays.skipped(1 << 20);
    }
    for _ in 0..4 {
        pack(&mut pays, 250_000, SLOW_LINE);
        assert!(pays.pays(SLOW_LINE));
    }
}
