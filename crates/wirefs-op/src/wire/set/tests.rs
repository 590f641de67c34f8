use crate::stat::{SetStat, SetTime};
use crate::time::Timestamp;
use crate::wire::{Reader, Wire, Writer};
use bytes::Bytes;

fn bytes(set: SetStat) -> Vec<u8> {
    let mut writer = Writer::bare();
    set.put(&mut writer);
    writer.into_bytes()
}

#[test]
fn only_changed_attributes_are_encoded() {
    let at = SetTime::At(Timestamp { secs: -1, nanos: 1 });
    let nothing = SetStat::default();
    let cases: [(SetStat, &[u8]); 5] = [
        (nothing, &[0]),
        (SetStat { mode: Some(0o644), ..nothing }, &[1, 0xa4, 1, 0, 0]),
        (SetStat { uid: Some(1), gid: Some(2), ..nothing }, &[6, 1, 0, 0, 0, 2, 0, 0, 0]),
        (SetStat { size: Some(258), ..nothing }, &[8, 2, 1, 0, 0, 0, 0, 0, 0]),
        (
            SetStat { atime: Some(SetTime::Now), mtime: Some(at), ..nothing },
            &[96, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0],
        ),
    ];
    for (set, expected) in cases {
        assert_eq!(bytes(set), expected);
        let mut reader = Reader::new(Bytes::copy_from_slice(expected));
        assert_eq!(SetStat::take(&mut reader), Ok(set));
        assert_eq!(reader.end(), Ok(()));
    }
}

#[test]
fn contradictions_are_rejected() {
    let cases: [(&[u8], &str); 3] = [
        (&[16 | 64], "a time that is both explicit and now"),
        (&[16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xca, 0x9a, 0x3b], "nanoseconds of a second or more"),
        (&[1, 0, 0], "ends within a field"),
    ];
    for (bytes, what) in cases {
        let mut reader = Reader::new(Bytes::copy_from_slice(bytes));
        assert_eq!(SetStat::take(&mut reader).unwrap_err().what, what);
    }
}
