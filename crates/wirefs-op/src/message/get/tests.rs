use super::{GetMode, GotMode, Rget, Tget};
use crate::message::target::{Fd, NOFD};
use crate::message::tests::{FILE_ID, file_stat, reply_is, request_is, target};
use crate::message::{Reply, Request, Tag};
use crate::wire::Data;
use bytes::Bytes;

#[test]
fn tget_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Get(Tget {
            target: target(b"d/f", NOFD, Some(FILE_ID)),
            mode: GetMode::DATA.and(GetMode::STAT).and(GetMode::MORE),
            nmsgs: 0,
            offset: 0,
            count: 4096,
        }),
        "2f000000 82 0100 0300642f66 ffff 01000000000c0000000000000001000000 0700 0000 \
         0000000000000000 00100000",
    );
}

#[test]
fn rget_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Get(Rget {
            fd: Fd(3),
            mode: GotMode::DATA.and(GotMode::LAST),
            stat: Some(file_stat()),
            data: Data(Bytes::from_static(b"hello")),
        }),
        "7b000000 83 0100 0300 2100 01 000000000c0000000000000001000000 00 0900000000000000 a4010000 \
         01000000 e8030000e8030000 00000000 0500000000000000 080000000000000000100000 \
         00f153650000000001000000 00f153650000000002000000 00f153650000000003000000 01 05000000 \
         68656c6c6f",
    );
}
