use super::Ralone;
use crate::message::tests::reply_is;
use crate::message::{NOTAG, Reply};
use bytes::Bytes;

#[test]
fn ralone_has_these_bytes() {
    reply_is(NOTAG, Reply::Alone(Ralone { serial: 9, alone: true }), "10000000 a3 ffff 0900000000000000 01");
    reply_is(
        NOTAG,
        Reply::Alone(Ralone { serial: 10, alone: false }),
        "10000000 a3 ffff 0a00000000000000 00",
    );
}

#[test]
fn a_flag_other_than_0_or_1_is_rejected() {
    let mut body = Reply::Alone(Ralone { serial: 9, alone: true }).encode(NOTAG).to_body().to_vec();
    body[11] = 2;
    assert_eq!(Reply::decode(Bytes::from(body)).unwrap_err().what, "a flag that is neither 0 nor 1");
}
