use super::{Rxattr, Txattr, XattrAction};
use crate::message::target::NOFD;
use crate::message::tests::{reply_is, request_is, target};
use crate::message::{Reply, Request, Tag};
use crate::wire::{Data, Text};
use bytes::Bytes;

#[test]
fn txattr_has_these_bytes() {
    request_is(
        Tag(1),
        Request::Xattr(Txattr {
            target: target(b"d/f", NOFD, None),
            action: XattrAction::Set,
            name: Text::new(b"user.k"),
            flags: 1,
            kill_sgid: false,
            value: Data(Bytes::from_static(b"v")),
        }),
        "22000000 8a 0100 0300642f66 ffff 00 02 0600757365722e6b 01000000 00 01000000 76",
    );
}

#[test]
fn rxattr_has_these_bytes() {
    reply_is(
        Tag(1),
        Reply::Xattr(Rxattr { stat: None, value: Data(Bytes::from_static(b"v")) }),
        "0d000000 8b 0100 00 01000000 76",
    );
}
