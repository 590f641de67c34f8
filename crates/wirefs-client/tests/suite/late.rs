//! A server that answers pings, and not each request.

use crate::alone::{Alone, got, stat};
use crate::deeds::{READ, READ_WRITE, write};
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Handle, OpenHow, ROOT, TreeNodeId};
use wirefs_op::limits::REQUESTS_MAX;
use wirefs_op::message::alone::Ralone;
use wirefs_op::message::flush::{Rflush, Tflush};
use wirefs_op::message::get::{GetMode, GotMode, Rget};
use wirefs_op::message::ping::Rping;
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, Kind, LockFamily, LockKind, LockRange, NOTAG, Reply, Request, Tag};

/// The deadline of these mounts, and the time that a server may wait for other clients.
const LIMIT: u64 = 30 + 50;

/// Lets so many seconds pass, in which the server answers pings, and each other request in the way of `act`.
fn pass(alone: &mut Alone, seconds: u64, mut act: impl FnMut(&mut Alone, Tag, &Request)) {
    for _ in 0..seconds {
        while let Some((tag, request)) = alone.asked.pop_front() {
            match request {
                Request::Ping(_) => alone.reply(tag, &Reply::Ping(Rping {})).unwrap(),
                other => act(alone, tag, &other),
            }
        }
        alone.tick(Duration::from_secs(1));
    }
}

fn attributes(alone: &mut Alone, tag: Tag) {
    alone.reply(tag, &got(GotMode::LAST, Some(stat(9, Kind::File, 10)), b"")).unwrap();
}

fn timed_out(alone: &Alone, call: CallId) -> bool {
    match alone.answer(call) {
        None => false,
        Some(answer) => {
            assert_eq!(answer, &Answer::Fail(Errno::TimedOut));
            true
        }
    }
}

// S-166
#[test]
fn a_read_fails_that_a_server_never_answers_whatever_else_it_answers() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(10);
    let read = alone.call(Call::Read { node, handle, offset: 0, count: 10 });
    let tag = alone.next();
    for second in 0..LIMIT - 1 {
        let later = alone.call(Call::Statfs { node: ROOT });
        pass(&mut alone, 1, |alone, tag, _| {
            alone
                .reply(
                    tag,
                    &Reply::Statfs(wirefs_op::message::statfs::Rstatfs { figures: Default::default() }),
                )
                .unwrap();
        });
        assert!(alone.answer(later).is_some() && !timed_out(&alone, read), "second {second}");
    }
    assert_eq!(alone.client.snapshot().late.get("Get"), Some(&1));
    pass(&mut alone, 3, |_, _, _| ());
    assert!(timed_out(&alone, read));
    assert_eq!((alone.hang_ups, alone.client.snapshot().timed_out), (0, 1));
    // A reply that comes nevertheless is no fault, and a new read asks again.
    attributes(&mut alone, tag);
    alone.asked.clear();
    let again = alone.call(Call::Read { node, handle, offset: 0, count: 10 });
    let tag = alone.next();
    let reply = got(GotMode::DATA.and(GotMode::LAST), Some(stat(9, Kind::File, 10)), b"0123456789");
    alone.reply(tag, &reply).unwrap();
    assert!(matches!(alone.answer(again), Some(Answer::Data(data)) if data.len() == 10));
}

// S-166
#[test]
fn a_change_fails_that_a_server_never_answers() {
    let mut alone = Alone::new();
    let mkdir = alone.call(Call::Mkdir { parent: ROOT, name: b"d", mode: 0o755, umask: 0 });
    pass(&mut alone, LIMIT - 1, |_, _, _| ());
    assert!(!timed_out(&alone, mkdir));
    pass(&mut alone, 3, |_, _, _| ());
    assert!(timed_out(&alone, mkdir));
}

// S-166
#[test]
fn a_read_waits_for_the_replies_to_earlier_requests() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(10);
    let first = alone.call(Call::Statfs { node: ROOT });
    let early = alone.next();
    let read = alone.call(Call::Read { node, handle, offset: 0, count: 10 });
    pass(&mut alone, LIMIT - 5, |_, _, _| ());
    let figures = Reply::Statfs(wirefs_op::message::statfs::Rstatfs { figures: Default::default() });
    alone.reply(early, &figures).unwrap();
    assert!(alone.answer(first).is_some());
    pass(&mut alone, LIMIT - 5, |_, _, _| ());
    assert!(!timed_out(&alone, read));
    pass(&mut alone, 10, |_, _, _| ());
    assert!(timed_out(&alone, read));
}

// S-166
#[test]
fn waiting_locks_and_long_syncs_are_not_cut_short() {
    let mut alone = Alone::in_mode("window");
    let (node, handle) = alone.open(10);
    let (family, range) = (LockFamily::Posix, LockRange { kind: LockKind::Write, start: 0, end: 9, pid: 1 });
    let lock = alone.call(Call::Setlk { node, handle, owner: 1, family, range, wait: true });
    let sync = alone.call(Call::Fsync { node, handle, data_only: false });
    pass(&mut alone, 9 * LIMIT, |_, _, _| ());
    assert!(!timed_out(&alone, lock) && !timed_out(&alone, sync));
    pass(&mut alone, 2 * LIMIT, |_, _, _| ());
    assert!(!timed_out(&alone, lock));
}

