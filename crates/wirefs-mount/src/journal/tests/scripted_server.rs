//! A scripted server with a ledger and breaking connections.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use wirefs_carrier::{Carrier, Dial, DialError, SendProgress, memory};
use wirefs_op::message::attach::Rattach;
use wirefs_op::message::commit::Rcommit;
use wirefs_op::message::error::Rerror;
use wirefs_op::message::get::{GotMode, Rget};
use wirefs_op::message::put::Rput;
use wirefs_op::message::recall::{END_SESSION, Rrecall};
use wirefs_op::message::target::NOFD;
use wirefs_op::message::version::{BootId, FEATURE_LEDGER, Rversion};
use wirefs_op::wire::Data;
use wirefs_op::{Errno, FileId, Kind, NOTAG, Reply, Request, Stat, Timestamp};

#[derive(Debug)]
pub(super) struct State {
    /// One more than the highest known number; 0 if unknown.
    pub(super) seen: u64,
    /// The applied changes, by number and name.
    pub(super) done: Vec<(u64, String)>,
    /// The number of the next change of this connection.
    next: Option<u64>,
    pub(super) boot: BootId,
    pub(super) root: FileId,
    pub(super) read_only: bool,
    /// It has a ledger.
    pub(super) counts: bool,
    /// The connection breaks after this number of further changes.
    pub(super) breaks_after: Option<u32>,
    pub(super) commits: u32,
    pub(super) dials: u32,
    /// How often a session was ended.
    pub(super) ends: u32,
    /// The serial of the recall sent to each session after its attach, and the acknowledged serials.
    pub(super) recalls: Option<u64>,
    pub(super) forgotten: Vec<u64>,
    /// The number of further connections.
    pub(super) dials_left: Option<u32>,
}

/// The server, which is dialed.
#[derive(Debug)]
pub(super) struct ScriptedServer(Arc<Mutex<State>>);

impl Default for ScriptedServer {
    fn default() -> ScriptedServer {
        ScriptedServer(Arc::new(Mutex::new(State {
            seen: 0,
            done: Vec::new(),
            next: None,
            boot: BootId(1),
            root: FileId { fs: 0, ino: 2, generation: 1 },
            read_only: false,
            counts: true,
            breaks_after: None,
            commits: 0,
            dials: 0,
            ends: 0,
            recalls: None,
            forgotten: Vec::new(),
            dials_left: None,
        })))
    }
}

impl ScriptedServer {
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.0.lock().unwrap())
    }

    /// Waits until a condition holds.
    pub(super) fn wait_for(&self, is_so: impl Fn(&State) -> bool) {
        let begun = Instant::now();
        while !self.with(|state| is_so(state)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", self.0);
            thread::yield_now();
        }
    }

    /// The numbers of the applied changes.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.with(|state| state.done.iter().map(|(number, _)| *number).collect())
    }
}

impl Dial for ScriptedServer {
    fn dial(&self) -> Result<Carrier, DialError> {
        self.with(|state| {
            if state.dials_left == Some(0) {
                return Err(DialError::Silent { address: "memory".to_owned() });
            }
            state.dials_left = state.dials_left.map(|left| left - 1);
            state.dials += 1;
            state.next = None;
            Ok(())
        })?;
        let (near, far) = memory::pair().unwrap();
        let state = Arc::clone(&self.0);
        thread::spawn(move || serve(far, &state));
        Ok(near)
    }
}

fn serve(mut far: Carrier, state: &Mutex<State>) {
    while let Ok(Some(body)) = far.source.receive() {
        let (tag, request) = Request::decode(body).unwrap();
        let mut state = state.lock().unwrap();
        if state.breaks_after == Some(0) {
            state.breaks_after = None;
            return far.closer.close();
        }
        let ends = state.ends;
        let Some(reply) = state.answer(request) else {
            // The client closes the connection after it ended the session.
            if state.ends > ends {
                return far.closer.close();
            }
            continue;
        };
        let mut frames = VecDeque::from([reply.encode(tag)]);
        if let (Reply::Attach(_), Some(serial)) = (&reply, state.recalls) {
            frames.push_back(Reply::Recall(Rrecall { serial, items: Vec::new() }).encode(NOTAG));
        }
        drop(state);
        // The client has closed.
        while far.sink.send(&mut frames).is_ok_and(|progress| progress == SendProgress::Blocked) {}
    }
}

impl State {
    fn answer(&mut self, request: Request) -> Option<Reply> {
        Some(match request {
            Request::Version(asked) => Reply::Version(Rversion {
                msize: asked.msize,
                version: asked.version,
                features: if self.counts { FEATURE_LEDGER } else { 0 },
                boot: self.boot,
                resumed: self.seen > 0,
                number: self.seen,
            }),
            Request::Attach(_) => Reply::Attach(self.attached()),
            Request::Number(told) => {
                self.next = Some(told.number);
                return None;
            }
            // Each name exists, and has not changed for long.
            Request::Get(get) => {
                let ino = get.target.path.as_bytes().iter().fold(3, |sum, byte| sum * 31 + u64::from(*byte));
                let stat = Stat { kind: Kind::File, ..stat(FileId { fs: 0, ino, generation: 1 }) };
                Reply::Get(Rget { fd: NOFD, mode: GotMode::NONE, stat: Some(stat), data: Data(Bytes::new()) })
            }
            Request::Commit(_) => {
                self.commits += 1;
                Reply::Commit(Rcommit { boot: self.boot })
            }
            Request::Put(put) => {
                let number = self.next.expect("numbered");
                self.next = Some(number + 1);
                let name = String::from_utf8(put.target.path.as_bytes().to_vec()).unwrap();
                if number >= self.seen {
                    self.seen = number + 1;
                    self.done.push((number, name.clone()));
                    self.breaks_after = self.breaks_after.map(|left| left.saturating_sub(1));
                }
                match name.starts_with("no") {
                    true => Reply::Error(Rerror::from(Errno::NoSpace)),
                    false => {
                        Reply::Put(Rput { fd: NOFD, count: 1, offset: 0, before: 1, stat: None, dir: None })
                    }
                }
            }
            // The last message.
            Request::Recalled(told) => {
                self.ends += u32::from(told.serial == END_SESSION);
                self.forgotten.extend(Some(told.serial).filter(|serial| Some(*serial) == self.recalls));
                return None;
            }
            other => panic!("{other:?}"),
        })
    }

    fn attached(&self) -> Rattach {
        let root = stat(self.root);
        let read_only = self.read_only;
        Rattach { root, uid: 0, gid: 0, acts_for_callers: true, read_only, leases: None }
    }
}

fn stat(id: FileId) -> Stat {
    let now = Timestamp::default();
    Stat {
        id,
        kind: Kind::Directory,
        version: 1,
        mode: 0o755,
        nlink: 2,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 0,
        blocks: 0,
        blksize: 4096,
        atime: now,
        mtime: now,
        ctime: now,
        without_xattrs: true,
        leased: false,
    }
}
