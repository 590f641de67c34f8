//! Golden bytes of a little-endian Linux.

use super::*;
use crate::name_cache::Bounds;
use std::time::Duration;
use wirefs_client::call::{Listed, TreeNodeId};
use wirefs_op::{FileId, Kind, Stat, Timestamp};

fn stat() -> Stat {
    Stat {
        id: FileId { fs: 9, ino: 0x0102, generation: 8 },
        kind: Kind::File,
        version: 7,
        mode: 0o4644,
        nlink: 3,
        uid: 1000,
        gid: 100,
        rdev: 0x0123_4567,
        size: 1 << 32,
        blocks: 8,
        blksize: 4096,
        atime: Timestamp { secs: -1, nanos: 1 },
        mtime: Timestamp { secs: 2, nanos: 3 },
        ctime: Timestamp { secs: 4, nanos: 999_999_999 },
        without_xattrs: false,
        leased: false,
    }
}

const ATTR: &str = "02010000000000000000000001000000080000000000000\
                    0ffffffffffffffff0200000000000000040000000000000001000000\
                    03000000ffc99a3ba489000003000000e803000064000000674523010010000000000000";

fn entry() -> Entry {
    Entry {
        node: TreeNodeId(0x22),
        stat: stat(),
        entry_ttl: Duration::from_millis(1500),
        attr_ttl: Duration::from_secs(60),
        is_held: false,
    }
}

const ENTRY: &str = "22000000000000000000000000000000\
                     01000000000000003c000000000000000065cd1d00000000";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The answer to call 17 without its header, which is checked here.
fn body(expects: Expects, answer: Answer) -> String {
    let Encoded { head, data } = encode(CallId(17), expects, answer);
    let whole = hex(&[head.as_slice(), &data].concat());
    let length = u32::try_from(whole.len() / 2).expect("short");
    let header = format!("{}000000001100000000000000", hex(&length.to_le_bytes()));
    whole.strip_prefix(&header).unwrap_or_else(|| panic!("header of {whole}")).to_owned()
}

fn error(expects: Expects, answer: Answer) -> i32 {
    let Encoded { head, data } = encode(CallId(17), expects, answer);
    assert!(data.is_empty(), "an error carries no data");
    assert_eq!(head.len(), 16, "an error is a header alone");
    i32::from_le_bytes(head[4..8].try_into().expect("four bytes"))
}

#[test]
fn an_error_is_a_header_with_its_number_negated() {
    let Encoded { head, .. } = encode(CallId(17), Expects::Attr, Answer::Fail(Errno::NotEmpty));
    assert_eq!(hex(&head), "10000000d9ffffff1100000000000000");
    assert_eq!(hex(&encode_error(CallId(17), Errno::Io)), "10000000fbffffff1100000000000000");
}

#[test]
fn done_is_a_header_alone() {
    assert_eq!(body(Expects::Done, Answer::Done), "");
}

#[test]
fn an_entry_has_its_lifetimes_and_attributes() {
    assert_eq!(body(Expects::Lookup, Answer::Entry(entry())), format!("{ENTRY}{ATTR}"));
    assert_eq!(body(Expects::Entry, Answer::Entry(entry())), format!("{ENTRY}{ATTR}"));
}

#[test]
fn a_name_that_is_known_to_be_absent_is_node_zero_with_a_lifetime() {
    let absent = body(Expects::Lookup, Answer::NoEntry(Duration::from_millis(2500)));
    let lifetimes = "0200000000000000 0000000000000000 0065cd1d 00000000".replace(' ', "");
    assert_eq!(absent, format!("{}{lifetimes}{}", "00".repeat(16), "00".repeat(88)));
    assert_eq!(error(Expects::Lookup, Answer::NoEntry(Duration::ZERO)), -2);
}

#[test]
fn attributes_have_their_lifetime() {
    let attr = body(Expects::Attr, Answer::Attr(stat(), Duration::new(1, 2)));
    assert_eq!(attr, format!("01000000000000000200000000000000{ATTR}"));
}