/// The calls that ask the server, each of a directory or of this open file.
fn queries(node: TreeNodeId, handle: Handle) -> Vec<Call<'static>> {
    let (family, range) = (LockFamily::Posix, LockRange { kind: LockKind::Write, start: 0, end: 9, pid: 1 });
    vec![
        Call::Lookup { parent: ROOT, name: b"x" },
        Call::Getattr { node, handle: None },
        Call::Read { node, handle, offset: 0, count: 10 },
        Call::Opendir { node: ROOT },
        Call::Getlk { node, handle, owner: 1, family, range },
        Call::Statfs { node: ROOT },
        Call::Getxattr { node, name: b"user.x", size_max: 100 },
        Call::Lseek { node, handle, offset: 0, whence: 3 },
    ]
}

/// Makes these calls of a server that answers pings only: each fails in time, and the connection stays.
fn each_times_out(mut alone: Alone, calls: Vec<Call<'static>>) {
    pass(&mut alone, 3, |_, _, _| ());
    let ids: Vec<_> = calls.iter().map(|call| (alone.call(*call), call)).collect();
    pass(&mut alone, LIMIT - 1, |_, _, _| ());
    assert!(ids.iter().all(|(id, _)| !timed_out(&alone, *id)));
    pass(&mut alone, 3, |_, _, _| ());
    for (id, call) in ids {
        assert!(timed_out(&alone, id), "{call:?}");
    }
    assert_eq!(alone.hang_ups, 0);
}

// S-166
#[test]
fn calls_fail_that_wait_for_a_place_among_the_requests() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(10);
    for number in 0..=REQUESTS_MAX {
        alone.call(Call::Lookup { parent: ROOT, name: format!("{number}").as_bytes() });
    }
    each_times_out(alone, queries(node, handle));
}

// S-166
#[test]
fn calls_that_wait_for_changes_time_out() {
    let mut alone = Alone::new();
    let (node, handle) = alone.open(10);
    alone.call(write(node, handle, 0, b"0123456789"));
    each_times_out(alone, queries(node, handle));
}

// S-166
#[test]
fn calls_fail_that_wait_for_unconfirmed_changes_or_delegated_locks() {
    let mut alone = Alone::journaled();
    alone.lost();
    alone.connected_with_leases(1, 1);
    alone.reply(NOTAG, &Reply::Alone(Ralone { serial: 1, alone: true })).unwrap();
    alone.asked.clear();
    let (node, handle) = alone.open(10);
    alone.asked.clear();
    let (family, range) = (LockFamily::Posix, LockRange { kind: LockKind::Write, start: 0, end: 9, pid: 1 });
    alone.call(Call::Setlk { node, handle, owner: 2, family, range, wait: false });
    let delegates = |request: &Request| matches!(request, Request::Lock(lock) if lock.range.end == u64::MAX);
    assert!(alone.asked.iter().any(|(_, request)| delegates(request)), "{:?}", alone.asked);
    alone.call(write(node, handle, 0, b"0123456789"));
    each_times_out(alone, queries(node, handle));
}

/// A file that is known, and not open.
fn known(alone: &mut Alone) -> TreeNodeId {
    let call = alone.call(Call::Lookup { parent: ROOT, name: b"f" });
    let tag = alone.next();
    alone.reply(tag, &got(GotMode::LAST.and(GotMode::MORE), Some(stat(9, Kind::File, 10)), b"")).unwrap();
    let Some(Answer::Entry(entry)) = alone.answer(call) else { panic!("no entry") };
    entry.node
}

/// The fds that the server is asked to close.
fn closed(alone: &mut Alone) -> Vec<Fd> {
    let closes = |request: Request| match request {
        Request::Get(get) if !get.mode.has(GetMode::MORE) => Some(get.target.fd).filter(|fd| *fd != NOFD),
        _ => None,
    };
    alone.asked.drain(..).filter_map(|(_, request)| closes(request)).collect()
}

// S-166
#[test]
fn late_reply_to_an_open_has_its_fd_closed_at_the_server() {
    for how in [READ, READ_WRITE, OpenHow { direct: true, ..READ }] {
        let mut alone = Alone::new();
        let node = known(&mut alone);
        let open = alone.call(Call::Open { node, how });
        let (tag, request) = alone.asked.pop_front().unwrap();
        pass(&mut alone, LIMIT + 3, |_, _, _| ());
        assert!(timed_out(&alone, open), "{how:?}");
        alone.asked.clear();
        let reply = match request {
            Request::Get(_) => Reply::Get(Rget {
                fd: Fd(7),
                mode: GotMode::LAST,
                stat: Some(stat(9, Kind::File, 10)),
                data: Data::default(),
            }),
            Request::Put(_) => {
                Reply::Put(Rput { fd: Fd(7), count: 0, offset: 0, before: 5, stat: None, dir: None })
            }
            other => panic!("{other:?}"),
        };
        alone.reply(tag, &reply).unwrap();
        assert_eq!(closed(&mut alone), [Fd(7)], "{how:?}");
    }
}

// S-72
#[test]
fn wait_for_a_lock_ends_though_other_requests_take_the_tags() {
    let mut alone = Alone::in_mode("window");
    let (node, handle) = alone.open(10);
    let (family, range) = (LockFamily::Posix, LockRange { kind: LockKind::Write, start: 0, end: 9, pid: 1 });
    let lock = alone.call(Call::Setlk { node, handle, owner: 1, family, range, wait: true });
    let (oldtag, _) = alone.asked.pop_back().unwrap();
    for number in 0..=REQUESTS_MAX {
        alone.call(Call::Lookup { parent: ROOT, name: format!("{number}").as_bytes() });
    }
    alone.call(Call::Interrupt { call: lock });
    let (tag, request) = alone.asked.pop_back().unwrap();
    assert_eq!(request, Request::Flush(Tflush { oldtag }));
    alone.reply(tag, &Reply::Flush(Rflush {})).unwrap();
    assert_eq!(alone.answer(lock), Some(&Answer::Fail(Errno::Interrupted)));
}
