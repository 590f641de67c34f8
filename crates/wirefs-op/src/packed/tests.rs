use super::{agrees, data, frame, may_pack, split};
use crate::limits::PACKED_BYTES_MAX;
use crate::message::ping::Tping;
use crate::message::version::{BootId, FEATURE_PACKED, FEATURE_TIMES, Rversion};
use crate::wire::Text;
use crate::{Frame, NOTAG, Reply, Request, Tag};
use bytes::Bytes;

fn whole(frame: &Frame) -> Vec<u8> {
    [frame.head.as_slice(), &frame.data].concat()
}

fn version(features: u64) -> Frame {
    let answer = Rversion {
        msize: 197_632,
        version: Text::new(b"op2"),
        features,
        boot: BootId(1),
        resumed: false,
        number: 0,
    };
    Reply::Version(answer).encode(NOTAG)
}

#[test]
fn a_packed_message_keeps_its_data() {
    let packed = frame(Bytes::from_static(b"stream"));
    assert_eq!(whole(&packed), b"\x0d\0\0\0\x02\xff\xffstream");
    assert_eq!(data(&packed.to_body()).as_deref(), Some(&b"stream"[..]));
    assert_eq!(data(&Bytes::from_static(b"\x02")).as_deref(), Some(&b""[..]), "cut short by a peer");
    assert_eq!(data(&Request::Ping(Tping {}).encode(Tag(1)).to_body()), None);
}

#[test]
fn only_an_agreeing_rversion_agrees() {
    assert!(agrees(&version(FEATURE_PACKED | FEATURE_TIMES).to_body()));
    assert!(!agrees(&version(FEATURE_TIMES).to_body()));
    assert!(!agrees(&Bytes::from_static(b"\x65")));
    assert!(!agrees(&Bytes::new()));
}

#[test]
fn rversion_packed_and_long_messages_are_not_packed() {
    assert!(!may_pack(&version(FEATURE_PACKED)));
    assert!(!may_pack(&frame(Bytes::new())));
    let ping = Request::Ping(Tping {}).encode(Tag(1));
    assert!(may_pack(&ping));
    let long = Frame { data: Bytes::from(vec![0; PACKED_BYTES_MAX]), ..ping };
    assert!(!may_pack(&long));
}

#[test]
fn messages_are_split_and_anything_else_is_refused() {
    let ping = Request::Ping(Tping {}).encode(Tag(1));
    let long = Frame { data: Bytes::from(vec![7; 40_000]), head: vec![0x47, 0x9c, 0, 0, 130, 1, 0] };
    let together = Bytes::from([whole(&ping), whole(&long), whole(&ping)].concat());
    assert_eq!(split(&together).unwrap(), [ping.to_body(), long.to_body(), ping.to_body()]);
    assert!(split(&Bytes::new()).unwrap().is_empty());
    for wrong in [&b"\x07\0\0"[..], b"\x08\0\0\0\x02\0\0", b"\x06\0\0\0\x02\0", b"\xff\xff\xff\xff\0\0\0"] {
        split(&Bytes::copy_from_slice(wrong)).unwrap_err();
    }
}
