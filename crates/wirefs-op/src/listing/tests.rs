use super::{ListingWriter, entries};
use crate::message::tests::file_stat;
use crate::stat::DirEntry;
use bytes::Bytes;

/// `name[s] next[8] stat`
const ENTRY_BYTES: usize = 2 + 1 + 8 + 102;

fn packed() -> Vec<u8> {
    let mut writer = ListingWriter::new(2 * ENTRY_BYTES);
    for (at, name) in [b"a", b"b", b"c"].into_iter().enumerate() {
        let entry = DirEntry { name: name.to_vec(), next: at as u64 + 1, stat: file_stat() };
        assert_eq!(writer.push(&entry), at < 2, "two fit");
    }
    writer.finish().to_vec()
}

#[test]
fn entries_are_packed_in_sequence() {
    let bytes = packed();
    assert_eq!(bytes.len(), 2 * ENTRY_BYTES);
    assert_eq!(bytes[..11], [1, 0, b'a', 1, 0, 0, 0, 0, 0, 0, 0]);
    let names: Vec<Vec<u8>> = entries(bytes.into()).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, [b"a", b"b"]);
}

#[test]
fn invalid_entries_are_rejected() {
    let cases = [
        (2, b'/', "an entry's name that is not clean"),
        (2, b'.', "an entry's name that is not clean"),
        (3, 0, "an entry that leads back to the start"),
    ];
    for (at, byte, what) in cases {
        let mut bytes = packed();
        bytes[at] = byte;
        assert_eq!(entries(bytes.into()).unwrap_err().what, what);
    }
    let mut torn = packed();
    torn.pop();
    assert_eq!(entries(Bytes::from(torn)).unwrap_err().what, "ends within a field");
}
