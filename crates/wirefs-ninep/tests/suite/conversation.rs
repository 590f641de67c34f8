//! Random requests to a conversation over files that only count: each request is answered once, nothing panics, and all
//! that was taken of the files is given back.

use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, Caller, Entry, Handle, Listed, PageCache, ROOT, TreeNodeId};
use wirefs_ninep::message::{Fid, NOFID};
use wirefs_ninep::text::{Few, NineString, Tail};
use wirefs_ninep::{Admitted, Files, NineConversation, NineFault, NineUsers, Rmessage, Tmessage};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, FileId, Kind, NOTAG, Stat, Tag};

/// Lookups and open files that were not given back.
#[derive(Debug, Default)]
struct Counts {
    lookups: BTreeMap<TreeNodeId, u64>,
    handles: BTreeMap<Handle, TreeNodeId>,
    last: u64,
}

/// Each directory has a directory `d` and a file `f`; a node's number is that of its path.
#[derive(Default)]
struct Counting(Mutex<Counts>);

fn stat(node: TreeNodeId) -> Stat {
    let kind = if node.0.is_multiple_of(2) { Kind::File } else { Kind::Directory };
    Stat { size: 10, ..Stat::blank(FileId { fs: 0, ino: node.0, generation: 0 }, kind) }
}

impl Counting {
    fn entry(&self, parent: TreeNodeId, name: &[u8]) -> Result<Entry, Errno> {
        let node = match name {
            b"d" => TreeNodeId((parent.0 + 1) * 2 + 1),
            b"f" => TreeNodeId((parent.0 + 1) * 2),
            _ => return Err(Errno::NotFound),
        };
        *self.0.lock().unwrap().lookups.entry(node).or_default() += 1;
        let ttl = Duration::ZERO;
        Ok(Entry { node, stat: stat(node), entry_ttl: ttl, attr_ttl: ttl, is_held: false })
    }

    fn open(&self, node: TreeNodeId) -> Handle {
        let mut counts = self.0.lock().unwrap();
        counts.last += 1;
        let handle = Handle(counts.last);
        counts.handles.insert(handle, node);
        handle
    }

    fn release(&self, node: TreeNodeId, handle: Handle) {
        assert_eq!(self.0.lock().unwrap().handles.remove(&handle), Some(node), "closed once");
    }

    fn forget(&self, node: TreeNodeId, count: u64) {
        let mut counts = self.0.lock().unwrap();
        let left = counts.lookups.get_mut(&node).expect("a node that is held");
        *left = left.checked_sub(count).expect("no more than was taken");
        if *left == 0 {
            counts.lookups.remove(&node);
        }
    }

    fn listing(&self, node: TreeNodeId, offset: u64, with_stats: bool) -> Vec<Listed> {
        let names: [&[u8]; 2] = [b"d", b"f"];
        let rest = names.iter().zip(1..).skip(offset as usize);
        rest.map(|(name, next)| Listed {
            name: name.to_vec(),
            next,
            ino: next,
            st_mode: 0o100_644,
            entry: with_stats.then(|| self.entry(node, name).unwrap()),
        })
        .collect()
    }
}

impl Files for Counting {
    fn call(&self, _: Caller, call: Call<'_>) -> Answer {
        match call {
            Call::Lookup { parent, name } => match self.entry(parent, name) {
                Ok(entry) => Answer::Entry(entry),
                Err(_) => Answer::NoEntry(Duration::ZERO),
            },
            Call::Forget { node, count } => {
                self.forget(node, count);
                Answer::Done
            }
            Call::Getattr { node, .. } | Call::Setattr { node, .. } => {
                Answer::Attr(stat(node), Duration::ZERO)
            }
            Call::Mkdir { parent, name, .. } | Call::Symlink { parent, name, .. } => {
                self.entry(parent, name).map_or_else(Answer::Fail, Answer::Entry)
            }
            Call::Create { parent, name, .. } => match self.entry(parent, name) {
                Ok(entry) => Answer::Created(entry, self.open(entry.node), PageCache::Keep),
                Err(errno) => Answer::Fail(errno),
            },
            Call::Open { node, .. } | Call::Opendir { node } => {
                Answer::Opened(self.open(node), PageCache::Keep)
            }
            Call::Release { node, handle, .. } | Call::Releasedir { node, handle } => {
                self.release(node, handle);
                Answer::Done
            }
            Call::Readdir { node, offset, with_stats, .. } => {
                Answer::Listing(self.listing(node, offset, with_stats))
            }
            Call::Read { count, .. } => Answer::Data(Bytes::from(vec![7; count.min(10) as usize])),
            Call::Write { data, .. } => Answer::Count(data.len() as u32),
            Call::Getxattr { .. } | Call::Listxattr { .. } => Answer::Data(Bytes::from_static(b"value")),
            _ => Answer::Done,
        }
    }
}