#[test]
fn statx_has_all_basic_attributes_and_no_birth_time() {
    let statx = body(Expects::Statx, Answer::Attr(stat(), Duration::new(1, 2)));
    let expected = [
        "0100000000000000 02000000 00000000 00000000000000000000000000000000",
        "ff070000 00100000 0000000000000000 03000000 e8030000 64000000 a489 0000",
        "0201000000000000 0000000001000000 0800000000000000 0000000000000000",
        "ffffffffffffffff 01000000 00000000",
        "0000000000000000 00000000 00000000",
        "0400000000000000 ffc99a3b 00000000",
        "0200000000000000 03000000 00000000",
        "45030000 67120000 00000000 00000000",
    ]
    .concat()
    .replace(' ', "");
    assert_eq!(statx, format!("{expected}{}", "00".repeat(112)));
}

#[test]
fn an_opened_file_has_its_page_cache_flags() {
    let opened = |expects, cache| body(expects, Answer::Opened(Handle(5), cache));
    let with = |flags: &str| format!("0500000000000000{flags}00000000");
    assert_eq!(opened(Expects::Opened, PageCache::Drop), with("00000000"));
    assert_eq!(opened(Expects::Opened, PageCache::Keep), with("02000000"));
    assert_eq!(opened(Expects::Opened, PageCache::Quiet), with("22000000"));
    assert_eq!(opened(Expects::Opened, PageCache::Bypass), with("41000000"));
    assert_eq!(opened(Expects::Opened, PageCache::QuietBypass), with("61000000"));
    assert_eq!(opened(Expects::OpenedDirectory, PageCache::Keep), with("0a000000"));
    assert_eq!(opened(Expects::OpenedDirectory, PageCache::Drop), with("00000000"));
    assert_eq!(opened(Expects::OpenedDirectory, PageCache::Bypass), with("00000000"));
    for (maps_uncached, decided) in [(true, PageCache::Bypass), (false, PageCache::Drop)] {
        let mut answer = Answer::Opened(Handle(1), PageCache::Avoid);
        decide_pages(&mut answer, maps_uncached);
        assert_eq!(answer, Answer::Opened(Handle(1), decided));
    }
    let created = body(Expects::Created, Answer::Created(entry(), Handle(5), PageCache::Keep));
    assert_eq!(created, format!("{ENTRY}{ATTR}{}", with("02000000")));
}

#[test]
fn data_follows_the_header_without_a_copy() {
    let data = Bytes::from_static(b"abc");
    let encoded = encode(CallId(17), Expects::Data { bytes_max: 3 }, Answer::Data(data.clone()));
    assert_eq!(encoded.data.as_ptr(), data.as_ptr());
    assert_eq!(hex(&encoded.head), "13000000000000001100000000000000");
    assert_eq!(error(Expects::Data { bytes_max: 2 }, Answer::Data(data)), -5, "more than was asked for");
}

#[test]
fn an_extended_attribute_is_a_size_or_a_value_or_too_long() {
    let value = Answer::Data(Bytes::from_static(b"abc"));
    assert_eq!(body(Expects::Xattr { size_max: 3 }, value.clone()), "616263");
    assert_eq!(body(Expects::Xattr { size_max: 0 }, Answer::Size(3)), "0300000000000000");
    assert_eq!(body(Expects::Xattr { size_max: 0 }, value.clone()), "0300000000000000");
    assert_eq!(error(Expects::Xattr { size_max: 2 }, value), -34);
    assert_eq!(error(Expects::Xattr { size_max: 2 }, Answer::Size(3)), -5);
}

#[test]
fn counts_and_offsets_have_their_width() {
    assert_eq!(body(Expects::Count, Answer::Count(0x0102_0304)), "0403020100000000");
    assert_eq!(body(Expects::Count64, Answer::Count(0xffff_fffe)), "feffffff00000000");
    assert_eq!(body(Expects::Offset, Answer::Offset(1 << 40)), "0000000000010000");
}

#[test]
fn figures_of_the_file_system_have_their_order() {
    let figures = FsStat {
        block_bytes: 4096,
        blocks: 1,
        blocks_free: 2,
        blocks_available: 3,
        files: 4,
        files_free: 5,
        name_bytes_max: 255,
    };
    let expected = "0100000000000000 0200000000000000 0300000000000000 0400000000000000 0500000000000000 \
                    00100000 ff000000 00100000 00000000";
    let expected = format!("{}{}", expected.replace(' ', ""), "00".repeat(24));
    assert_eq!(body(Expects::FsStat, Answer::FsStat(figures)), expected);
}

