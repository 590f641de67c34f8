use super::{LockAction, Rlock, Tlock};
use crate::message::target::Fd;
use crate::message::tests::{reply_is, request_is, target};
use crate::message::{Reply, Request, Tag};
use crate::stat::{LockFamily, LockKind, LockRange};

#[test]
fn tlock_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Lock(Tlock {
            target: target(b"d/f", Fd(3), None),
            action: LockAction::Wait,
            family: LockFamily::Posix,
            owner: 77,
            range: LockRange { kind: LockKind::Write, start: 0, end: u64::MAX, pid: 4242 },
        }),
        "2e000000 8e 0100 0300642f66 0300 00 02 00 4d00000000000000 01 0000000000000000 \
         ffffffffffffffff 92100000",
    );
}

#[test]
fn rlock_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Lock(Rlock {
            conflict: Some(LockRange { kind: LockKind::Read, start: 0, end: 99, pid: 1 }),
            stat: None,
        }),
        "1e000000 8f 0100 01 00 0000000000000000 6300000000000000 01000000 00",
    );
}
