use super::{Handle, Seen, each};

const OWN: i32 = 77;
const OTHER: i32 = 78;

/// One record: type, handle, and the bytes after it.
fn record(kind: u8, handle: &[u8], name: &[u8]) -> Vec<u8> {
    let unpadded = 20 + handle.len() + name.len();
    let length = unpadded.next_multiple_of(4);
    let mut bytes = vec![kind, 0];
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(0x0102_0304_u32.to_ne_bytes());
    bytes.extend(0x0506_0708_u32.to_ne_bytes());
    bytes.extend((handle.len() as u32).to_ne_bytes());
    bytes.extend(9_i32.to_ne_bytes());
    bytes.extend(handle);
    bytes.extend(name);
    bytes.resize(length, 0);
    bytes
}

fn event(mask: u64, process: i32, records: &[Vec<u8>]) -> Vec<u8> {
    let records = records.concat();
    let mut bytes = Vec::new();
    bytes.extend((24 + records.len() as u32).to_ne_bytes());
    bytes.extend([3, 0]);
    bytes.extend(24_u16.to_ne_bytes());
    bytes.extend(mask.to_ne_bytes());
    bytes.extend((-1_i32).to_ne_bytes());
    bytes.extend(process.to_ne_bytes());
    bytes.extend(records);
    bytes
}

fn seen(bytes: &[u8]) -> Vec<Seen> {
    let mut all = Vec::new();
    each(bytes, OWN, |seen| all.push(seen));
    all
}

fn handle(bytes: &[u8]) -> Handle {
    Handle { fsid: 0x0506_0708_0102_0304, kind: 9, bytes: bytes.into() }
}

fn object(bytes: &[u8]) -> Seen {
    Seen::Object(handle(bytes))
}

fn name(dir: &[u8], name: &[u8]) -> Seen {
    Seen::Name(handle(dir), name.to_vec())
}

const FID: u8 = libc::FAN_EVENT_INFO_TYPE_FID;
const DFID: u8 = libc::FAN_EVENT_INFO_TYPE_DFID;
const DFID_NAME: u8 = libc::FAN_EVENT_INFO_TYPE_DFID_NAME;

fn named(text: &[u8]) -> Vec<u8> {
    record(DFID_NAME, b"dir", &[text, b"\0"].concat())
}

#[test]
fn each_event_has_its_subject() {
    let fid = || record(FID, b"file", b"");
    let dir_flag = libc::FAN_ONDIR;
    let cases: [(u64, Vec<Vec<u8>>, Vec<Seen>); 11] = [
        (libc::FAN_MODIFY, vec![named(b"a"), fid()], vec![object(b"file")]),
        (libc::FAN_ATTRIB, vec![fid()], vec![object(b"file")]),
        (libc::FAN_CREATE, vec![named(b"a"), fid()], vec![name(b"dir", b"a")]),
        (libc::FAN_MOVED_FROM, vec![named(b"a")], vec![name(b"dir", b"a")]),
        (libc::FAN_DELETE, vec![named(b"a"), fid()], vec![name(b"dir", b"a")]),
        (libc::FAN_DELETE | dir_flag, vec![named(b"a"), fid()], vec![object(b"file"), name(b"dir", b"a")]),
        (
            libc::FAN_CREATE | libc::FAN_MODIFY,
            vec![named(b"a"), fid()],
            vec![object(b"file"), name(b"dir", b"a")],
        ),
        (libc::FAN_ATTRIB | dir_flag, vec![named(b".")], vec![object(b"dir")]),
        (libc::FAN_MOVE_SELF | dir_flag, vec![record(DFID, b"dir", b"")], vec![object(b"dir")]),
        (libc::FAN_MODIFY, vec![named(b"a")], vec![name(b"dir", b"a")]),
        (libc::FAN_MODIFY, vec![], vec![Seen::Lost]),
    ];
    for (mask, records, expected) in cases {
        assert_eq!(seen(&event(mask, OTHER, &records)), expected, "{mask:#x}");
        assert_eq!(seen(&event(mask, OWN, &records)), [], "own, {mask:#x}");
    }
}

#[test]
fn events_keep_their_order_and_an_overflow_is_lost() {
    let bytes = [
        event(libc::FAN_MODIFY, OTHER, &[record(FID, b"one", b"")]),
        event(libc::FAN_MODIFY, OWN, &[record(FID, b"own", b"")]),
        event(libc::FAN_Q_OVERFLOW, OWN, &[]),
        event(libc::FAN_MODIFY, 0, &[record(200, b"", b""), record(FID, b"two", b"")]),
    ];
    assert_eq!(seen(&bytes.concat()), [object(b"one"), Seen::Lost, object(b"two")]);
}

#[test]
fn truncated_or_invalid_bytes_are_lost_events() {
    let whole = event(libc::FAN_CREATE, OTHER, &[named(b"name"), record(FID, b"file", b"")]);
    for length in 1..whole.len() {
        assert_eq!(seen(&whole[..length]), [Seen::Lost], "{length} bytes");
    }
    let first_record = 24;
    // Lengths, the layout, and the length of the handle; each too large or zero.
    for at in [0, 4, 6, first_record + 2, first_record + 12] {
        for byte in [0, 0xff] {
            let mut wrong = whole.clone();
            wrong[at] = byte;
            wrong[at + 1] = byte;
            assert!(!seen(&wrong).is_empty(), "byte {at} is {byte}");
        }
    }
}
