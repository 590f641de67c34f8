use super::Rlimited;
use crate::message::tests::reply_is;
use crate::message::{NOTAG, Reply};

#[test]
fn rlimited_has_these_bytes() {
    reply_is(NOTAG, Reply::Limited(Rlimited {}), "07000000 a5 ffff");
}
