use super::*;
use crate::attributes::{NineTime, Sizes};
use crate::plan_stat::PlanStat;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|char| char.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn text(bytes: &'static [u8]) -> NineString {
    NineString(Bytes::from_static(bytes))
}

fn data(bytes: &'static [u8]) -> Data {
    Data(Bytes::from_static(bytes))
}

/// Checks a message's bytes in both directions. The examples leave out size and tag, which is 0x0102.
macro_rules! has_bytes {
    ($type:ident, $($message:expr => $hex:expr,)*) => {$(
        let message = $message;
        let mut wanted = hex($hex);
        wanted.splice(1..1, [2, 1]);
        let frame = message.encode(Tag(0x0102));
        let size = (wanted.len() + 4) as u32;
        let bytes = [&frame.head[..], &frame.data].concat();
        assert_eq!(bytes, [&size.to_le_bytes()[..], &wanted].concat(), "{message:?}");
        assert_eq!($type::decode(Bytes::from(wanted)).unwrap(), (Tag(0x0102), message));
    )*};
}

const QID: Qid = Qid { kind: 0x80, version: 7, path: 0x0a0b };
const QID_HEX: &str = "80 07000000 0b0a000000000000";

fn stat() -> PlanStat {
    PlanStat {
        kind: 0,
        dev: 0,
        qid: QID,
        mode: 0x8000_01ed,
        atime: 1,
        mtime: 2,
        length: 0,
        name: text(b"d"),
        uid: text(b"0"),
        gid: text(b"1"),
        muid: text(b"2"),
    }
}

const STAT_HEX: &str = "3300 0000 00000000 80 07000000 0b0a000000000000 ed010080 01000000 02000000 0000000000000000 \
                        0100 64 0100 30 0100 31 0100 32";

fn lock() -> NineLock {
    NineLock { kind: 1, start: 4, length: 8, process: 9, client: text(b"h") }
}

const LOCK_HEX: &str = "01 0400000000000000 0800000000000000 09000000 0100 68";

#[test]
fn requests_of_both_dialects_have_these_bytes() {
    let fid = Fid(3);
    has_bytes! { Tmessage,
        Tmessage::Version { msize: 8216, version: text(b"9P2000") } => "64 18200000 0600 395032303030",
        Tmessage::Auth { afid: fid, uname: text(b"u"), aname: text(b""), uid: Tail(None) } => "66 03000000 0100 75 0000",
        Tmessage::Attach { fid, afid: NOFID, uname: text(b"u"), aname: text(b"a"), uid: Tail(None) }
            => "68 03000000 ffffffff 0100 75 0100 61",
        Tmessage::Attach { fid, afid: NOFID, uname: text(b""), aname: text(b"a"), uid: Tail(Some(1000)) }
            => "68 03000000 ffffffff 0000 0100 61 e8030000",
        Tmessage::Flush { old: 5 } => "6c 0500",
        Tmessage::Walk { fid, newfid: Fid(4), names: Few(vec![text(b"a"), text(b"..")]) }
            => "6e 03000000 04000000 0200 0100 61 0200 2e2e",
        Tmessage::Open { fid, mode: 0x12 } => "70 03000000 12",
        Tmessage::Create { fid, name: text(b"n"), perm: 0x8000_01ff, mode: 0 } => "72 03000000 0100 6e ff010080 00",
        Tmessage::Read { fid, offset: 1, count: 2 } => "74 03000000 0100000000000000 02000000",
        Tmessage::Write { fid, offset: 1, data: data(b"xy") } => "76 03000000 0100000000000000 02000000 7879",
        Tmessage::Clunk { fid } => "78 03000000",
        Tmessage::Remove { fid } => "7a 03000000",
        Tmessage::Stat { fid } => "7c 03000000",
        Tmessage::Wstat { fid, stat: SizedStat(stat()) } => &format!("7e 03000000 3500 {STAT_HEX}"),
    }
}

