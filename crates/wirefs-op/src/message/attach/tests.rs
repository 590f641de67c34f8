use super::{Leases, Rattach, Tattach, Watch};
use crate::message::tests::{directory_stat, reply_is, request_is};
use crate::message::{Reply, Request, Tag};
use crate::path::TreePath;
use crate::stat::Stat;
use crate::wire::Text;

#[test]
fn tattach_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Attach(Tattach { uname: Text::new(b"glenda"), path: TreePath::root() }),
        "11000000 68 0100 0600676c656e6461 0000",
    );
}

#[test]
fn rattach_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Attach(Rattach {
            root: Stat { nlink: 3, leased: true, ..directory_stat() },
            uid: 1000,
            gid: 1000,
            acts_for_callers: false,
            read_only: false,
            leases: Some(Leases { term_ms: 15_000, kept: true, watch: Watch::Filesystem }),
        }),
        "7e000000 69 0100 00000000020000000000000001000000 01 0900000000000000 ed010000 03000000 \
         e8030000e8030000 00000000 0010000000000000 080000000000000000100000 00f153650000000001000000 \
         00f153650000000002000000 00f153650000000003000000 03 e8030000 e8030000 00 00 \
         01 983a0000 01 02",
    );
}
