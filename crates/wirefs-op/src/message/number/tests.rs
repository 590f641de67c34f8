use super::Tnumber;
use crate::message::tests::request_is;
use crate::message::{NOTAG, Request};

#[test]
fn tnumber_has_these_bytes() {
    request_is(
        NOTAG,
        Request::Number(Tnumber { number: 9, answered: 7 }),
        "17000000 a2 ffff 0900000000000000 0700000000000000",
    );
}
