use super::FileContents;

#[test]
fn unwritten_ranges_read_as_zeros() {
    let mut contents = FileContents::default();
    contents.write(5000, b"hello");
    assert_eq!(contents.size(), 5005);
    assert_eq!(contents.read(4998, 100), b"\0\0hello");
    assert_eq!((contents.next_data(0), contents.next_hole(0)), (Some(4096), 0));
    assert_eq!(contents.next_hole(4096), 5005);
    assert_eq!(contents.allocated(), 4096);
}

#[test]
fn truncated_file_reads_zeros_after_growth() {
    let mut contents = FileContents::default();
    contents.write(0, &[7; 10_000]);
    contents.resize(5000);
    contents.resize(10_000);
    assert_eq!(contents.read(0, 20_000), [vec![7; 5000], vec![0; 5000]].concat());
    assert!(contents.is_zero(5000, 10_000) && !contents.is_zero(4999, 10_000));
}

#[test]
fn punching_frees_whole_pages_only() {
    let mut contents = FileContents::default();
    contents.write(0, &[7; 3 * 4096]);
    contents.punch(4000, 4292);
    let expected = [vec![7; 4000], vec![0; 4292], vec![7; 3 * 4096 - 8292]].concat();
    assert_eq!(contents.read(0, 1 << 20), expected);
    assert_eq!((contents.next_hole(0), contents.next_data(4096)), (4096, Some(8192)));
    assert_eq!(contents.size(), 3 * 4096);
}
