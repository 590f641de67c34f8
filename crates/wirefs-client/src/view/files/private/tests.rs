use super::*;

#[test]
fn what_was_never_written_is_read_as_zeros_up_to_the_size() {
    let mut copy = Private::new(CachedRanges::default(), 0);
    copy.write(4, Bytes::from_static(b"abc"));
    copy.resize(9);
    assert_eq!(copy.read(0, 100).as_ref(), b"\0\0\0\0abc\0\0");
    assert_eq!(copy.read(5, 2).as_ref(), b"bc");
    assert_eq!(copy.read(9, 5).as_ref(), b"");
    assert_eq!(copy.read(u64::MAX, 5).as_ref(), b"");
    copy.zero(5, 6);
    assert_eq!(copy.read(4, 3).as_ref(), b"a\0c");
}

#[test]
fn many_small_writes_are_put_together_and_say_the_same() {
    let mut copy = Private::cut();
    for at in 0..3000_u64 {
        copy.write(at, Bytes::from(vec![(at % 251) as u8]));
    }
    let whole: Vec<u8> = (0..3000_u64).map(|at| (at % 251) as u8).collect();
    assert_eq!(copy.read(0, 3000).as_ref(), whole);
    let pieces = copy.pieces();
    assert!(pieces.len() < 1100, "{}", pieces.len());
    assert_eq!(pieces.iter().map(|(_, data)| data.len()).sum::<usize>(), 3000);
}

#[test]
fn times_that_were_set_count_until_the_next_write() {
    let mut copy = Private::cut();
    let set = SetStat { mtime: Some(wirefs_op::SetTime::Now), mode: Some(1), ..SetStat::default() };
    copy.set_times(&set);
    assert_eq!(copy.times, SetStat { mode: None, ..set });
    copy.write(0, Bytes::from_static(b"x"));
    assert!(copy.times.is_empty());
}
