use super::{Rseek, Tseek};
use crate::message::target::Fd;
use crate::message::tests::{reply_is, request_is, target};
use crate::message::{Reply, Request, Tag};

#[test]
fn tseek_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Seek(Tseek { target: target(b"d/f", Fd(3), None), offset: 0, hole: true }),
        "18000000 94 0100 0300642f66 0300 00 0000000000000000 01",
    );
}

#[test]
fn rseek_has_these_bytes() {
    reply_is(Tag(1), Reply::Seek(Rseek { offset: 5 }), "0f000000 95 0100 0500000000000000");
}
