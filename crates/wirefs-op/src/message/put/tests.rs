use super::{Create, PutMode, Rput, Tput};
use crate::message::target::{Fd, NOFD};
use crate::message::tests::{file_stat, reply_is, request_is, target};
use crate::message::{Reply, Request, Tag};
use crate::stat::{Cred, Kind, SetStat, SetTime};
use crate::time::Timestamp;
use crate::wire::Data;
use bytes::Bytes;

#[test]
fn tput_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Put(Tput {
            target: target(b"d/f", NOFD, None),
            mode: PutMode::DATA
                .and(PutMode::STAT)
                .and(PutMode::MORE)
                .and(PutMode::CREATE)
                .and(PutMode::EXCLUSIVE)
                .and(PutMode::WRITE),
            create: Some(Create {
                kind: Kind::File,
                mode: 0o666,
                rdev: 0,
                cred: Cred { uid: 1000, gid: 1000, umask: 0o022 },
            }),
            set: SetStat {
                mode: Some(0o600),
                mtime: Some(SetTime::At(Timestamp { secs: 1_700_000_000, nanos: 2 })),
                ..SetStat::default()
            },
            offset: 0,
            data: Data(Bytes::from_static(b"hello")),
        }),
        "49000000 84 0100 0300642f66 ffff 00 1f04 01 00 b6010000 00000000 e8030000e803000012000000 21 \
         80010000 00f153650000000002000000 0000000000000000 05000000 68656c6c6f",
    );
}

#[test]
fn rput_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Put(Rput { fd: Fd(3), count: 5, offset: 0, before: 7, stat: Some(file_stat()), dir: None }),
        "85000000 85 0100 0300 05000000 0000000000000000 0700000000000000 01 \
         000000000c0000000000000001000000 00 0900000000000000 a4010000 01000000 e8030000e8030000 \
         00000000 0500000000000000 080000000000000000100000 00f153650000000001000000 \
         00f153650000000002000000 00f153650000000003000000 01 00",
    );
}
