//! A mount that is there before its server is reached: the first use dials, and while the server is known to be gone each
//! call is told so at once.
//!
//! | the gate | a look at the root's attributes | another call |
//! |---|---|---|
//! | is closed | is answered from here | is held, and has the server dialled |
//! | is being opened | is answered from here | is held |
//! | could not be opened | is answered from here | fails as the dial did, for a second or until it is known to be back |
//! | is open | goes to the server | goes to the server |
//! | is down | fails: the host is down | fails: the host is down |
//!
//! So a listing of the directory that has such mounts in it, and `df`, dial nobody. Where a mount that died has left a journal, the gate opens
//! by itself, which brings to the server what is in it.

mod behind;
mod held;

use super::engine::Engine;
use super::{MountPlan, connect};
use held::{Held, Wanted};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wirefs_client::call::{Answer, Call, CallId, Caller, Invalidate, ROOT};
use wirefs_fuse::{FileSystem, MountOptions, Notifier, Reading, Reply, Session, SessionOptions};
use wirefs_op::{Errno, FileId, FsStat, Kind, Stat, Timestamp};

/// Calls that wait for the server to be reached, at most; more are told to come again.
const HELD_MAX: usize = 1_024;
/// How often the server is dialled before the calls that wait are told.
const TRIES: usize = 3;
/// Between two of these.
const TRY_PAUSE: Duration = Duration::from_millis(300);
/// So long a failure stands: whoever comes meanwhile is told the same.
const FAILURE_LIFE: Duration = Duration::from_secs(1);
/// So long passes until a server that could not be reached is dialled again for what was left in a journal.
const LEFT_RETRY: Duration = Duration::from_secs(5);
/// The unit of what is told of the server's room, in bytes.
const BLOCK_BYTES: u32 = 4_096;
/// The longest name, in bytes.
const NAME_BYTES_MAX: u32 = 255;
/// How long what is told of a closed gate may be believed.
const CLOSED_TTL: Duration = Duration::from_millis(100);

/// What a gate leads to, and where it is.
pub struct GatePlan {
    /// How to mount.
    pub mountpoint: PathBuf,
    /// How the kernel mounts it.
    pub options: MountOptions,
    /// The server will check rights as each caller; one that turns out not to is not let through.
    pub acts_for_callers: bool,
    /// What to mount, once it is wanted.
    pub plan: MountPlan,
}

/// A gate that stands.
pub struct Gate {
    inner: Arc<Inner>,
    mountpoint: PathBuf,
}

struct Inner {
    plan: MountPlan,
    acts_for_callers: bool,
    is_up: AtomicBool,
    /// A mount that died has left a journal, which nobody has brought to the server since.
    is_owed: AtomicBool,
    /// What the server has told others of its room, in bytes: free, all.
    room: (AtomicU64, AtomicU64),
    state: Mutex<State>,
    me: Weak<Inner>,
}

#[derive(Default)]
struct State {
    phase: Phase,
    notifier: Option<Notifier>,
}

#[derive(Default)]
enum Phase {
    #[default]
    Closed,
    Opening(Vec<Held>),
    Failed(Errno, Instant),
    Open(Arc<Engine>),
}

impl Gate {
    /// Mounts. No server is asked anything.
    ///
    /// # Errors
    /// The kernel refuses; the text says what to do.
    pub fn raise(gate: GatePlan) -> Result<Gate, super::MountError> {
        let GatePlan { mountpoint, options, acts_for_callers, plan } = gate;
        let threads = plan.threads.max(1);
        let is_owed = plan.journal.as_ref().is_some_and(|journal| journal.has_any());
        let inner = Arc::new_cyclic(|me| Inner {
            plan,
            acts_for_callers,
            is_up: AtomicBool::new(true),
            is_owed: AtomicBool::new(is_owed),
            room: Default::default(),
            state: Mutex::default(),
            me: Weak::clone(me),
        });
        let device = wirefs_fuse::mount(&mountpoint, &options)?;
        let front = Arc::clone(&inner);
        let session_options =
            SessionOptions { threads, posix_acl: acts_for_callers, ..SessionOptions::default() };
        match Session::start(device, front, session_options) {
            Ok(session) => inner.lock().notifier = Some(session.notifier()),
            Err(error) => {
                // INVARIANT: no caller may be left waiting on a mount that nobody serves.
                let _gone = wirefs_fuse::unmount(&mountpoint, true);
                return Err(error.into());
            }
        }
        inner.bring();
        Ok(Gate { inner, mountpoint })
    }

    /// Where it stands.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Says whether the server is there, from time to time as well as when it changes. While it is not, each call is told so at
    /// once, those that wait too.
    pub fn set_up(&self, is_up: bool) {
        let was_up = self.inner.is_up.swap(is_up, Ordering::SeqCst);
        match (was_up, is_up) {
            (true, false) => self.inner.fail_waiting(),
            (false, true) => self.inner.greet(),
            (true, true) | (false, false) => {}
        }
        self.inner.bring();
    }