#[test]
fn requests_of_linux_have_these_bytes() {
    let fid = Fid(3);
    let set = SetAttributes {
        valid: 0x1ff,
        mode: 0o644,
        uid: 1,
        gid: 2,
        size: 3,
        atime: NineTime { secs: 4, nanos: 5 },
        mtime: NineTime { secs: 6, nanos: 7 },
    };
    has_bytes! { Tmessage,
        Tmessage::Statfs { fid } => "08 03000000",
        Tmessage::Lopen { fid, flags: 0o1002 } => "0c 03000000 02020000",
        Tmessage::Lcreate { fid, name: text(b"n"), flags: 2, mode: 0o644, gid: 1 }
            => "0e 03000000 0100 6e 02000000 a4010000 01000000",
        Tmessage::Symlink { dir: fid, name: text(b"n"), target: text(b"t"), gid: 1 }
            => "10 03000000 0100 6e 0100 74 01000000",
        Tmessage::Mknod { dir: fid, name: text(b"n"), mode: 0o20644, major: 1, minor: 3, gid: 1 }
            => "12 03000000 0100 6e a4210000 01000000 03000000 01000000",
        Tmessage::Rename { fid, dir: Fid(4), name: text(b"n") } => "14 03000000 04000000 0100 6e",
        Tmessage::Readlink { fid } => "16 03000000",
        Tmessage::Getattr { fid, mask: 0x7ff } => "18 03000000 ff07000000000000",
        Tmessage::Setattr { fid, set } => "1a 03000000 ff010000 a4010000 01000000 02000000 0300000000000000 \
            0400000000000000 0500000000000000 0600000000000000 0700000000000000",
        Tmessage::Xattrwalk { fid, newfid: Fid(4), name: text(b"") } => "1e 03000000 04000000 0000",
        Tmessage::Xattrcreate { fid, name: text(b"user.a"), size: 2, flags: 1 }
            => "20 03000000 0600 757365722e61 0200000000000000 01000000",
        Tmessage::Readdir { fid, offset: 1, count: 2 } => "28 03000000 0100000000000000 02000000",
        Tmessage::Fsync { fid, data_only: Tail(None) } => "32 03000000",
        Tmessage::Fsync { fid, data_only: Tail(Some(1)) } => "32 03000000 01000000",
        Tmessage::Lock { fid, kind: 1, flags: 1, start: 4, length: 8, process: 9, client: text(b"h") }
            => "34 03000000 01 01000000 0400000000000000 0800000000000000 09000000 0100 68",
        Tmessage::Getlock { fid, lock: lock() } => &format!("36 03000000 {LOCK_HEX}"),
        Tmessage::Link { dir: fid, fid: Fid(4), name: text(b"n") } => "46 03000000 04000000 0100 6e",
        Tmessage::Mkdir { dir: fid, name: text(b"n"), mode: 0o755, gid: 1 } => "48 03000000 0100 6e ed010000 01000000",
        Tmessage::Renameat { dir: fid, name: text(b"n"), to_dir: Fid(4), to_name: text(b"m") }
            => "4a 03000000 0100 6e 04000000 0100 6d",
        Tmessage::Unlinkat { dir: fid, name: text(b"n"), flags: 0x200 } => "4c 03000000 0100 6e 00020000",
    }
}

#[test]
fn replies_of_both_dialects_have_these_bytes() {
    has_bytes! { Rmessage,
        Rmessage::Version { msize: 8216, version: text(b"9P2000") } => "65 18200000 0600 395032303030",
        Rmessage::Auth { qid: QID } => &format!("67 {QID_HEX}"),
        Rmessage::Attach { qid: QID } => &format!("69 {QID_HEX}"),
        Rmessage::Error { text: text(b"no") } => "6b 0200 6e6f",
        Rmessage::Flush {} => "6d",
        Rmessage::Walk { qids: Few(vec![QID, QID]) } => &format!("6f 0200 {QID_HEX} {QID_HEX}"),
        Rmessage::Open { qid: QID, iounit: 8192 } => &format!("71 {QID_HEX} 00200000"),
        Rmessage::Create { qid: QID, iounit: 8192 } => &format!("73 {QID_HEX} 00200000"),
        Rmessage::Read { data: data(b"xy") } => "75 02000000 7879",
        Rmessage::Write { count: 2 } => "77 02000000",
        Rmessage::Clunk {} => "79",
        Rmessage::Remove {} => "7b",
        Rmessage::Stat { stat: SizedStat(stat()) } => &format!("7d 3500 {STAT_HEX}"),
        Rmessage::Wstat {} => "7f",
    }
}

