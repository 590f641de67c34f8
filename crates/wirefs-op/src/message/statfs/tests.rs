use super::{Rstatfs, Tstatfs};
use crate::message::target::Target;
use crate::message::tests::{reply_is, request_is};
use crate::message::{Reply, Request, Tag};
use crate::path::TreePath;
use crate::stat::FsStat;

#[test]
fn tstatfs_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Statfs(Tstatfs { target: Target::at(TreePath::root()) }),
        "0c000000 8c 0100 0000 ffff 00",
    );
}

#[test]
fn rstatfs_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Statfs(Rstatfs {
            figures: FsStat {
                block_bytes: 4096,
                blocks: 1000,
                blocks_free: 600,
                blocks_available: 500,
                files: 100,
                files_free: 90,
                name_bytes_max: 255,
            },
        }),
        "37000000 8d 0100 00100000 e803000000000000 5802000000000000 f401000000000000 \
         6400000000000000 5a00000000000000 ff000000",
    );
}
