use crate::errno::Errno;
use crate::message::tests::reply_is;
use crate::message::{Reply, Tag};

#[test]
fn rerror_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Error(Errno::NotFound.into()),
        "24000000 6b 0100 0200 19006e6f20737563682066696c65206f72206469726563746f7279",
    );
}
