//! Attributes and extended attributes.

use super::*;
use wirefs_op::{SetStat, SetTime, Timestamp};

#[test]
fn attributes_are_read_with_and_without_a_handle() {
    let with = "01000000 00000000 0102030400000000";
    let without = "00000000 00000000 0102030400000000";
    expect(3, with, Call::Getattr { node: NODE, handle: Some(HANDLE) }, Expects::Attr);
    expect(3, without, Call::Getattr { node: NODE, handle: None }, Expects::Attr);
    let statx = "01000000 00000000 0102030400000000 00000000 ff0f0000";
    let dialect = Dialect { statx: true, ..PLAIN };
    decoded(52, statx, dialect, |call, expects| {
        assert_eq!(call, Call::Getattr { node: NODE, handle: Some(HANDLE) });
        assert_eq!(expects, Expects::Statx);
    });
    let refused = request(52, statx);
    let (_, body) = decode(&refused, PLAIN).expect("well formed");
    assert_eq!(body, Body::Refused(Errno::NotImplemented));
}

/// `valid` and the rest of a SETATTR with all fields set.
fn setattr(valid: &str, atime_nanos: &str) -> String {
    format!(
        "{valid} 00000000 0102030400000000 0010000000000000 0900000000000000 ffffffffffffffff 0500000000000000 \
         0600000000000000 {atime_nanos} 07000000 08000000 ed890000 00000000 e9030000 65000000 00000000"
    )
}

#[test]
fn setattr_takes_only_what_is_valid() {
    let at = |secs, nanos| Some(SetTime::At(Timestamp { secs, nanos }));
    let call = |set, kill_privileges| Call::Setattr { node: NODE, handle: None, set, kill_privileges };
    expect(4, &setattr("00000000", "00000000"), call(SetStat::default(), false), Expects::Attr);
    let mode = SetStat { mode: Some(0o4755), ..SetStat::default() };
    expect(4, &setattr("01000000", "00000000"), call(mode, false), Expects::Attr);
    let owner = SetStat { uid: Some(1001), gid: Some(101), ..SetStat::default() };
    expect(4, &setattr("06080000", "00000000"), call(owner, true), Expects::Attr);
    let times = SetStat { atime: at(-1, 999_999_999), mtime: at(5, 7), ..SetStat::default() };
    expect(4, &setattr("30000000", "ffc99a3b"), call(times, false), Expects::Attr);
    let now = SetStat { atime: Some(SetTime::Now), mtime: Some(SetTime::Now), ..SetStat::default() };
    expect(4, &setattr("b0010000", "ffffffff"), call(now, false), Expects::Attr);
    let size = SetStat { size: Some(4096), ..SetStat::default() };
    let cut = Call::Setattr { node: NODE, handle: Some(HANDLE), set: size, kill_privileges: false };
    expect(4, &setattr("48000000", "00000000"), cut, Expects::Attr);
}

#[test]
fn a_time_of_a_billion_nanoseconds_is_malformed() {
    let request = request(4, &setattr("10000000", "00ca9a3b"));
    assert_eq!(decode(&request, PLAIN), Err(MalformedRequest { call: Some(CallId(17)) }));
}

#[test]
fn extended_attributes_are_decoded_in_both_forms() {
    let call =
        |kill_sgid| Call::Setxattr { node: NODE, name: b"user.k", value: b"v\0w", flags: 2, kill_sgid };
    expect(21, "03000000 02000000 'user.k' . 'v' . 'w'", call(false), Expects::Done);
    let long = "03000000 02000000 01000000 00000000 'user.k' . 'v' . 'w'";
    decoded(21, long, Dialect { setxattr_ext: true, ..PLAIN }, |decoded, _| assert_eq!(decoded, call(true)));
    expect(
        22,
        "00010000 00000000 'user.k' .",
        Call::Getxattr { node: NODE, name: b"user.k", size_max: 256 },
        Expects::Xattr { size_max: 256 },
    );
    expect(
        23,
        "00000000 00000000",
        Call::Listxattr { node: NODE, size_max: 0 },
        Expects::Xattr { size_max: 0 },
    );
    expect(24, "'user.k' .", Call::Removexattr { node: NODE, name: b"user.k" }, Expects::Done);
}
