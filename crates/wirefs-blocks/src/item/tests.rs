use super::*;
use crate::id::WriterId;
use crate::key::{Ino, Key};
use crate::limits::{HEAD_ROOM_BYTES, RUN_PIECES};
use bytes::Bytes;
use proptest::prelude::*;
use wirefs_op::{Kind, Timestamp};

fn head(body: Body) -> Head {
    let at = |nanos| Timestamp { secs: 1_700_000_000, nanos };
    Head {
        kind: Kind::File,
        is_fresh: false,
        is_trimmed: false,
        mode: 0o644,
        nlink: 1,
        uid: 1000,
        gid: 1000,
        rdev: 0,
        size: 5,
        generation: 0,
        version: 9,
        atime: at(1),
        mtime: at(2),
        ctime: at(3),
        parent: Ino(1 << 24),
        next_ino: Ino(0),
        xattrs: 0,
        pieces: 0,
        body,
    }
}

fn id(counter: u64) -> BlockId {
    BlockId::new(counter, WriterId(1)).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_head_has_golden_bytes() {
    let small = head(Body::Inline(Bytes::from_static(b"hello")));
    let bytes = small.encode();
    let expected = "0000a40301e807e80700050009\
                    80c49fd50c0180c49fd50c0280c49fd50c03\
                    80808008000000\
                    68656c6c6f";
    assert_eq!(hex(&bytes), expected);
    assert_eq!(Head::decode(bytes), Ok(small));
}

#[test]
fn an_entry_has_golden_bytes() {
    let entry =
        Entry { ino: Ino(300), generation: 1, kind: Kind::Directory, name: Bytes::from_static(b"src") };
    assert_eq!(hex(&entry.encode()), "ac020101737263");
    assert_eq!(Entry::decode(entry.encode()), Ok(entry));
}

#[test]
fn a_run_has_golden_bytes() {
    let mut run = Run::default();
    run.set(0, Some(id(10)));
    run.set(3, Some(id(11)));
    assert_eq!(hex(&run.encode()), "0914010201");
    assert_eq!(Run::decode(run.encode()), Ok(run));
}

#[test]
fn run_without_blocks_is_rejected() {
    assert!(Run::decode(Bytes::from_static(&[0])).is_err());
}

#[test]
fn attributes_have_golden_bytes() {
    let name = Bytes::from_static(b"user.a");
    let small = Xattr { name: name.clone(), value: Value::Inline(Bytes::from_static(b"v")) };
    assert_eq!(hex(&small.encode()), "06757365722e610076");
    let large = Xattr { name, value: Value::Spilled { bytes: 5000, ids: vec![id(7), id(9)] } };
    assert_eq!(hex(&large.encode()), "06757365722e6101882702 0e01 0401".replace(' ', ""));
    for xattr in [small, large] {
        assert_eq!(Xattr::decode(xattr.encode()), Ok(xattr));
    }
}

#[test]
fn a_checkpoint_has_golden_bytes() {
    let item = CheckpointItem {
        files: id(2),
        made: Timestamp { secs: -1, nanos: 5 },
        change: 3,
        name: Bytes::from_static(b"before"),
    };
    assert_eq!(hex(&item.encode()), "818008 01 05 03 6265666f7265".replace(' ', ""));
    assert_eq!(CheckpointItem::decode(item.encode()), Ok(item));
}

#[test]
fn largest_head_fits_its_reserved_overhead() {
    let far = Timestamp { secs: i64::MIN, nanos: 999_999_999 };
    let largest = Head {
        mode: 0o7777,
        nlink: u32::MAX,
        uid: u32::MAX,
        gid: u32::MAX,
        rdev: u32::MAX,
        size: u64::MAX,
        generation: u32::MAX,
        version: u64::MAX,
        atime: far,
        mtime: far,
        ctime: far,
        parent: Ino(u64::MAX),
        next_ino: Ino(u64::MAX),
        xattrs: u32::MAX,
        pieces: u64::MAX,
        ..head(Body::Inline(Bytes::new()))
    };
    // The key, the length, and the fields of the block.
    assert!(largest.encode().len() + 12 + 3 + 5 <= HEAD_ROOM_BYTES, "{}", largest.encode().len());
}

#[test]
fn item_lists_its_contents_blocks() {
    let mut run = Run::default();
    run.set(5, Some(id(50)));
    let value = run.encode();
    let of = |part, value: &Bytes| Item { key: Key::new(Ino(1), part, 0), value: value.clone() };
    assert_eq!(names_contents(&of(Part::Run, &value)), Ok(vec![id(50)]));
    assert_eq!(names_contents(&of(Part::Head, &value)), Ok(vec![]));
    assert!(names_contents(&of(Part::Xattr, &value)).is_err());
}

#[test]
fn positions_of_a_name_include_only_names_with_its_hash() {
    let (first, last) = (first_position(b"a"), last_position(b"a"));
    assert_eq!(last - first, crate::limits::HASH_COLLISIONS_MAX - 1);
    assert!(!(first..=last).contains(&first_position(b"b")));
    assert_ne!(first_position(b""), 0);
}

proptest! {
    #[test]
    fn arbitrary_values_are_rejected_or_canonical(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        if let Ok(head) = Head::decode(bytes.clone()) {
            prop_assert_eq!(head.encode(), bytes.clone());
        }
        if let Ok(entry) = Entry::decode(bytes.clone()) {
            prop_assert_eq!(entry.encode(), bytes.clone());
        }
        if let Ok(run) = Run::decode(bytes.clone()) {
            prop_assert_eq!(run.encode(), bytes.clone());
        }
        if let Ok(xattr) = Xattr::decode(bytes.clone()) {
            prop_assert_eq!(xattr.encode(), bytes.clone());
        }
        if let Ok(item) = CheckpointItem::decode(bytes.clone()) {
            prop_assert_eq!(item.encode(), bytes);
        }
    }

    #[test]
    fn runs_round_trip(pieces in prop::collection::btree_map(0..RUN_PIECES as u32, 1_u64..1 << 47, 1..32)) {
        let mut run = Run::default();
        for (place, counter) in pieces {
            run.set(place, Some(id(counter)));
        }
        prop_assert_eq!(Run::decode(run.encode()), Ok(run));
    }
}
