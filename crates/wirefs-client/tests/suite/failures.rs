//! Changes that fail, of which a part may be done nonetheless, and servers that say that they did too much.

use crate::alone::{Alone, got, stat};
use crate::deeds::{READ_WRITE, getattr, write};
use bytes::Bytes;
use wirefs_cache::PIECE_BYTES;
use wirefs_client::call::{Answer, Call, Handle, ROOT, TreeNodeId};
use wirefs_op::message::commit::Rcommit;
use wirefs_op::message::copy::Rcopy;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::get::{GotMode, Rget};
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::Fd;
use wirefs_op::message::version::BootId;
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, Reply, SetStat, Stat};

/// A file of 10 bytes that is known under a lease.
fn known() -> (Alone, TreeNodeId) {
    let mut alone = Alone::leased();
    let (node, _) = alone.open(10);
    alone.asked.clear();
    let asking = alone.call(getattr(node));
    if let Some((tag, _)) = alone.asked.pop_front() {
        let leased = Stat { leased: true, ..stat(9, Kind::File, 10) };
        alone.reply(tag, &got(GotMode::LAST, Some(leased), b"")).unwrap();
    }
    assert!(alone.answer(asking).is_some());
    assert!(!asks(&mut alone, node), "it is not known");
    (alone, node)
}

/// Whether the server is asked for the attributes.
fn asks(alone: &mut Alone, node: TreeNodeId) -> bool {
    alone.asked.clear();
    alone.call(getattr(node));
    !alone.asked.is_empty()
}

fn setattr(alone: &mut Alone, node: TreeNodeId, set: SetStat, errno: Errno) {
    let call = alone.call(Call::Setattr { node, handle: None, set, kill_privileges: false });
    let tag = alone.next();
    alone.reply(tag, &Reply::Error(Rerror::from(errno))).unwrap();
    assert_eq!(alone.answer(call), Some(&Answer::Fail(errno)));
}

#[test]
fn what_a_failed_change_may_have_changed_is_asked_for_again() {
    let size = SetStat { size: Some(5), ..SetStat::default() };
    let size_and_owner = SetStat { uid: Some(7), ..size };
    let expected = [
        // The file was cut before the owner was refused.
        (size_and_owner, Errno::NotPermitted, true),
        (size, Errno::Io, true),
        (size, Errno::AccessDenied, false),
    ];
    for (set, errno, is_doubted) in expected {
        let (mut alone, node) = known();
        setattr(&mut alone, node, set, errno);
        assert_eq!(asks(&mut alone, node), is_doubted, "{set:?} {errno:?}");
    }
}

/// Opened to be written, where writes wait for their replies.
fn opened() -> (Alone, TreeNodeId, Handle) {
    opened_in("strict")
}

/// The same in a mode.
pub(crate) fn opened_in(mode: &str) -> (Alone, TreeNodeId, Handle) {
    let mut alone = Alone::in_mode(mode);
    let lookup = alone.call(Call::Lookup { parent: ROOT, name: b"f" });
    let tag = alone.next();
    alone.reply(tag, &got(GotMode::LAST, Some(stat(9, Kind::File, 10)), b"")).unwrap();
    let Some(Answer::Entry(entry)) = alone.answer(lookup) else { panic!() };
    let node = entry.node;
    let handle = open(&mut alone, node);
    (alone, node, handle)
}

fn open(alone: &mut Alone, node: TreeNodeId) -> Handle {
    let open = alone.call(Call::Open { node, how: READ_WRITE });
    let tag = alone.next();
    alone.reply(tag, &put(0)).unwrap();
    let Some(Answer::Opened(handle, _)) = alone.answer(open).cloned() else { panic!() };
    handle
}

fn put(count: u32) -> Reply {
    let stat = Some(stat(9, Kind::File, 10));
    Reply::Put(Rput { fd: Fd(3), count, offset: 0, before: 5, stat, dir: None })
}

#[test]
fn servers_that_did_more_than_they_were_asked_to_fail_the_call() {
    for count in [5, u32::MAX] {
        let (mut alone, node, handle) = opened();
        let call = alone.call(write(node, handle, 0, b"four"));
        let tag = alone.next();
        alone.reply(tag, &put(count)).unwrap();
        assert_eq!(alone.answer(call), Some(&Answer::Fail(Errno::Protocol)), "{count} bytes");
    }
    let (mut alone, node, handle) = opened();
    let call = alone.call(Call::CopyRange {
        from: node,
        from_handle: handle,
        from_offset: 0,
        to: node,
        to_handle: handle,
        to_offset: 5,
        length: 4,
    });
    let tag = alone.next();
    alone.reply(tag, &Reply::Copy(Rcopy { count: 5, stat: None })).unwrap();
    assert_eq!(alone.answer(call), Some(&Answer::Fail(Errno::Protocol)));
}

#[test]
fn a_file_that_is_all_hole_leaves_as_many_pieces_as_were_read() {
    let mut alone = Alone::new();
    let size = i64::MAX as u64;
    let (node, handle) = alone.open(size);
    let offset = (1 << 40) + PIECE_BYTES;
    let call = alone.call(Call::Read { node, handle, offset, count: PIECE_BYTES as u32 });
    let tag = alone.next();
    let data = Data(Bytes::from(vec![0; PIECE_BYTES as usize]));
    let stat = Some(stat(9, Kind::File, size));
    let mode = GotMode::DATA.and(GotMode::MORE).and(GotMode::LAST);
    alone.reply(tag, &Reply::Get(Rget { fd: Fd(3), mode, stat, data })).unwrap();
    assert!(matches!(alone.answer(call), Some(Answer::Data(_))));
    let pieces: Vec<u64> = alone.client.pieces().map(|(piece, _)| piece.offset).collect();
    assert_eq!(pieces, [offset]);
}

#[test]
fn error_of_a_closed_file_is_reported_to_the_next_fsync_once() {
    let (mut alone, node, handle) = opened_in("window");
    let written = alone.call(write(node, handle, 0, b"four"));
    assert_eq!(alone.answer(written), Some(&Answer::Count(4)));
    let writing = alone.next();
    alone.call(Call::Release { node, handle, flock_owner: None });
    alone.reply(writing, &Reply::Error(Rerror::from(Errno::NoSpace))).unwrap();
    alone.asked.clear();
    let handle = open(&mut alone, node);
    let mut fsync = || {
        let call = alone.call(Call::Fsync { node, handle, data_only: false });
        let tag = alone.next();
        alone.reply(tag, &Reply::Commit(Rcommit { boot: BootId(1) })).unwrap();
        alone.answer(call).cloned()
    };
    assert_eq!(fsync(), Some(Answer::Fail(Errno::NoSpace)));
    assert_eq!(fsync(), Some(Answer::Done));
}
