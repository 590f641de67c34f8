//! Locks that the server grants: data read under them was asked for after the grant.

use crate::alone::{Alone, KernelStep, got, stat};
use crate::deeds::{READ_WRITE, data, write};
use bytes::Bytes;
use std::time::Duration;
use wirefs_client::call::{Answer, Call, CallId, Handle, Invalidate, ROOT, TreeNodeId};
use wirefs_op::message::get::{GetMode, GotMode};
use wirefs_op::message::lock::Rlock;
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::Fd;
use wirefs_op::{Kind, LockFamily, LockKind, LockRange, Reply, Request, Stat, Tag};

/// A file of 8 bytes that is open, with all of its contents in memory.
struct Open {
    alone: Alone,
    node: TreeNodeId,
    handle: Handle,
    is_leased: bool,
}

impl Open {
    fn in_window() -> Open {
        Open::of(Alone::new(), false)
    }

    fn leased() -> Open {
        Open::of(Alone::leased(), true)
    }

    fn of(mut alone: Alone, is_leased: bool) -> Open {
        let stat = Open::stat_of(5, is_leased);
        let lookup = alone.call(Call::Lookup { parent: ROOT, name: b"f" });
        let tag = alone.next();
        alone.reply(tag, &got(GotMode::LAST, Some(stat), b"")).unwrap();
        let Some(Answer::Entry(entry)) = alone.answer(lookup) else { panic!() };
        let node = entry.node;
        let open = alone.call(Call::Open { node, how: READ_WRITE });
        let tag = alone.next();
        alone
            .reply(
                tag,
                &Reply::Put(Rput { fd: Fd(3), count: 0, offset: 0, before: 5, stat: Some(stat), dir: None }),
            )
            .unwrap();
        let Some(Answer::Opened(handle, _)) = alone.answer(open).cloned() else { panic!() };
        let mut open = Open { alone, node, handle, is_leased };
        assert_eq!(open.read_anew(5, b"old old "), "old old ");
        assert_eq!(open.known(), Some(Bytes::from_static(b"old old ")));
        open
    }

    fn stat_of(version: u64, leased: bool) -> Stat {
        Stat { version, leased, ..stat(9, Kind::File, 8) }
    }

    fn stat(&self, version: u64) -> Stat {
        Open::stat_of(version, self.is_leased)
    }

    fn asks_to_read(&mut self) -> CallId {
        self.alone.call(Call::Read { node: self.node, handle: self.handle, offset: 0, count: 8 })
    }

    /// Reads what is known without asking the server.
    fn known(&mut self) -> Option<Bytes> {
        let call = self.asks_to_read();
        self.alone.answer(call).cloned().map(data)
    }

    /// Reads what the server has, with this version.
    fn read_anew(&mut self, version: u64, contents: &[u8]) -> Bytes {
        let call = self.asks_to_read();
        assert_eq!(self.alone.answer(call), None, "asked of the server");
        while let Some((tag, request)) = self.alone.asked.pop_front() {
            self.gets(tag, &request, version, contents);
        }
        data(self.alone.answer(call).cloned().unwrap())
    }

    fn gets(&mut self, tag: Tag, request: &Request, version: u64, contents: &[u8]) {
        let Request::Get(get) = request else { panic!("{request:?}") };
        let read = if get.mode.has(GetMode::DATA) { contents } else { b"" };
        let mode = GotMode::LAST.and(GotMode::MORE).and_if(get.mode.has(GetMode::DATA), GotMode::DATA);
        self.alone.reply(tag, &got(mode, Some(self.stat(version)), read)).unwrap();
    }

    /// Writes to the second half; the call is answered at once.
    fn writes(&mut self) -> Tag {
        let call = self.alone.call(write(self.node, self.handle, 4, b"own "));
        assert_eq!(self.alone.answer(call), Some(&Answer::Count(4)));
        self.next_is("Put")
    }

    fn written(&mut self, tag: Tag, before: u64, after: u64) {
        let stat = Some(self.stat(after));
        let reply = Rput { fd: Fd(3), count: 4, offset: 4, before, stat, dir: None };
        self.alone.reply(tag, &Reply::Put(reply)).unwrap();
    }

