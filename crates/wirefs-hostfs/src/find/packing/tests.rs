use super::{Fit, Packing};
use crate::find::reading::FoundEntry;
use crate::find::{FIRST_AGE_MAX, INLINE_BYTES_MAX, MESSAGE_AGE_MAX};
use bytes::Bytes;
use std::time::{Duration, Instant};
use wirefs_op::find_listing::{FindDirectory, FindReader, FindRecord};
use wirefs_op::limits::{DATA_BYTES_MAX, PATH_BYTES_MAX};
use wirefs_op::message::find::Tfind;
use wirefs_op::message::target::Target;
use wirefs_op::{FileId, Kind, Stat, TreePath};

fn stat(kind: Kind, size: usize) -> Stat {
    Stat {
        version: 1,
        mode: 0o755,
        nlink: 2,
        size: size as u64,
        blksize: 4096,
        without_xattrs: true,
        ..Stat::blank(FileId::default(), kind)
    }
}

fn request(entries: u32, bytes: u32) -> Tfind {
    Tfind { target: Target::at(TreePath::root()), depth: 9, entries, bytes, inline: 1 << 20 }
}

fn directory() -> FindDirectory {
    FindDirectory { path: TreePath::root(), stat: stat(Kind::Directory, 0), begins: true, ends: false }
}

fn file(number: usize, size: usize) -> FoundEntry {
    let contents = Some(Bytes::from(vec![b'c'; size]));
    FoundEntry { name: format!("file{number}").into_bytes(), stat: stat(Kind::File, size), contents }
}

fn contents(data: Bytes) -> Vec<Option<usize>> {
    let records = FindReader::new(data).map(Result::unwrap);
    let entries = records.filter_map(|record| match record {
        FindRecord::Entry(entry) => Some(entry.contents.map(|contents| contents.len())),
        FindRecord::Directory(_) => None,
    });
    entries.collect()
}

#[test]
fn a_message_is_due_when_it_is_old_and_the_first_one_earlier() {
    let mut packing = Packing::new(&request(u32::MAX, u32::MAX));
    assert_eq!(packing.due(), None);
    let began = Instant::now();
    for age_max in [FIRST_AGE_MAX, MESSAGE_AGE_MAX, MESSAGE_AGE_MAX] {
        assert_eq!(packing.directory(&directory(), began), Fit::Packed);
        // A later record does not make it younger.
        assert_eq!(packing.directory(&directory(), began + Duration::from_millis(3)), Fit::Packed);
        assert_eq!(packing.entry(&file(1, 10)), Fit::Packed);
        assert_eq!(packing.due(), Some(began + age_max));
        packing.take();
        assert_eq!(packing.due(), None);
    }
}

#[test]
fn a_full_message_is_followed_by_another() {
    let mut packing = Packing::new(&request(u32::MAX, u32::MAX));
    assert_eq!(packing.directory(&directory(), Instant::now()), Fit::Packed);
    assert_eq!(packing.entry(&file(0, INLINE_BYTES_MAX)), Fit::Packed);
    assert_eq!(packing.entry(&file(1, INLINE_BYTES_MAX)), Fit::Full);
    assert_eq!(contents(packing.take()), [Some(INLINE_BYTES_MAX)]);
    assert_eq!(packing.directory(&directory(), Instant::now()), Fit::Packed);
    assert_eq!(packing.entry(&file(1, INLINE_BYTES_MAX)), Fit::Packed);
    packing.end_directory();
    assert_eq!(contents(packing.take()), [Some(INLINE_BYTES_MAX)]);
}

#[test]
fn every_record_fits_an_empty_message() {
    let names = std::iter::repeat_n(&[b'n'; 254][..], PATH_BYTES_MAX / 255);
    let path = TreePath::from_names(names).unwrap();
    let mut packing = Packing::new(&request(u32::MAX, u32::MAX));
    assert_eq!(packing.directory(&FindDirectory { path, ..directory() }, Instant::now()), Fit::Packed);
    let longest = FoundEntry { name: vec![b'n'; 255], ..file(0, INLINE_BYTES_MAX) };
    assert_eq!(packing.entry(&longest), Fit::Packed);
    assert_eq!(contents(packing.take()), [Some(INLINE_BYTES_MAX)]);
}

#[test]
fn contents_without_room_are_left_out_and_then_the_entry() {
    let mut packing = Packing::new(&request(u32::MAX, 200));
    assert_eq!(packing.directory(&directory(), Instant::now()), Fit::Packed);
    assert_eq!(packing.entry(&file(0, 50)), Fit::Packed);
    assert_eq!(packing.entry(&file(1, 1000)), Fit::Packed);
    let fits = (2..100).take_while(|number| packing.entry(&file(*number, 1000)) == Fit::Packed).count();
    let data = packing.take();
    assert!(data.len() <= 200);
    assert_eq!(contents(data), [vec![Some(50)], vec![None; fits + 1]].concat());
    assert_eq!(packing.directory(&directory(), Instant::now()), Fit::Over);
}

#[test]
fn entries_are_counted_and_directories_are_not() {
    let mut packing = Packing::new(&request(2, u32::MAX));
    for number in 0..2 {
        assert_eq!(packing.directory(&directory(), Instant::now()), Fit::Packed);
        assert_eq!(packing.entry(&file(number, 0)), Fit::Packed);
        packing.take();
    }
    assert_eq!(packing.directory(&directory(), Instant::now()), Fit::Packed);
    assert_eq!(packing.entry(&file(2, 0)), Fit::Over);
}

#[test]
fn the_bytes_of_all_messages_count() {
    let bytes = DATA_BYTES_MAX + 1000;
    let mut packing = Packing::new(&request(u32::MAX, u32::try_from(bytes).unwrap()));
    let (mut sent, mut number) = (0, 0);
    assert_eq!(packing.directory(&directory(), Instant::now()), Fit::Packed);
    loop {
        match packing.entry(&file(number, 100)) {
            Fit::Packed => number += 1,
            Fit::Full => {
                sent += packing.take().len();
                assert_eq!(packing.directory(&directory(), Instant::now()), Fit::Packed);
            }
            Fit::Over => break,
        }
    }
    sent += packing.take().len();
    assert!(sent <= bytes && sent + 200 > bytes, "{sent} of {bytes}");
}
