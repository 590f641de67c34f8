use super::*;
use crate::id::WriterId;
use crate::key::Part;
use proptest::prelude::*;

fn id(counter: u64) -> BlockId {
    BlockId::new(counter, WriterId(1)).unwrap()
}

fn is(block: Block, text: &str) {
    let digits: Vec<u32> = text.chars().filter_map(|char| char.to_digit(16)).collect();
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
    assert_eq!(block.encode(), bytes);
    assert_eq!(Block::decode(Bytes::from(bytes)), Ok(block));
}

#[test]
fn a_head_block_has_golden_bytes() {
    let key = |ino, part, sub| Key::new(Ino(ino), part, sub);
    let item = |key, value| Item { key, value: Bytes::from_static(value) };
    let items = vec![
        item(key(300, Part::Head, 0), b"ab"),
        item(key(300, Part::Entry, 5), b""),
        item(key(301, Part::Head, 0), b"c"),
    ];
    is(Block::Head(items), "02 03  ac02 00 00 02 6162  00 02 05 00  01 00 00 01 63");
}

#[test]
fn index_block_has_golden_bytes() {
    let child = |ino, counter| Child { key: Key::head(Ino(ino)), id: id(counter) };
    is(
        Block::Index { level: 1, children: vec![child(1, 9), child(4, 8)] },
        "03 01 02  01 00 00 12 01  03 00 00 01 01",
    );
}

#[test]
fn a_contents_block_has_golden_bytes() {
    let block = Block::Contents { key: Key::new(Ino(2), Part::Run, 1), data: Bytes::from_static(b"hello") };
    is(block, "04 02 03 01 68656c6c6f");
}

#[test]
fn a_root_block_has_golden_bytes() {
    let root = Root {
        payload_bytes: 1400,
        change: 3,
        files: id(5),
        table: None,
        era: 0,
        next_group: 2,
        next_serial: 1,
        origin: 0,
        since: None,
        free_list: vec![id(1), id(2)],
    };
    is(Block::Root(root), "01 01 f80a 03 818014 00 00 02 01 00 00 02 02 01 02 01");
}

#[test]
fn invalid_block_is_rejected() {
    let cases: [(&[u8], &str); 8] = [
        (&[], "a truncated field"),
        (&[9], "an unknown kind of block"),
        (&[2, 0], "a count larger than the block"),
        (&[2, 100, 0, 0, 0, 0], "a count larger than the block"),
        (&[3, 0, 1, 0, 0, 0, 2, 1], "an invalid level"),
        (&[3, 17, 1, 0, 0, 0, 2, 1], "an invalid level"),
        (&[2, 2, 1, 0, 0, 0, 0, 0, 0, 0], "keys not in ascending order"),
        (&[1, 7], "an unsupported format version"),
    ];
    for (bytes, what) in cases {
        assert_eq!(Block::decode(Bytes::copy_from_slice(bytes)).unwrap_err().what, what, "{bytes:?}");
    }
}

fn keys() -> impl Strategy<Value = std::collections::BTreeSet<Key>> {
    let part = prop::sample::select(vec![Part::Head, Part::Xattr, Part::Entry, Part::Run]);
    let key = (0_u64..1 << 40, part, any::<u64>()).prop_map(|(ino, part, sub)| Key::new(Ino(ino), part, sub));
    prop::collection::btree_set(key, 1..20)
}

fn value() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

proptest! {
    #[test]
    fn blocks_round_trip(keys in keys(), value in value(), counter in 1_u64..1 << 47, level in 1_u8..=16) {
        let items = keys.iter().map(|key| Item { key: *key, value: value.clone() }).collect();
        let children = keys.iter().enumerate().map(|(at, key)| Child { key: *key, id: id(counter + at as u64 % 3) });
        let blocks = [
            Block::Head(items),
            Block::Index { level, children: children.collect() },
            Block::Contents { key: *keys.first().unwrap(), data: value },
        ];
        for block in blocks {
            prop_assert_eq!(Block::decode(block.encode()), Ok(block));
        }
    }

    #[test]
    fn arbitrary_bytes_are_rejected_or_canonical(code in 0_u8..6, rest in prop::collection::vec(any::<u8>(), 0..300)) {
        let bytes = Bytes::from([&[code][..], &rest].concat());
        if let Ok(block) = Block::decode(bytes.clone()) {
            prop_assert_eq!(block.encode(), bytes);
        }
    }

    #[test]
    fn damaged_block_is_rejected_or_canonical(keys in keys(), value in value(), at in any::<usize>(), byte in any::<u8>()) {
        let items = keys.iter().map(|key| Item { key: *key, value: value.clone() }).collect();
        let mut bytes = Block::Head(items).encode().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(block) = Block::decode(Bytes::from(bytes.clone())) {
            prop_assert_eq!(block.encode(), bytes);
        }
    }
}
