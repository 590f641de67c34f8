//! Strategies for whole messages.

use super::*;
use wirefs_op::limits::RECALL_ITEMS_MAX;
use wirefs_op::message::allocate::{Rallocate, Tallocate};
use wirefs_op::message::alone::Ralone;
use wirefs_op::message::attach::{Leases, Rattach, Tattach, Watch};
use wirefs_op::message::commit::{CommitScope, Rcommit, Tcommit};
use wirefs_op::message::copy::{Rcopy, Tcopy};
use wirefs_op::message::error::Rerror;
use wirefs_op::message::find::{FindMode, Rfind, Tfind};
use wirefs_op::message::flush::{Rflush, Tflush};
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::limited::Rlimited;
use wirefs_op::message::link::{Rlink, Tlink};
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::message::number::Tnumber;
use wirefs_op::message::ping::{Rping, Tping};
use wirefs_op::message::put::{Create, PutMode, Rput, Tput};
use wirefs_op::message::recall::{RecallItem, Rrecall, Trecalled};
use wirefs_op::message::remove::{Rremove, Tremove};
use wirefs_op::message::rename::{Rrename, Trename};
use wirefs_op::message::seek::{Rseek, Tseek};
use wirefs_op::message::statfs::{Rstatfs, Tstatfs};
use wirefs_op::message::times::Rtimes;
use wirefs_op::message::version::{BootId, Rversion, SessionId, Tversion};
use wirefs_op::message::xattr::{Rxattr, Txattr, XattrAction};
use wirefs_op::{Reply, Request, Tag};

pub(crate) fn tag() -> impl Strategy<Value = Tag> {
    any::<u16>().prop_map(Tag)
}

/// Every request.
pub(crate) fn request() -> impl Strategy<Value = Request> {
    prop_oneof![conversation_request(), get(), put(), name_request(), file_request()]
}

/// Every reply.
pub(crate) fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![conversation_reply(), got(), name_reply(), file_reply()]
}

fn conversation_request() -> BoxedStrategy<Request> {
    prop_oneof![
        (word(), text(), long(), any::<[u8; 16]>()).prop_map(|(msize, version, features, session)| {
            Request::Version(Tversion { msize, version, features, session: SessionId(session) })
        }),
        (text(), path()).prop_map(|(uname, path)| Request::Attach(Tattach { uname, path })),
        tag().prop_map(|oldtag| Request::Flush(Tflush { oldtag })),
        Just(Request::Ping(Tping {})),
        long().prop_map(|serial| Request::Recalled(Trecalled { serial })),
        (long(), long()).prop_map(|(number, answered)| Request::Number(Tnumber { number, answered })),
    ]
    .boxed()
}

fn conversation_reply() -> BoxedStrategy<Reply> {
    prop_oneof![
        (word(), text(), long(), long(), any::<bool>(), long()).prop_map(
            |(msize, version, features, boot, resumed, number)| {
                Reply::Version(Rversion { msize, version, features, boot: BootId(boot), resumed, number })
            }
        ),
        (stat(), word(), word(), any::<[bool; 2]>(), prop::option::of(leases())).prop_map(
            |(root, uid, gid, [acts_for_callers, read_only], leases)| {
                Reply::Attach(Rattach { root, uid, gid, acts_for_callers, read_only, leases })
            }
        ),
        (errno(), text()).prop_map(|(errno, ename)| Reply::Error(Rerror { errno, ename })),
        Just(Reply::Flush(Rflush {})),
        Just(Reply::Ping(Rping {})),
        (long(), recalled()).prop_map(|(serial, items)| Reply::Recall(Rrecall { serial, items })),
        (long(), any::<bool>()).prop_map(|(serial, alone)| Reply::Alone(Ralone { serial, alone })),
        Just(Reply::Limited(Rlimited {})),
        (any::<bool>(), word(), word(), word(), word()).prop_map(
            |(is_parked, queue_us, run_us, disk_us, recall_us)| {
                Reply::Times(Rtimes { is_parked, queue_us, run_us, disk_us, recall_us })
            }
        ),
    ]
    .boxed()
}

fn leases() -> impl Strategy<Value = Leases> {
    let watch = prop::sample::select(vec![Watch::None, Watch::Directories, Watch::Filesystem]);
    (word(), any::<bool>(), watch).prop_map(|(term_ms, kept, watch)| Leases { term_ms, kept, watch })
}

fn recalled() -> impl Strategy<Value = Vec<RecallItem>> {
    let item = (id(), prop::option::of(name())).prop_map(|(id, name)| RecallItem { id, name });
    let longest = RecallItem { id: FileId::default(), name: Some(vec![b'n'; NAME_BYTES_MAX]) };
    prop_oneof![
        6 => prop::collection::vec(item, 0..6),
        1 => Just(vec![longest; RECALL_ITEMS_MAX]),
    ]
}

fn get() -> BoxedStrategy<Request> {
    (target(), 0..64_u16, any::<u16>(), long(), word())
        .prop_map(|(target, mode, nmsgs, offset, count)| {
            Request::Get(Tget { target, mode: GetMode(mode), nmsgs, offset, count })
        })
        .boxed()
}

