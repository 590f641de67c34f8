use super::{BootId, Rversion, SessionId, Tversion, VERSION};
use crate::message::tests::{reply_is, request_is};
use crate::message::{NOTAG, Reply, Request};
use crate::wire::Text;

#[test]
fn tversion_has_these_bytes() {
    request_is(
        NOTAG,
        Request::Version(Tversion {
            msize: 197_632,
            version: Text::new(VERSION),
            features: 0,
            session: SessionId(std::array::from_fn(|at| at as u8)),
        }),
        "28000000 64 ffff 00040300 03006f7032 0000000000000000 000102030405060708090a0b0c0d0e0f",
    );
}

#[test]
fn rversion_has_these_bytes() {
    reply_is(
        NOTAG,
        Reply::Version(Rversion {
            msize: 197_632,
            version: Text::new(VERSION),
            features: 0,
            boot: BootId(0x1122_3344_5566_7788),
            resumed: true,
            number: 9,
        }),
        "29000000 65 ffff 00040300 03006f7032 0000000000000000 8877665544332211 01 0900000000000000",
    );
}