    /// Says how much room the server has, in bytes.
    pub fn set_room(&self, free_bytes: u64, all_bytes: u64) {
        self.inner.room.0.store(free_bytes, Ordering::Relaxed);
        self.inner.room.1.store(all_bytes, Ordering::Relaxed);
    }

    /// Takes the mount out of sight, and waits until what was written is at the server, at most as long as a caller would
    /// have waited.
    pub fn end(self) {
        let _gone = wirefs_fuse::unmount(&self.mountpoint, true);
        let phase = std::mem::take(&mut self.inner.lock().phase);
        match phase {
            Phase::Open(engine) => {
                let is_settled = match self.inner.is_up.load(Ordering::SeqCst) {
                    true => engine.settle() && engine.settle_journal(),
                    // It is brought there when the node is back, at the next start.
                    false => engine.has_nothing_journaled(),
                };
                engine.rest();
                engine.stop();
                engine.leave();
                engine.end_journal(is_settled);
            }
            Phase::Opening(held) => {
                held.into_iter().for_each(|held| held.reply.answer(Answer::Fail(Errno::HostDown)));
            }
            Phase::Closed | Phase::Failed(..) => {}
        }
    }
}

impl FileSystem for Inner {
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, reading: &Reading<'_>) {
        let mut state = self.lock();
        if let Phase::Open(engine) = &state.phase {
            let engine = Arc::clone(engine);
            drop(state);
            return match self.is_up.load(Ordering::SeqCst) || is_farewell(&call) {
                true => engine.call(caller, call, reply, reading),
                false => reply.answer(engine.unreachable(&call)),
            };
        }
        if matches!(call, Call::Forget { .. }) {
            return;
        }
        if !self.is_up.load(Ordering::SeqCst) {
            return reply.answer(Answer::Fail(Errno::HostDown));
        }
        if let Some(answer) = self.answer_closed(&call) {
            return reply.answer(answer);
        }
        let held = Held { caller, wanted: Wanted::of(&call), reply };
        match &mut state.phase {
            Phase::Opening(waiting) if waiting.len() < HELD_MAX => waiting.push(held),
            Phase::Opening(_) => held.reply.answer(Answer::Fail(Errno::WouldBlock)),
            Phase::Failed(errno, at) if at.elapsed() < FAILURE_LIFE => {
                held.reply.answer(Answer::Fail(*errno));
            }
            Phase::Closed | Phase::Failed(..) => {
                state.phase = Phase::Opening(vec![held]);
                drop(state);
                self.open();
            }
            // Seen above, under the same lock.
            Phase::Open(_) => held.reply.answer(Answer::Fail(Errno::Stale)),
        }
    }

    fn interrupt(&self, call: CallId) -> bool {
        let mut state = self.lock();
        match &mut state.phase {
            Phase::Open(engine) => {
                let engine = Arc::clone(engine);
                drop(state);
                engine.interrupt(call)
            }
            Phase::Opening(waiting) => {
                let found = waiting.iter().position(|held| held.reply.id() == call);
                let held = found.map(|index| waiting.swap_remove(index));
                let is_known = held.is_some();
                held.into_iter().for_each(|held| held.reply.answer(Answer::Fail(Errno::Interrupted)));
                is_known
            }
            Phase::Closed | Phase::Failed(..) => false,
        }
    }
}

