use super::{FindMode, Rfind, Tfind};
use crate::find_listing::{FindDirectory, FindWriter};
use crate::message::target::NOFD;
use crate::message::tests::{DIRECTORY_ID, directory_stat, file_stat, reply_is, request_is, target};
use crate::message::{Reply, Request, Tag};
use crate::path::TreePath;
use crate::wire::Data;

#[test]
fn tfind_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Find(Tfind {
            target: target(b"d", NOFD, Some(DIRECTORY_ID)),
            depth: 3,
            entries: 10_000,
            bytes: 1 << 20,
            inline: 4096,
        }),
        "2b000000 98 0100 010064 ffff 0100000000020000000000000001000000 0300 10270000 00001000 00100000",
    );
}

fn found(mode: FindMode) -> Reply {
    let mut writer = FindWriter::new(1000);
    let root = FindDirectory { path: TreePath::root(), stat: directory_stat(), begins: true, ends: false };
    assert!(writer.directory(&root) && writer.entry(b"f", &file_stat(), Some(b"hello")));
    writer.end_directory();
    Reply::Find(Rfind { mode, data: Data(writer.finish()) })
}

#[test]
fn rfind_has_these_bytes() {
    reply_is(
        Tag(1),
        found(FindMode::LAST),
        "4f000000 99 0100 2000 42000000 \
         17 00 00 bfbd0b 01000000 0900000000000000 04 8040 80c49fd50c 03000000 02000000 01000000 01 da07 06 \
         d00f d00f 8040 18 00 01 66 8c38 14 f53f 00 9101 03 68656c6c6f",
    );
}

#[test]
fn more_requires_last() {
    let body = found(FindMode::MORE).encode(Tag(1)).to_body();
    assert_eq!(Reply::decode(body).unwrap_err().what, "MORE without LAST");
    let body = found(FindMode::LAST.and(FindMode::MORE)).encode(Tag(1)).to_body();
    assert!(Reply::decode(body).is_ok());
}
