use super::{Rcopy, Tcopy};
use crate::message::target::Fd;
use crate::message::tests::{reply_is, request_is, target};
use crate::message::{Reply, Request, Tag};

#[test]
fn tcopy_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Copy(Tcopy {
            from: target(b"d/f", Fd(3), None),
            from_offset: 0,
            to: target(b"g", Fd(4), None),
            to_offset: 4096,
            length: 5,
        }),
        "2d000000 92 0100 0300642f66 0300 00 0000000000000000 010067 0400 00 0010000000000000 \
         0500000000000000",
    );
}

#[test]
fn rcopy_has_these_bytes() {
    reply_is(Tag(1), Reply::Copy(Rcopy { count: 5, stat: None }), "10000000 93 0100 0500000000000000 00");
}