#[test]
fn a_lock_to_the_end_ends_where_the_kernel_ends() {
    let lock = |kind| LockRange { kind, start: 1, end: u64::MAX, pid: 77 };
    let with = |kind: &str, pid: &str| format!("0100000000000000ffffffffffffff7f{kind}{pid}");
    let answer = |kind| body(Expects::Lock, Answer::Lock(Some(lock(kind))));
    assert_eq!(answer(LockKind::Read), with("00000000", "4d000000"));
    assert_eq!(answer(LockKind::Write), with("01000000", "4d000000"));
    assert_eq!(body(Expects::Lock, Answer::Lock(None)), "0000000000000000ffffffffffffff7f0200000000000000");
}

fn listed(name: &[u8], entry: Option<Entry>) -> Listed {
    Listed { name: name.to_vec(), next: 3, ino: 0x0102, st_mode: 0o040_755, entry }
}

#[test]
fn a_listing_pads_each_entry_to_eight_bytes() {
    let listing = Answer::Listing(vec![listed(b".", None), listed(b"12345678", Some(entry()))]);
    let dirent = |length: &str, name: &str| format!("02010000000000000300000000000000{length}04000000{name}");
    let (dot, eight) = (dirent("01000000", "2e00000000000000"), dirent("08000000", "3132333435363738"));
    let plain = Expects::Listing { bytes_max: 64, with_stats: false };
    assert_eq!(body(plain, listing.clone()), format!("{dot}{eight}"));
    let plus = Expects::Listing { bytes_max: 4096, with_stats: true };
    assert_eq!(body(plus, listing.clone()), format!("{}{dot}{ENTRY}{ATTR}{eight}", "00".repeat(128)));
    assert_eq!(error(Expects::Listing { bytes_max: 63, with_stats: false }, listing), -5);
    assert_eq!(body(plus, Answer::Listing(Vec::new())), "");
    assert_eq!(body(plus, Answer::ListingEnd), "00".repeat(8), "fewer than an entry has");
}

#[test]
fn an_answer_of_the_wrong_form_is_an_input_output_error() {
    assert_eq!(error(Expects::Attr, Answer::Done), -5);
    assert_eq!(error(Expects::Done, Answer::Count(1)), -5);
    assert_eq!(error(Expects::Entry, Answer::NoEntry(Duration::from_secs(1))), -5);
    assert_eq!(error(Expects::Opened, Answer::Created(entry(), Handle(1), PageCache::Keep)), -5);
    assert_eq!(error(Expects::Nothing, Answer::Done), -5);
}

#[test]
fn the_longest_validity_is_understood_by_all_kernels() {
    let encoded = body(Expects::Attr, Answer::Attr(stat(), Duration::MAX));
    assert!(encoded.starts_with("ffffffff00000000"), "{encoded}");
    assert!(encoded[16..].starts_with("0000000000000000"), "no nanoseconds: {encoded}");
}

#[test]
fn validity_of_names_is_bounded_in_every_answer() {
    let free = Bounds { name: Duration::MAX, attributes: Duration::MAX };
    let bounds = Bounds { name: Duration::from_secs(1), attributes: Duration::from_millis(7) };
    let listed = Listed { name: b"f".to_vec(), next: 1, ino: 1, st_mode: 0, entry: Some(entry()) };
    let answers = [
        Answer::Entry(entry()),
        Answer::NoEntry(Duration::MAX),
        Answer::Created(entry(), Handle(1), PageCache::Keep),
        Answer::Listing(vec![listed]),
    ];
    for mut answer in answers {
        let whole = answer.clone();
        bound(&mut answer, free);
        assert_eq!(answer, whole);
        bound(&mut answer, bounds);
        match answer {
            Answer::Entry(entry) | Answer::Created(entry, ..) => {
                assert_eq!((entry.entry_ttl, entry.attr_ttl), (bounds.name, bounds.attributes));
            }
            Answer::NoEntry(time) => assert_eq!(time, bounds.name),
            Answer::Listing(entries) => {
                assert!(
                    entries.iter().flat_map(|listed| listed.entry).all(|entry| {
                        (entry.entry_ttl, entry.attr_ttl) == (bounds.name, bounds.attributes)
                    })
                );
            }
            other => panic!("{other:?}"),
        }
    }
}
