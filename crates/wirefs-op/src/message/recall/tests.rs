use super::{END_SESSION, OWN_CHANGE, RecallItem, Rrecall, Trecalled};
use crate::limits::{HEAD_BYTES_MAX, NAME_BYTES_MAX, RECALL_ITEMS_MAX};
use crate::message::tests::{DIRECTORY_ID, FILE_ID, reply_is, request_is};
use crate::message::{NOTAG, Reply, Request};
use bytes::Bytes;

#[test]
fn rrecall_has_these_bytes() {
    let items = vec![
        RecallItem { id: DIRECTORY_ID, name: Some(b"f".to_vec()) },
        RecallItem { id: FILE_ID, name: None },
    ];
    reply_is(
        NOTAG,
        Reply::Recall(Rrecall { serial: 7, items }),
        "36000000 a1 ffff 0700000000000000 0200 00000000020000000000000001000000 01 010066 \
         000000000c0000000000000001000000 00",
    );
}

#[test]
fn a_recall_of_everything_has_no_items() {
    reply_is(
        NOTAG,
        Reply::Recall(Rrecall { serial: 8, items: Vec::new() }),
        "11000000 a1 ffff 0800000000000000 0000",
    );
}

#[test]
fn trecalled_has_these_bytes() {
    request_is(NOTAG, Request::Recalled(Trecalled { serial: 7 }), "0f000000 a0 ffff 0700000000000000");
}

#[test]
fn end_session_differs_from_all_serials() {
    request_is(
        NOTAG,
        Request::Recalled(Trecalled { serial: END_SESSION }),
        "0f000000 a0 ffff ffffffffffffff7f",
    );
    assert_eq!(END_SESSION & OWN_CHANGE, 0);
}

fn longest() -> Rrecall {
    let item = RecallItem { id: FILE_ID, name: Some(vec![b'n'; NAME_BYTES_MAX]) };
    Rrecall { serial: u64::MAX, items: vec![item; RECALL_ITEMS_MAX] }
}

#[test]
fn the_longest_recall_fits() {
    let frame = Reply::Recall(longest()).encode(NOTAG);
    assert!(frame.wire_len() <= HEAD_BYTES_MAX);
    assert_eq!(Reply::decode(frame.to_body()), Ok((NOTAG, Reply::Recall(longest()))));
}

#[test]
fn recalls_over_the_limit_or_with_an_invalid_name_are_rejected() {
    let body = |edit: fn(&mut Vec<u8>)| {
        let mut body = Reply::Recall(longest()).encode(NOTAG).to_body().to_vec();
        edit(&mut body);
        Reply::decode(Bytes::from(body)).unwrap_err().what
    };
    assert_eq!(body(|body| body[11] += 1), "a recall over its limit");
    assert_eq!(body(|body| body[32] = b'/'), "a recalled name that is not clean");
    assert_eq!(body(|body| body[29] = 2), "a flag that is neither 0 nor 1");
    assert_eq!(body(|body| body.truncate(body.len() - 1)), "ends within a field");
}