    /// Asks for a lock and waits for it.
    fn asks_to_lock(&mut self) -> (CallId, Tag) {
        let range = LockRange { kind: LockKind::Write, start: 0, end: 3, pid: 0 };
        let (node, handle, family) = (self.node, self.handle, LockFamily::Posix);
        let call = self.alone.call(Call::Setlk { node, handle, owner: 1, family, range, wait: true });
        assert_eq!(self.alone.answer(call), None);
        (call, self.next_is("Lock"))
    }

    fn granted(&mut self, (call, tag): (CallId, Tag), stat: Stat) {
        self.alone.kernel_steps.clear();
        let reply = Rlock { conflict: None, stat: Some(stat) };
        self.alone.reply(tag, &Reply::Lock(reply)).unwrap();
        assert_eq!(self.alone.answer(call), Some(&Answer::Done));
    }

    fn next_is(&mut self, name: &str) -> Tag {
        let (tag, request) = self.alone.asked.pop_front().expect("nothing was asked");
        assert_eq!(request.name(), name);
        tag
    }

    /// The kernel has dropped its pages, and the client its contents.
    fn reads_anew(&mut self) {
        let all = Invalidate::Node { node: self.node, offset: 0, length: 0 };
        assert_eq!(self.alone.kernel_steps, [KernelStep::Forget(all)]);
        assert_eq!(self.read_anew(7, b"new own "), "new own ");
        assert_eq!(self.known(), Some(Bytes::from_static(b"new own ")));
    }
}

// S-40
#[test]
fn a_reply_to_an_own_write_that_arrives_while_a_lock_waits_does_not_hide_the_changes_of_others() {
    for mut open in [Open::in_window(), Open::leased()] {
        let put = open.writes();
        let lock = open.asks_to_lock();
        open.written(put, 5, 6);
        open.granted(lock, open.stat(7));
        open.reads_anew();
    }
}

// S-40
#[test]
fn a_lock_granted_before_the_reply_to_an_own_write_leaves_nothing_as_it_was() {
    for mut open in [Open::in_window(), Open::leased()] {
        let put = open.writes();
        let lock = open.asks_to_lock();
        open.granted(lock, open.stat(7));
        // Its reply was made before the others changed the file.
        open.written(put, 5, 6);
        open.reads_anew();
    }
}

// S-40
#[test]
fn data_asked_for_before_a_lock_was_granted_is_not_kept() {
    let mut open = Open::in_window();
    open.alone.tick(Duration::from_secs(2));
    let lock = open.asks_to_lock();
    open.asks_to_read();
    let reads: Vec<_> = open.alone.asked.drain(..).collect();
    assert!(!reads.is_empty());
    open.granted(lock, open.stat(7));
    for (tag, request) in reads {
        open.gets(tag, &request, 5, b"old old ");
    }
    while let Some((tag, request)) = open.alone.asked.pop_front() {
        open.gets(tag, &request, 7, b"new own ");
    }
    let read = open.known().unwrap_or_else(|| open.read_anew(7, b"new own "));
    assert_eq!(read, "new own ");
}

// S-40
#[test]
fn equal_versions_alone_are_no_reason_to_keep_contents_when_a_lock_is_granted() {
    // Without a lease the server may have read in the middle of a program's write, which sets the time of the file first.
    for (mut open, leased) in [(Open::in_window(), false), (Open::leased(), false)] {
        let lock = open.asks_to_lock();
        open.granted(lock, Open::stat_of(5, leased));
        open.reads_anew();
    }
}

#[test]
fn a_lock_on_a_leased_file_that_nobody_changed_keeps_its_contents() {
    let mut open = Open::leased();
    let lock = open.asks_to_lock();
    open.granted(lock, open.stat(5));
    assert_eq!(open.alone.kernel_steps, []);
    assert_eq!(open.known(), Some(Bytes::from_static(b"old old ")));
    // After an own write too.
    let put = open.writes();
    let lock = open.asks_to_lock();
    open.written(put, 5, 6);
    open.granted(lock, open.stat(6));
    assert_eq!(open.alone.kernel_steps, []);
    assert_eq!(open.known(), Some(Bytes::from_static(b"old own ")));
}
