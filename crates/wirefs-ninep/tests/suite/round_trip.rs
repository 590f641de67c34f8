//! Decoding what was encoded returns it; damaged messages are rejected or valid, and what is valid encodes to itself.

use bytes::Bytes;
use proptest::prelude::*;
use wirefs_ninep::attributes::{NineTime, SetAttributes};
use wirefs_ninep::message::{Fid, NineLock};
use wirefs_ninep::plan_stat::{PlanStat, SizedStat};
use wirefs_ninep::qid::Qid;
use wirefs_ninep::text::{Few, NineString, Tail};
use wirefs_ninep::{Rmessage, Tmessage};
use wirefs_op::Tag;
use wirefs_op::wire::Data;

fn text() -> impl Strategy<Value = NineString> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| NineString::new(&bytes))
}

fn fid() -> impl Strategy<Value = Fid> {
    any::<u32>().prop_map(Fid)
}

fn tail() -> impl Strategy<Value = Tail> {
    any::<Option<u32>>().prop_map(Tail)
}

fn bytes() -> impl Strategy<Value = Data> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(|bytes| Data(Bytes::from(bytes)))
}

fn qid() -> impl Strategy<Value = Qid> {
    any::<(u8, u32, u64)>().prop_map(|(kind, version, path)| Qid { kind, version, path })
}

fn stat() -> impl Strategy<Value = SizedStat> {
    (qid(), any::<(u16, u32, u32, u32, u32, u64)>(), text(), text(), text(), text()).prop_map(
        |(qid, (kind, dev, mode, atime, mtime, length), name, uid, gid, muid)| {
            SizedStat(PlanStat { kind, dev, qid, mode, atime, mtime, length, name, uid, gid, muid })
        },
    )
}

fn set() -> impl Strategy<Value = SetAttributes> {
    any::<(u32, u32, u32, u32, u64, (u64, u64), (u64, u64))>().prop_map(
        |(valid, mode, uid, gid, size, atime, mtime)| {
            let time = |(secs, nanos)| NineTime { secs, nanos };
            SetAttributes { valid, mode, uid, gid, size, atime: time(atime), mtime: time(mtime) }
        },
    )
}

fn request() -> impl Strategy<Value = Tmessage> {
    let names = prop::collection::vec(text(), 0..=16).prop_map(Few);
    prop_oneof![
        (fid(), fid(), names).prop_map(|(fid, newfid, names)| Tmessage::Walk { fid, newfid, names }),
        (fid(), fid(), text(), text(), tail()).prop_map(|(fid, afid, uname, aname, uid)| Tmessage::Attach {
            fid,
            afid,
            uname,
            aname,
            uid
        }),
        (fid(), any::<u64>(), bytes()).prop_map(|(fid, offset, data)| Tmessage::Write { fid, offset, data }),
        (fid(), stat()).prop_map(|(fid, stat)| Tmessage::Wstat { fid, stat }),
        (fid(), set()).prop_map(|(fid, set)| Tmessage::Setattr { fid, set }),
        (fid(), tail()).prop_map(|(fid, data_only)| Tmessage::Fsync { fid, data_only }),
        (fid(), any::<(u8, u64, u64, u32)>(), text()).prop_map(|(fid, lock, client)| {
            let (kind, start, length, process) = lock;
            Tmessage::Getlock { fid, lock: NineLock { kind, start, length, process, client } }
        }),
        (fid(), text(), fid(), text()).prop_map(|(dir, name, to_dir, to_name)| Tmessage::Renameat {
            dir,
            name,
            to_dir,
            to_name
        }),
    ]
}

fn reply() -> impl Strategy<Value = Rmessage> {
    prop_oneof![
        prop::collection::vec(qid(), 0..=16).prop_map(|qids| Rmessage::Walk { qids: Few(qids) }),
        bytes().prop_map(|data| Rmessage::Read { data }),
        stat().prop_map(|stat| Rmessage::Stat { stat }),
        text().prop_map(|text| Rmessage::Error { text }),
        (qid(), any::<u32>()).prop_map(|(qid, iounit)| Rmessage::Lcreate { qid, iounit }),
    ]
}

/// Decodes as a request and as a reply. A valid message has one encoding.
pub(crate) fn decode_by_all(body: &[u8]) {
    if let Ok((tag, request)) = Tmessage::decode(Bytes::copy_from_slice(body)) {
        assert_eq!(&request.encode(tag).to_body()[..], body);
    }
    if let Ok((tag, reply)) = Rmessage::decode(Bytes::copy_from_slice(body)) {
        assert_eq!(&reply.encode(tag).to_body()[..], body);
    }
}

proptest! {
    #[test]
    fn requests_decode_to_themselves(tag in any::<u16>(), request in request()) {
        let body = request.encode(Tag(tag)).to_body();
        prop_assert_eq!(Tmessage::decode(body).unwrap(), (Tag(tag), request));
    }

    #[test]
    fn replies_decode_to_themselves(tag in any::<u16>(), reply in reply()) {
        let body = reply.encode(Tag(tag)).to_body();
        prop_assert_eq!(Rmessage::decode(body).unwrap(), (Tag(tag), reply));
    }

    #[test]
    fn damaged_messages_are_rejected_or_valid(
        request in request(),
        reply in reply(),
        edits in prop::collection::vec(any::<(u16, u8)>(), 1..4),
        cut in any::<u16>(),
    ) {
        for frame in [request.encode(Tag(1)), reply.encode(Tag(1))] {
            let mut body = frame.to_body().to_vec();
            for (at, byte) in &edits {
                let at = usize::from(*at) % body.len();
                body[at] = *byte;
            }
            decode_by_all(&body);
            body.truncate(usize::from(cut) % body.len());
            decode_by_all(&body);
        }
    }
}
