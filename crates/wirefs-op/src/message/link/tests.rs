use super::{Rlink, Tlink};
use crate::message::target::Fd;
use crate::message::tests::{FILE_ID, file_stat, place, reply_is, request_is, target};
use crate::message::{Reply, Request, Tag};
use crate::stat::Stat;

#[test]
fn tlink_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Link(Tlink { target: target(b"d/f", Fd(3), Some(FILE_ID)), to: place(b"g", None) }),
        "23000000 88 0100 0300642f66 0300 01000000000c0000000000000001000000 010067 00",
    );
}

#[test]
fn rlink_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Link(Rlink { stat: Some(Stat { nlink: 2, ..file_stat() }), dir: None }),
        "6f000000 89 0100 01 000000000c0000000000000001000000 00 0900000000000000 a4010000 02000000 \
         e8030000e8030000 00000000 0500000000000000 080000000000000000100000 00f153650000000001000000 \
         00f153650000000002000000 00f153650000000003000000 01 00",
    );
}
