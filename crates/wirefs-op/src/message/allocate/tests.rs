use super::{Rallocate, Tallocate};
use crate::message::target::Fd;
use crate::message::tests::{file_stat, reply_is, request_is, target};
use crate::message::{Reply, Request, Tag};

#[test]
fn tallocate_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Allocate(Tallocate {
            target: target(b"d/f", Fd(3), None),
            mode: 3,
            offset: 4096,
            length: 8192,
        }),
        "23000000 90 0100 0300642f66 0300 00 03000000 0010000000000000 0020000000000000",
    );
}

#[test]
fn rallocate_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Allocate(Rallocate { stat: Some(file_stat()) }),
        "6e000000 91 0100 01 000000000c0000000000000001000000 00 0900000000000000 a4010000 01000000 \
         e8030000e8030000 00000000 0500000000000000 080000000000000000100000 00f153650000000001000000 \
         00f153650000000002000000 00f153650000000003000000 01",
    );
}
