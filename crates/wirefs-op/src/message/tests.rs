//! Shared values, and tests of all messages. The golden bytes of each message are beside it.

use crate::message::target::{Fd, Place, Target};
use crate::message::{Reply, Request, Tag};
use crate::path::TreePath;
use crate::stat::{FileId, Kind, Stat};
use crate::time::Timestamp;
use bytes::Bytes;

pub(crate) const FILE_ID: FileId = FileId { fs: 0, ino: 12, generation: 1 };
pub(crate) const DIRECTORY_ID: FileId = FileId { fs: 0, ino: 2, generation: 1 };

pub(crate) fn file_stat() -> Stat {
    let at = |nanos| Timestamp { secs: 1_700_000_000, nanos };
    Stat {
        id: FILE_ID,
        kind: Kind::File,
        version: 9,
        mode: 0o644,
        nlink: 1,
        uid: 1000,
        gid: 1000,
        rdev: 0,
        size: 5,
        blocks: 8,
        blksize: 4096,
        atime: at(1),
        mtime: at(2),
        ctime: at(3),
        without_xattrs: true,
        leased: false,
    }
}

pub(crate) fn directory_stat() -> Stat {
    Stat { id: DIRECTORY_ID, kind: Kind::Directory, mode: 0o755, nlink: 3, size: 4096, ..file_stat() }
}

pub(crate) fn target(path: &'static [u8], fd: Fd, id: Option<FileId>) -> Target {
    Target { path: clean(path), fd, id }
}

pub(crate) fn place(path: &'static [u8], dir: Option<FileId>) -> Place {
    Place { path: clean(path), dir }
}

fn clean(path: &'static [u8]) -> TreePath {
    TreePath::from_bytes(Bytes::from_static(path)).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|char| char.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn bytes(frame: &crate::Frame) -> Vec<u8> {
    [&frame.head[..], &frame.data].concat()
}

/// Checks a request's bytes in both directions.
pub(crate) fn request_is(tag: Tag, request: Request, text: &str) {
    let frame = request.encode(tag);
    assert_eq!(bytes(&frame), hex(text));
    assert_eq!(Request::decode(frame.to_body()), Ok((tag, request)));
}

/// Checks a reply's bytes in both directions.
pub(crate) fn reply_is(tag: Tag, reply: Reply, text: &str) {
    let frame = reply.encode(tag);
    assert_eq!(bytes(&frame), hex(text));
    assert_eq!(Reply::decode(frame.to_body()), Ok((tag, reply)));
}

#[test]
fn invalid_messages_are_malformed() {
    let cases: [(&str, &str); 6] = [
        ("", "ends within a field"),
        ("6e", "ends within a field"),
        ("6e 0100 00", "bytes left over"),
        ("00 0100", "no such message type"),
        // A reply is not a request.
        ("6f 0100", "no such message type"),
        // A Tstatfs with a path that leaves the tree.
        ("8c 0100 0200 2e2e ffff 00", "a path that is not clean"),
    ];
    for (text, what) in cases {
        let refused = Request::decode(Bytes::from(hex(text))).unwrap_err();
        assert_eq!(refused.what, what, "{text}");
    }
}

#[test]
fn each_reply_has_the_number_after_its_request() {
    let request = Request::Ping(crate::message::ping::Tping {});
    let reply = Reply::Ping(crate::message::ping::Rping {});
    assert_eq!((request.code() + 1, request.name()), (reply.code(), reply.name()));
}
