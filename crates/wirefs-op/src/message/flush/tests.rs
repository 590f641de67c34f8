use super::{Rflush, Tflush};
use crate::message::tests::{reply_is, request_is};
use crate::message::{Reply, Request, Tag};

#[test]
fn tflush_has_these_bytes() {
    request_is(Tag(2), Request::Flush(Tflush { oldtag: Tag(1) }), "09000000 6c 0200 0100");
}

#[test]
fn rflush_has_these_bytes() {
    reply_is(Tag(2), Reply::Flush(Rflush {}), "07000000 6d 0200");
}
