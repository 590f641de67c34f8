use super::{Rping, Tping};
use crate::message::tests::{reply_is, request_is};
use crate::message::{Reply, Request, Tag};

#[test]
fn tping_has_these_bytes() {
    request_is(Tag(1), Request::Ping(Tping {}), "07000000 6e 0100");
}

#[test]
fn rping_has_these_bytes() {
    reply_is(Tag(1), Reply::Ping(Rping {}), "07000000 6f 0100");
}