fn fid() -> impl Strategy<Value = Fid> {
    prop_oneof![8 => (0..6_u32).prop_map(Fid), 1 => Just(NOFID)]
}

fn name() -> impl Strategy<Value = NineString> {
    prop::sample::select(vec!["d", "f", "none", "..", ".", "", "a/b"])
        .prop_map(|name| NineString::new(name.as_bytes()))
}

fn request() -> impl Strategy<Value = Tmessage> {
    let empty = NineString::default;
    let names = prop::collection::vec(name(), 0..4).prop_map(Few);
    prop_oneof![
        (fid(), name()).prop_map(move |(fid, aname)| Tmessage::Attach {
            fid,
            afid: NOFID,
            uname: empty(),
            aname,
            uid: Tail(None)
        }),
        (fid(), fid(), names).prop_map(|(fid, newfid, names)| Tmessage::Walk { fid, newfid, names }),
        (fid(), any::<u8>()).prop_map(|(fid, mode)| Tmessage::Open { fid, mode }),
        (fid(), 0..4_u32).prop_map(|(fid, flags)| Tmessage::Lopen { fid, flags }),
        (fid(), name(), any::<u32>(), any::<u8>()).prop_map(|(fid, name, perm, mode)| Tmessage::Create {
            fid,
            name,
            perm,
            mode
        }),
        (fid(), name()).prop_map(|(fid, name)| Tmessage::Lcreate {
            fid,
            name,
            flags: 2,
            mode: 0o644,
            gid: 0
        }),
        (fid(), 0..200_u64, 0..400_u32).prop_map(|(fid, offset, count)| Tmessage::Read {
            fid,
            offset,
            count
        }),
        (fid(), 0..3_u64, 0..400_u32).prop_map(|(fid, offset, count)| Tmessage::Readdir {
            fid,
            offset,
            count
        }),
        (fid(), 0..9_u64).prop_map(|(fid, offset)| Tmessage::Write {
            fid,
            offset,
            data: Data(Bytes::from_static(b"ab"))
        }),
        (fid(), fid(), name()).prop_map(|(fid, newfid, name)| Tmessage::Xattrwalk { fid, newfid, name }),
        (fid(), name()).prop_map(|(fid, name)| Tmessage::Xattrcreate { fid, name, size: 2, flags: 0 }),
        (fid(), name()).prop_map(|(dir, name)| Tmessage::Mkdir { dir, name, mode: 0o755, gid: 0 }),
        (fid(), fid(), name()).prop_map(|(fid, dir, name)| Tmessage::Rename { fid, dir, name }),
        (fid(), 0..3_u8, 0..4_u32).prop_map(|(fid, kind, process)| Tmessage::Lock {
            fid,
            kind,
            flags: 0,
            start: 0,
            length: 0,
            process,
            client: NineString::default()
        }),
        (fid(), any::<u64>()).prop_map(|(fid, mask)| Tmessage::Getattr { fid, mask }),
        fid().prop_map(|fid| Tmessage::Stat { fid }),
        fid().prop_map(|fid| Tmessage::Clunk { fid }),
        fid().prop_map(|fid| Tmessage::Remove { fid }),
    ]
}

