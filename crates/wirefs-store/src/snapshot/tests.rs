use super::*;
use crate::source_directory::create;

fn snapshot(count: u64) -> Snapshot {
    let id = |ino| FileId { fs: 1, ino, generation: 7 };
    let listing = |ino: u64| Bytes::from(vec![ino as u8; 1 + (ino as usize * 977) % 40_000]);
    Snapshot {
        session: SessionId(*b"sixteen bytes of"),
        root: id(2),
        identity: b"a key".to_vec(),
        listings: (0..count).map(|ino| (id(ino), listing(ino))).collect(),
    }
}

/// Returns the file's bytes after writing the snapshot.
fn written(snapshot: &Snapshot, name: &str) -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("wirefs-store-{}-{name}", std::process::id()));
    write(create(&path).unwrap(), snapshot).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    bytes
}

#[test]
fn snapshot_round_trips() {
    for count in [0, 1, 2, 300] {
        let snapshot = snapshot(count);
        let bytes = written(&snapshot, &format!("whole-{count}"));
        assert!(parse(Bytes::from(bytes)) == Some(snapshot), "{count}");
    }
}

#[test]
fn truncated_snapshot_is_rejected() {
    let bytes = Bytes::from(written(&snapshot(3), "cut"));
    for end in 0..bytes.len() {
        assert_eq!(parse(bytes.slice(..end)), None, "{end}");
    }
    assert_eq!(parse([&bytes, b"x".as_slice()].concat().into()), None);
}

#[test]
fn snapshot_with_any_wrong_byte_is_rejected() {
    let bytes = written(&snapshot(3), "flipped");
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x10;
        assert_eq!(parse(Bytes::from(bytes)), None, "{at}");
    }
}

#[test]
fn snapshot_with_missing_or_swapped_chunks_is_rejected() {
    let bytes = written(&snapshot(300), "chunks");
    let head = MAGIC.len() + 16 + FileId::BYTES + 4 + 5 + HalfSha256::BYTES;
    let first =
        u32::from_le_bytes(bytes[head..head + 4].try_into().unwrap()) as usize + 4 + HalfSha256::BYTES;
    assert!(head + first < bytes.len() - 4 - HalfSha256::BYTES, "more than one chunk");
    let without = [&bytes[..head], &bytes[head + first..]].concat();
    assert_eq!(parse(Bytes::from(without)), None);
}