fn got() -> BoxedStrategy<Reply> {
    let bits = [0, 1, 4, 5, 32, 33, 36, 37, 64, 65, 96, 97, 100, 101];
    let present = (fd(), prop::sample::select(bits.to_vec()).prop_map(GotMode), some_stat(), data());
    let absent = prop::sample::select(vec![GotMode::NONE, GotMode::LAST, GotMode::LAST.and(GotMode::PLACE)]);
    prop_oneof![
        6 => present.prop_map(|(fd, mode, stat, data)| Reply::Get(Rget { fd, mode, stat, data })),
        1 => absent.prop_map(|mode| {
            let mode = mode.and(GotMode::ABSENT);
            Reply::Get(Rget { fd: NOFD, mode, stat: None, data: Data::default() })
        }),
    ]
    .boxed()
}

fn put() -> BoxedStrategy<Request> {
    let create = (kind(), word(), word(), cred());
    let create = create.prop_map(|(kind, mode, rdev, cred)| Create { kind, mode, rdev, cred });
    (target(), 0..4096_u16, prop::option::of(create), set(), long(), data())
        .prop_map(|(target, mode, create, set, offset, data)| {
            Request::Put(Tput { target, mode: PutMode(mode), create, set, offset, data })
        })
        .boxed()
}

fn name_request() -> BoxedStrategy<Request> {
    prop_oneof![
        (place(), any::<bool>()).prop_map(|(place, directory)| Request::Remove(Tremove { place, directory })),
        (place(), place(), word()).prop_map(|(from, to, flags)| Request::Rename(Trename { from, to, flags })),
        (target(), place()).prop_map(|(target, to)| Request::Link(Tlink { target, to })),
    ]
    .boxed()
}

fn name_reply() -> BoxedStrategy<Reply> {
    prop_oneof![
        some_stat().prop_map(|dir| Reply::Remove(Rremove { dir })),
        (some_stat(), some_stat(), some_stat()).prop_map(|(stat, from_dir, to_dir)| Reply::Rename(Rrename {
            stat,
            from_dir,
            to_dir
        })),
        (some_stat(), some_stat()).prop_map(|(stat, dir)| Reply::Link(Rlink { stat, dir })),
    ]
    .boxed()
}

fn file_request() -> BoxedStrategy<Request> {
    let action = [XattrAction::Read, XattrAction::List, XattrAction::Set, XattrAction::Remove];
    let action = prop::sample::select(action.to_vec());
    let scope = [CommitScope::Data, CommitScope::File, CommitScope::Filesystem];
    let scope = prop::sample::select(scope.to_vec());
    prop_oneof![
        (target(), action, text(), word(), any::<bool>(), attribute()).prop_map(
            |(target, action, name, flags, kill_sgid, value)| {
                Request::Xattr(Txattr { target, action, name, flags, kill_sgid, value })
            }
        ),
        target().prop_map(|target| Request::Statfs(Tstatfs { target })),
        (target(), lock_action(), family(), long(), range()).prop_map(
            |(target, action, family, owner, range)| {
                Request::Lock(Tlock { target, action, family, owner, range })
            }
        ),
        (target(), word(), long(), long()).prop_map(|(target, mode, offset, length)| {
            Request::Allocate(Tallocate { target, mode, offset, length })
        }),
        (target(), long(), target(), long(), long()).prop_map(
            |(from, from_offset, to, to_offset, length)| {
                Request::Copy(Tcopy { from, from_offset, to, to_offset, length })
            }
        ),
        (target(), long(), any::<bool>()).prop_map(|(target, offset, hole)| Request::Seek(Tseek {
            target,
            offset,
            hole
        })),
        (target(), scope).prop_map(|(target, scope)| Request::Commit(Tcommit { target, scope })),
        (target(), any::<u16>(), word(), word(), word()).prop_map(
            |(target, depth, entries, bytes, inline)| {
                Request::Find(Tfind { target, depth, entries, bytes, inline })
            }
        ),
    ]
    .boxed()
}

fn lock_action() -> impl Strategy<Value = LockAction> {
    prop::sample::select(vec![LockAction::Test, LockAction::Set, LockAction::Wait])
}

fn file_reply() -> BoxedStrategy<Reply> {
    prop_oneof![
        (fd(), word(), long(), long(), some_stat(), some_stat()).prop_map(
            |(fd, count, offset, before, stat, dir)| {
                Reply::Put(Rput { fd, count, offset, before, stat, dir })
            }
        ),
        (some_stat(), attribute()).prop_map(|(stat, value)| Reply::Xattr(Rxattr { stat, value })),
        figures().prop_map(|figures| Reply::Statfs(Rstatfs { figures })),
        (prop::option::of(range()), some_stat())
            .prop_map(|(conflict, stat)| Reply::Lock(Rlock { conflict, stat })),
        some_stat().prop_map(|stat| Reply::Allocate(Rallocate { stat })),
        (long(), some_stat()).prop_map(|(count, stat)| Reply::Copy(Rcopy { count, stat })),
        long().prop_map(|offset| Reply::Seek(Rseek { offset })),
        long().prop_map(|boot| Reply::Commit(Rcommit { boot: BootId(boot) })),
        (prop::sample::select(vec![0, 32, 36]), data())
            .prop_map(|(mode, data)| Reply::Find(Rfind { mode: FindMode(mode), data })),
    ]
    .boxed()
}