/// Calls by which the kernel lets go of something: they are always taken.
fn is_farewell(call: &Call<'_>) -> bool {
    matches!(call, Call::Forget { .. } | Call::Release { .. } | Call::Releasedir { .. } | Call::Flush { .. })
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What needs no server as long as nobody asked for more.
    fn answer_closed(&self, call: &Call<'_>) -> Option<Answer> {
        match call {
            Call::Getattr { .. } => Some(Answer::Attr(self.root(), CLOSED_TTL)),
            Call::Statfs { .. } => Some(Answer::FsStat(self.figures())),
            // `ls -l` asks for access control lists.
            Call::Getxattr { .. } => Some(Answer::Fail(Errno::NoData)),
            Call::Listxattr { size_max: 0, .. } => Some(Answer::Size(0)),
            Call::Listxattr { .. } => Some(Answer::Data(bytes::Bytes::new())),
            _ => None,
        }
    }

    fn root(&self) -> Stat {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now =
            Timestamp { secs: i64::try_from(now.as_secs()).unwrap_or(i64::MAX), nanos: now.subsec_nanos() };
        Stat {
            mode: 0o755,
            nlink: 2,
            uid: self.plan.uid,
            gid: self.plan.gid,
            blksize: BLOCK_BYTES,
            atime: now,
            mtime: now,
            ctime: now,
            ..Stat::blank(FileId { fs: 0, ino: ROOT.0, generation: 0 }, Kind::Directory)
        }
    }

    fn figures(&self) -> FsStat {
        let blocks = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed) / u64::from(BLOCK_BYTES);
        let free = blocks(&self.room.0);
        FsStat {
            block_bytes: BLOCK_BYTES,
            blocks: blocks(&self.room.1),
            blocks_free: free,
            blocks_available: free,
            files: 0,
            files_free: 0,
            name_bytes_max: NAME_BYTES_MAX,
        }
    }

    /// Reaches the server on a thread of its own, and lets those through that wait.
    fn open(&self) {
        let Some(me) = self.me.upgrade() else { return };
        let spawned = std::thread::Builder::new().name("wirefs-gate".into()).spawn(move || {
            let outcome = me.reach();
            me.opened(outcome);
        });
        if spawned.is_err() {
            self.opened(Err(Errno::NoMemory));
        }
    }

    /// Opens where there is something to be brought to the server, which no program need ask for.
    fn bring(&self) {
        if !self.is_owed.load(Ordering::SeqCst) || !self.is_up.load(Ordering::SeqCst) {
            return;
        }
        let mut state = self.lock();
        match &state.phase {
            Phase::Failed(_, at) if at.elapsed() < LEFT_RETRY => {}
            Phase::Opening(_) | Phase::Open(_) => {}
            Phase::Closed | Phase::Failed(..) => {
                state.phase = Phase::Opening(Vec::new());
                drop(state);
                self.open();
            }
        }
    }

    fn reach(&self) -> Result<Arc<Engine>, Errno> {
        let mut failure = Errno::HostDown;
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(TRY_PAUSE);
            }
            if !self.is_up.load(Ordering::SeqCst) {
                return Err(Errno::HostDown);
            }
            match connect(self.plan.clone()) {
                Ok(connected) if connected.attachment().acts_for_callers || !self.acts_for_callers => {
                    let notifier = self.lock().notifier.clone().ok_or(Errno::Io)?;
                    return connected.serve_behind(notifier).map_err(|_| Errno::NoMemory);
                }
                Ok(connected) => {
                    connected.abandon();
                    failure = Errno::AccessDenied;
                }
                Err(error) => {
                    failure = errno_of(&error);
                    eprint_line(&error);
                }
            }
        }
        Err(failure)
    }

    fn opened(&self, outcome: Result<Arc<Engine>, Errno>) {
        if outcome.is_ok() {
            // What stays all the same waits for `wirefs recover`, or for the next start.
            self.is_owed.store(false, Ordering::SeqCst);
        }
        let mut state = self.lock();
        let next = match &outcome {
            Ok(engine) => Phase::Open(Arc::clone(engine)),
            Err(errno) => Phase::Failed(*errno, Instant::now()),
        };
        let was_ended = !matches!(state.phase, Phase::Opening(_));
        let waiting = match std::mem::replace(&mut state.phase, next) {
            Phase::Opening(waiting) => waiting,
            Phase::Closed | Phase::Failed(..) | Phase::Open(_) => Vec::new(),
        };
        let notifier = state.notifier.clone();
        drop(state);
        match outcome {
            Ok(engine) if was_ended => {
                engine.stop();
                engine.end_journal(true);
            }
            Ok(engine) => {
                // What was told of the root before was not the server's word.
                if let Some(notifier) = notifier {
                    let _ = notifier.invalidate(&Invalidate::Node { node: ROOT, offset: -1, length: 0 });
                }
                waiting.into_iter().for_each(|held| held.pass(engine.as_ref()));
            }
            Err(errno) => waiting.into_iter().for_each(|held| held.reply.answer(Answer::Fail(errno))),
        }
    }

    /// The server is back: what it was told of its absence is over.
    fn greet(&self) {
        let mut state = self.lock();
        match &state.phase {
            Phase::Open(engine) => engine.hurry(),
            Phase::Failed(..) => state.phase = Phase::Closed,
            Phase::Closed | Phase::Opening(_) => {}
        }
    }

    /// The server is gone: nobody waits for it any longer.
    fn fail_waiting(&self) {
        let mut state = self.lock();
        match &mut state.phase {
            Phase::Open(engine) => {
                let engine = Arc::clone(engine);
                drop(state);
                engine.fail_waiting();
            }
            Phase::Opening(waiting) => {
                let waiting = std::mem::take(waiting);
                drop(state);
                waiting.into_iter().for_each(|held| held.reply.answer(Answer::Fail(Errno::HostDown)));
            }
            Phase::Closed | Phase::Failed(..) => {}
        }
    }
}

/// Who refuses us is there; else it is as good as down.
fn errno_of(error: &super::ConnectError) -> Errno {
    use super::ConnectError as Error;
    use wirefs_carrier::DialError;
    match error {
        Error::Dial(DialError::Refused { .. }) | Error::Refused(_) => Errno::AccessDenied,
        Error::Version { .. } | Error::Protocol(_) => Errno::Protocol,
        Error::Attach { .. } | Error::Path(_) => Errno::NotFound,
        Error::Dial(_) | Error::Lost(_) | Error::Silent | Error::Random(_) => Errno::HostDown,
    }
}

/// One line for the person who runs this; where nobody listens it is lost.
fn eprint_line(error: &super::ConnectError) {
    use std::io::Write;
    let _unheard = writeln!(std::io::stderr(), "wirefs: {error}");
}
