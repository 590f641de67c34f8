use super::{CommitScope, Rcommit, Tcommit};
use crate::message::target::Fd;
use crate::message::tests::{reply_is, request_is, target};
use crate::message::version::BootId;
use crate::message::{Reply, Request, Tag};

#[test]
fn tcommit_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Commit(Tcommit { target: target(b"d/f", Fd(3), None), scope: CommitScope::File }),
        "10000000 96 0100 0300642f66 0300 00 01",
    );
}

#[test]
fn rcommit_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Commit(Rcommit { boot: BootId(0x1122_3344_5566_7788) }),
        "0f000000 97 0100 8877665544332211",
    );
}
