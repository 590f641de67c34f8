//! A tree whose paths select its behavior.

use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use wirefs_op::limits::DATA_BYTES_MAX;
use wirefs_op::message::attach::Watch;
use wirefs_op::message::commit::Rcommit;
use wirefs_op::message::get::{GetMode, GotMode, Rget, Tget};
use wirefs_op::message::lock::{LockAction, Rlock, Tlock};
use wirefs_op::message::put::Rput;
use wirefs_op::message::target::{Fd, NOFD};
use wirefs_op::message::version::BootId;
use wirefs_op::wire::Data;
use wirefs_op::{Errno, FileId, Kind, LockKind, Reply, Request, Stat, TreePath};
use wirefs_server::{Attached, Replies, SessionKey, Stopped, Touched, Tree};

/// Longer than any successful step.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
pub(super) struct State {
    /// Offsets of the writes, in execution order.
    pub(super) writes: Vec<(SessionKey, u64)>,
    /// Writes that run at this moment.
    writing: BTreeSet<SessionKey>,
    /// Parked writes, counted each time.
    pub(super) parked: usize,
    pub(super) attached: Vec<SessionKey>,
    pub(super) ended: Vec<SessionKey>,
    /// The threads that executed requests, in order.
    pub(super) executed_by: Vec<ThreadId>,
    /// The number of requests that have waited at the gate.
    pub(super) at_gate: usize,
    gate_open: bool,
    lock_holder: Option<(SessionKey, u64)>,
    /// Attempts of waiting locks.
    pub(super) lock_tries: usize,
    open_fds: BTreeSet<(SessionKey, u16)>,
}

/// | path | behavior |
/// |---|---|
/// | `gate` | waits until the gate is open |
/// | `panic` | panics |
/// | `mute` | gives no reply |
/// | other | executed at once; a Tget with data gets zeros; with MORE it gets fd 7 |
#[derive(Default)]
pub(super) struct Script {
    state: Mutex<State>,
    changed: Condvar,
}

impl Script {
    pub(super) fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        let result = look(&mut self.state.lock().unwrap());
        self.changed.notify_all();
        result
    }

    /// Waits until something holds.
    pub(super) fn await_state(&self, what: &str, holds: impl Fn(&State) -> bool) {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state.lock().unwrap();
        while !holds(&state) {
            assert!(Instant::now() < until, "never came: {what}");
            state = self.changed.wait_timeout(state, Duration::from_millis(50)).unwrap().0;
        }
    }

    pub(super) fn open_gate(&self) {
        self.state(|state| state.gate_open = true);
    }

    fn pass_gate(&self) {
        self.state(|state| state.at_gate += 1);
        let state = self.state.lock().unwrap();
        let (state, timeout) =
            self.changed.wait_timeout_while(state, PATIENCE, |state| !state.gate_open).unwrap();
        drop(state);
        assert!(!timeout.timed_out(), "the gate never opened");
    }

    fn get(&self, session: SessionKey, get: &Tget, replies: &mut dyn Replies) -> Result<(), Stopped> {
        let mut fd = NOFD;
        if get.mode.has(GetMode::MORE) {
            fd = Fd(7);
            self.state(|state| state.open_fds.insert((session, 7)));
        }
        if get.target.fd != NOFD && !self.state(|state| state.open_fds.contains(&(session, get.target.fd.0)))
        {
            return replies.send(Reply::Error(Errno::Stale.into()));
        }
        let mut left = if get.mode.has(GetMode::DATA) { get.count as usize } else { 0 };
        loop {
            let part = left.min(DATA_BYTES_MAX);
            left -= part;
            let last = left == 0;
            let mode = GotMode::NONE.and_if(last, GotMode::LAST).and_if(part > 0, GotMode::DATA);
            let mut stat = stat_of(&get.target.path);
            replies.grant(&mut std::iter::once(&mut stat));
            replies.send(Reply::Get(Rget {
                fd,
                mode,
                stat: Some(stat),
                data: Data(Bytes::from(vec![0; part])),
            }))?;
            if last {
                return Ok(());
            }
        }
    }

    fn lock(&self, session: SessionKey, lock: &Tlock, replies: &mut dyn Replies) -> Result<(), Stopped> {
        let free = Reply::Lock(Rlock { conflict: None, stat: None });
        if lock.range.kind == LockKind::Unlock {
            self.state(|state| state.lock_holder = None);
            return replies.send(free);
        }
        while !replies.is_stopped() {
            let taken = self.state(|state| {
                state.lock_tries += 1;
                let taken = state.lock_holder.is_none();
                if taken {
                    state.lock_holder = Some((session, lock.owner));
                }
                taken
            });
            if taken {
                let sent = replies.send(free);
                if sent.is_err() {
                    self.state(|state| state.lock_holder = None);
                }
                return sent;
            }
            if lock.action != LockAction::Wait {
                return replies.send(Reply::Error(Errno::WouldBlock.into()));
            }
            replies.release_slot();
            replies.wait();
        }
        Err(Stopped)
    }
}

