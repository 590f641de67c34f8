use super::{Rremove, Tremove};
use crate::message::tests::{DIRECTORY_ID, directory_stat, place, reply_is, request_is};
use crate::message::{Reply, Request, Tag};

#[test]
fn tremove_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Remove(Tremove { place: place(b"d/f", Some(DIRECTORY_ID)), directory: false }),
        "1e000000 7a 0100 0300642f66 0100000000020000000000000001000000 00",
    );
}

#[test]
fn rremove_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Remove(Rremove { dir: Some(directory_stat()) }),
        "6e000000 7b 0100 01 00000000020000000000000001000000 01 0900000000000000 ed010000 03000000 \
         e8030000e8030000 00000000 0010000000000000 080000000000000000100000 00f153650000000001000000 \
         00f153650000000002000000 00f153650000000003000000 01",
    );
}
