use super::{NOREPLACE, Rrename, Trename};
use crate::message::tests::{DIRECTORY_ID, directory_stat, file_stat, place, reply_is, request_is};
use crate::message::{Reply, Request, Tag};

#[test]
fn trename_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Rename(Trename {
            from: place(b"d/f", None),
            to: place(b"g", Some(DIRECTORY_ID)),
            flags: NOREPLACE,
        }),
        "25000000 86 0100 0300642f66 00 010067 0100000000020000000000000001000000 01000000",
    );
}

#[test]
fn rrename_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Rename(Rrename { stat: Some(file_stat()), from_dir: None, to_dir: Some(directory_stat()) }),
        "d6000000 87 0100 01 000000000c0000000000000001000000 00 0900000000000000 a4010000 01000000 \
         e8030000e8030000 00000000 0500000000000000 080000000000000000100000 00f153650000000001000000 \
         00f153650000000002000000 00f153650000000003000000 01 00 01 00000000020000000000000001000000 \
         01 0900000000000000 ed010000 03000000 e8030000e8030000 00000000 0010000000000000 \
         080000000000000000100000 00f153650000000001000000 00f153650000000002000000 \
         00f153650000000003000000 01",
    );
}
