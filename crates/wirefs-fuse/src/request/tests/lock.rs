//! Locks.

use super::*;
use wirefs_op::{LockFamily, LockKind, LockRange};

/// A lock request: bytes, type, flags.
fn lock(end: &str, kind: &str, flags: &str) -> String {
    format!("0102030400000000 9900000000000000 0a00000000000000 {end} {kind} 4d000000 {flags} 00000000")
}

#[test]
fn flock_and_posix_locks_are_distinguished() {
    let (node, handle, owner) = (NODE, HANDLE, 0x99);
    let of_the_open_file = HANDLE.0;
    let range = |kind, end| LockRange { kind, start: 10, end, pid: 77 };
    let setlk = |owner, family, range, wait| Call::Setlk { node, handle, owner, family, range, wait };
    let to_the_end = "ffffffffffffff7f";
    expect(
        32,
        &lock("1300000000000000", "01000000", "00000000"),
        setlk(owner, LockFamily::Posix, range(LockKind::Write, 19), false),
        Expects::Done,
    );
    expect(
        33,
        &lock(to_the_end, "00000000", "01000000"),
        setlk(of_the_open_file, LockFamily::Flock, range(LockKind::Read, u64::MAX), true),
        Expects::Done,
    );
    expect(
        32,
        &lock(to_the_end, "02000000", "01000000"),
        setlk(of_the_open_file, LockFamily::Flock, range(LockKind::Unlock, u64::MAX), false),
        Expects::Done,
    );
    let getlk = Call::Getlk {
        node,
        handle,
        owner,
        family: LockFamily::Posix,
        range: range(LockKind::Read, u64::MAX),
    };
    expect(31, &lock(to_the_end, "00000000", "00000000"), getlk, Expects::Lock);
}

#[test]
fn a_lock_of_no_kind_or_ending_before_it_starts_is_malformed() {
    for operands in
        [lock("1300000000000000", "03000000", "00000000"), lock("0900000000000000", "00000000", "00000000")]
    {
        assert_eq!(decode(&request(32, &operands), PLAIN), Err(MalformedRequest { call: Some(CallId(17)) }));
    }
}