fn begin(version: &[u8]) -> (Arc<Counting>, NineConversation) {
    let files = Arc::new(Counting::default());
    let conversation =
        NineConversation::new(Arc::clone(&files) as Arc<dyn Files>, NineUsers { uid: 0, gid: 0 }, 1);
    let version = Tmessage::Version { msize: 8192, version: NineString::new(version) };
    let admitted = conversation.admit(version.encode(NOTAG).to_body());
    assert!(matches!(admitted, Ok(Admitted::Reply(_))));
    (files, conversation)
}

fn all_given_back(files: &Counting) {
    let counts = files.0.lock().unwrap();
    assert!(counts.lookups.is_empty() && counts.handles.is_empty(), "{counts:?}");
}

proptest! {
    #[test]
    fn each_request_is_answered_once_and_all_is_given_back(
        linux in any::<bool>(),
        requests in prop::collection::vec(request(), 0..60),
    ) {
        let (files, conversation) = begin(if linux { b"9P2000.L" } else { b"9P2000" });
        let attach = Tmessage::Attach {
            fid: Fid(0),
            afid: NOFID,
            uname: NineString::default(),
            aname: NineString::default(),
            uid: Tail(None),
        };
        for (request, tag) in std::iter::once(attach).chain(requests).zip(0..) {
            let Ok(Admitted::Job(job)) = conversation.admit(request.encode(Tag(tag)).to_body()) else {
                panic!("{request:?} is a job");
            };
            let frames = conversation.finish(conversation.execute(job));
            prop_assert_eq!(frames.len(), 1);
            let (answered, reply) = Rmessage::decode(frames[0].to_body()).unwrap();
            let is_error = matches!(reply, Rmessage::Lerror { .. } | Rmessage::Error { .. });
            prop_assert!(answered == Tag(tag) && (is_error || reply.code() == request.code() + 1), "{reply:?}");
        }
        drop(conversation);
        all_given_back(&files);
    }
}

#[test]
fn flushes_follow_their_requests_and_a_version_cancels_all() {
    let (files, conversation) = begin(b"9P2000.L");
    let admit = |tag, request: Tmessage| conversation.admit(request.encode(Tag(tag)).to_body());
    let attach = || Tmessage::Attach {
        fid: Fid(0),
        afid: NOFID,
        uname: NineString::default(),
        aname: NineString::new(b"d"),
        uid: Tail(None),
    };
    let Ok(Admitted::Job(job)) = admit(1, attach()) else { panic!("a job") };
    assert!(matches!(admit(1, attach()), Err(NineFault::TagInUse(Tag(1)))));
    // A flush of the request, one of that flush, and one of nothing.
    assert!(matches!(admit(2, Tmessage::Flush { old: 1 }), Ok(Admitted::Later)));
    assert!(matches!(admit(3, Tmessage::Flush { old: 2 }), Ok(Admitted::Later)));
    assert!(matches!(admit(4, Tmessage::Flush { old: 9 }), Ok(Admitted::Reply(_))));
    let frames = conversation.finish(conversation.execute(job));
    let tags: Vec<Tag> = frames.iter().map(|frame| Rmessage::decode(frame.to_body()).unwrap().0).collect();
    assert_eq!(tags, [Tag(1), Tag(2), Tag(3)]);
    let Ok(Admitted::Job(job)) = admit(5, Tmessage::Stat { fid: Fid(0) }) else { panic!("a job") };
    let version = Tmessage::Version { msize: 8192, version: NineString::new(b"9P2000") };
    assert!(matches!(conversation.admit(version.encode(NOTAG).to_body()), Ok(Admitted::Reply(_))));
    assert!(conversation.finish(conversation.execute(job)).is_empty());
    all_given_back(&files);
    assert_eq!(ROOT, TreeNodeId(1), "the root is a directory of these files");
}

#[test]
fn a_client_has_a_bounded_number_of_requests() {
    let (_, conversation) = begin(b"9P2000.L");
    let stat = |tag| conversation.admit(Tmessage::Stat { fid: Fid(0) }.encode(Tag(tag)).to_body());
    let jobs: Vec<_> = (0..wirefs_ninep::limits::REQUESTS_MAX as u16).map(stat).collect();
    assert!(jobs.iter().all(|job| matches!(job, Ok(Admitted::Job(_)))));
    assert!(matches!(stat(9999), Err(NineFault::TooMany)));
}
