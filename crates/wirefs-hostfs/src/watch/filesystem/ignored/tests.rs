use super::*;

fn id(ino: u64) -> FileId {
    FileId { ino, ..FileId::default() }
}

#[test]
fn a_file_is_busy_once_in_a_period() {
    let mut busy = Busy::default();
    let busy_at: Vec<u32> = (1..PERIOD)
        .filter(|_| {
            busy.begin();
            busy.count(id(1))
        })
        .collect();
    assert_eq!(busy_at, [BUSY_ROUNDS]);
}

#[test]
fn a_file_that_changes_rarely_is_not_busy() {
    let mut busy = Busy::default();
    for round in 0..10 * PERIOD {
        busy.begin();
        assert!(round % 8 != 0 || !busy.count(id(1)));
    }
}

#[test]
fn counting_is_bounded() {
    let mut busy = Busy::default();
    (0..2 * COUNTED_MAX as u64).for_each(|ino| assert!(!busy.count(id(ino))));
    assert_eq!(busy.counts.len(), COUNTED_MAX);
}