impl Tree for Script {
    fn attach(&self, session: SessionKey, path: &TreePath) -> Result<Attached, Errno> {
        if path.as_bytes() == b"nowhere" {
            return Err(Errno::NotFound);
        }
        self.state(|state| state.attached.push(session));
        let root = Stat { leased: true, ..stat_of(&TreePath::root()) };
        Ok(Attached { root, uid: 0, gid: 0, acts_for_callers: false, read_only: false })
    }

    fn serve(&self, session: SessionKey, request: Request, replies: &mut dyn Replies) {
        self.state(|state| state.executed_by.push(std::thread::current().id()));
        let path = match &request {
            Request::Get(get) => get.target.path.clone(),
            Request::Put(put) => put.target.path.clone(),
            Request::Commit(commit) => {
                replies.release_slot();
                commit.target.path.clone()
            }
            _ => TreePath::root(),
        };
        match path.as_bytes() {
            b"gate" => self.pass_gate(),
            b"panic" => panic!("asked to"),
            b"mute" => return,
            _ => {}
        }
        let sent = match request {
            Request::Get(get) => self.get(session, &get, replies),
            Request::Lock(lock) => self.lock(session, &lock, replies),
            Request::Put(put) => {
                if replies.touch(&[Touched::object(id_of(&put.target.path))]).is_err() {
                    self.state(|state| state.parked += 1);
                    return;
                }
                self.state(|state| assert!(state.writing.insert(session), "two changes at once"));
                std::thread::yield_now();
                self.state(|state| {
                    state.writing.remove(&session);
                    state.writes.push((session, put.offset));
                });
                replies.send(Reply::Put(Rput {
                    fd: NOFD,
                    count: u32::try_from(put.data.0.len()).unwrap(),
                    offset: put.offset,
                    stat: None,
                    dir: None,
                    before: 0,
                }))
            }
            Request::Commit(_) => replies.send(Reply::Commit(Rcommit { boot: BootId(1) })),
            _ => replies.send(Reply::Error(Errno::NotImplemented.into())),
        };
        match sent {
            Ok(()) | Err(Stopped) => {}
        }
    }

    fn notify_before_blocking(&self, _: fn()) -> bool {
        true
    }

    fn leases(&self) -> Option<Watch> {
        Some(Watch::Filesystem)
    }

    fn end(&self, session: SessionKey) {
        self.state(|state| {
            state.ended.push(session);
            state.open_fds.retain(|(of, _)| *of != session);
            if state.lock_holder.is_some_and(|(of, _)| of == session) {
                state.lock_holder = None;
            }
        });
    }
}

/// An object by its path.
fn id_of(path: &TreePath) -> FileId {
    let ino = path.as_bytes().iter().fold(1, |ino, byte| ino * 257 + u64::from(*byte));
    FileId { ino, ..FileId::default() }
}

fn stat_of(path: &TreePath) -> Stat {
    Stat {
        version: 1,
        mode: 0o755,
        nlink: 2,
        blksize: 4096,
        without_xattrs: true,
        ..Stat::blank(id_of(path), Kind::Directory)
    }
}
