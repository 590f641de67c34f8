use super::{GetMode, GotMode, Rget, Tget};
use crate::message::target::{Fd, NOFD};
use crate::message::tests::{DIRECTORY_ID, FILE_ID, file_stat, reply_is, request_is, target};
use crate::message::{Reply, Request, Tag};
use crate::wire::Data;
use bytes::Bytes;

#[test]
fn tget_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Get(Tget {
            target: target(b"d/f", NOFD, Some(FILE_ID)),
            mode: GetMode::DATA.and(GetMode::STAT).and(GetMode::MORE),
            nmsgs: 0,
            offset: 0,
            count: 4096,
        }),
        "2f000000 82 0100 0300642f66 ffff 01000000000c0000000000000001000000 0700 0000 \
         0000000000000000 00100000",
    );
}

#[test]
fn rget_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Get(Rget {
            fd: Fd(3),
            mode: GotMode::DATA.and(GotMode::LAST),
            stat: Some(file_stat()),
            data: Data(Bytes::from_static(b"hello")),
        }),
        "7b000000 83 0100 0300 2100 01 000000000c0000000000000001000000 00 0900000000000000 a4010000 \
         01000000 e8030000e8030000 00000000 0500000000000000 080000000000000000100000 \
         00f153650000000001000000 00f153650000000002000000 00f153650000000003000000 01 05000000 \
         68656c6c6f",
    );
}

#[test]
fn tget_of_a_name_in_a_directory_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Get(Tget {
            target: target(b"d/f", NOFD, Some(DIRECTORY_ID)),
            mode: GetMode::STAT.and(GetMode::ENTRY),
            nmsgs: 1,
            offset: 0,
            count: 0,
        }),
        "2f000000 82 0100 0300642f66 ffff 0100000000020000000000000001000000 2200 0100 \
         0000000000000000 00000000",
    );
}

#[test]
fn rget_of_an_absent_name_has_these_bytes() {
    reply_is(Tag(1), Reply::Get(absent()), "10000000 83 0100 ffff e000 00 00000000");
}

fn absent() -> Rget {
    let mode = GotMode::LAST.and(GotMode::PLACE).and(GotMode::ABSENT);
    Rget { fd: NOFD, mode, stat: None, data: Data(Bytes::new()) }
}

#[test]
fn data_about_an_absent_name_is_rejected() {
    let refused = [
        Rget { fd: Fd(3), ..absent() },
        Rget { stat: Some(file_stat()), ..absent() },
        Rget { mode: absent().mode.and(GotMode::DATA), ..absent() },
        Rget { data: Data(Bytes::from_static(b"x")), ..absent() },
    ];
    for got in refused {
        let body = Reply::Get(got).encode(Tag(1)).to_body();
        assert_eq!(Reply::decode(body).unwrap_err().what, "data about an absent name");
    }
}