#[test]
fn replies_of_linux_have_these_bytes() {
    let figures = NineFsStat {
        kind: 0x0102_1997,
        block_bytes: 4096,
        blocks: 1,
        blocks_free: 2,
        blocks_available: 3,
        files: 4,
        files_free: 5,
        fsid: 6,
        name_bytes_max: 255,
    };
    let time = |secs| NineTime { secs, nanos: 0 };
    let attributes = Attributes {
        valid: 0x7ff,
        qid: QID,
        mode: 0o40755,
        uid: 1,
        gid: 2,
        sizes: Sizes { nlink: 3, rdev: 4, size: 5, blksize: 6, blocks: 7 },
        atime: time(8),
        mtime: time(9),
        ctime: time(10),
        btime: time(11),
        generation: 12,
        version: 13,
    };
    let longs = |numbers: std::ops::RangeInclusive<u64>, pad: &str| {
        numbers.map(|number| format!("{number:02x}00000000000000{pad}")).collect::<String>()
    };
    let times = longs(8..=11, "0000000000000000");
    let getattr = format!(
        "19 ff07000000000000 {QID_HEX} ed410000 01000000 02000000 {} {times} {}",
        longs(3..=7, ""),
        longs(12..=13, "")
    );
    has_bytes! { Rmessage,
        Rmessage::Lerror { errno: 2 } => "07 02000000",
        Rmessage::Statfs { figures } => &format!("09 97190201 00100000 {} ff000000", longs(1..=6, "")),
        Rmessage::Lopen { qid: QID, iounit: 0 } => &format!("0d {QID_HEX} 00000000"),
        Rmessage::Lcreate { qid: QID, iounit: 0 } => &format!("0f {QID_HEX} 00000000"),
        Rmessage::Symlink { qid: QID } => &format!("11 {QID_HEX}"),
        Rmessage::Mknod { qid: QID } => &format!("13 {QID_HEX}"),
        Rmessage::Rename {} => "15",
        Rmessage::Readlink { target: text(b"t") } => "17 0100 74",
        Rmessage::Getattr { attributes } => &getattr,
        Rmessage::Setattr {} => "1b",
        Rmessage::Xattrwalk { size: 5 } => "1f 0500000000000000",
        Rmessage::Xattrcreate {} => "21",
        Rmessage::Readdir { data: data(b"xy") } => "29 02000000 7879",
        Rmessage::Fsync {} => "33",
        Rmessage::Lock { status: 1 } => "35 01",
        Rmessage::Getlock { lock: lock() } => &format!("37 {LOCK_HEX}"),
        Rmessage::Link {} => "47",
        Rmessage::Mkdir { qid: QID } => &format!("49 {QID_HEX}"),
        Rmessage::Renameat {} => "4b",
        Rmessage::Unlinkat {} => "4d",
    }
}

#[test]
fn wrong_lengths_are_the_peers_fault() {
    let wrong = [
        (
            "a stat that says it is longer",
            format!("7e 0100 03000000 3500 {}", STAT_HEX.replacen("3300", "3400", 1)),
        ),
        ("a message that says its stat is longer", format!("7e 0100 03000000 3600 {STAT_HEX}")),
        (
            "more names than a walk may have",
            format!("6e 0100 03000000 04000000 1100 {}", "0100 61".repeat(17)),
        ),
        (
            "a string beyond its limit",
            format!("10 0100 03000000 0100 6e 0110 {} 01000000", "61".repeat(0x1001)),
        ),
        ("bytes left over", "78 0100 03000000 00".to_owned()),
        ("an end within a field", "78 0100 0300".to_owned()),
        ("a reply for a request", format!("69 0100 {QID_HEX}")),
    ];
    for (what, bytes) in wrong {
        assert!(Tmessage::decode(Bytes::from(hex(&bytes))).is_err(), "{what}");
    }
}
