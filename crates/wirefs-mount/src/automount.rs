//! A mount that connects on its first use. While its server is known to be down, each call fails at once.
//!
//! | state | attributes of the root | another call |
//! |---|---|---|
//! | closed | answered locally | held, and starts the connection |
//! | connecting | answered locally | held |
//! | failed | answered locally | fails like the connection, for a second or until the server is known to be up |
//! | connected | forwarded | forwarded |
//! | server down | fails with `EHOSTDOWN` | fails with `EHOSTDOWN` |
//!
//! So neither a listing of the directory with such mounts nor `df` connects to a server. If a killed mount left a
//! journal, the trigger connects by itself to replay it.

mod connected;
mod held;

use super::MountPlan;
use super::engine::Engine;
use held::{Held, HeldCall};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wirefs_client::call::{Answer, Call, CallId, Caller, Invalidate, ROOT};
use wirefs_fuse::{FileSystem, MountOptions, Notifier, Reading, Reply, Session, SessionOptions};
use wirefs_op::{Errno, FileId, FsStat, Kind, Stat, Timestamp};

/// The maximum number of held calls; further ones fail with `EAGAIN`.
const HELD_MAX: usize = 1_024;
/// The number of attempts to connect before the held calls fail.
const TRIES: usize = 3;
/// The pause between two attempts.
const TRY_PAUSE: Duration = Duration::from_millis(300);
/// The time for which a failure also fails later calls.
const FAILURE_TTL: Duration = Duration::from_secs(1);
/// The pause before the next attempt to connect for a journal.
const JOURNAL_RETRY: Duration = Duration::from_secs(5);
/// The unit of the server's reported space, in bytes.
const BLOCK_BYTES: u32 = 4_096;
/// The maximum length of a name, in bytes.
const NAME_BYTES_MAX: u32 = 255;
/// The time for which the kernel caches attributes before the connection.
const CLOSED_TTL: Duration = Duration::from_millis(100);

/// The plan of an automount trigger.
pub struct TriggerPlan {
    /// The mount point.
    pub mountpoint: PathBuf,
    /// The kernel's mount options.
    pub options: MountOptions,
    /// The server is expected to check permissions for each caller; one that does not is refused.
    pub acts_for_callers: bool,
    /// The mount, once it is used.
    pub plan: MountPlan,
}

/// A mounted automount trigger.
pub struct AutomountTrigger {
    inner: Arc<Trigger>,
    mountpoint: PathBuf,
}

struct Trigger {
    plan: MountPlan,
    acts_for_callers: bool,
    is_up: AtomicBool,
    /// A killed mount left a journal that is not replayed yet.
    has_journal: AtomicBool,
    /// The server's space as other nodes know it, in bytes: free, total.
    room: (AtomicU64, AtomicU64),
    state: Mutex<State>,
    me: Weak<Trigger>,
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
    Connecting(Vec<Held>),
    Failed(Errno, Instant),
    Connected(Arc<Engine>),
}

impl AutomountTrigger {
    /// Mounts the trigger, without a request to a server.
    ///
    /// # Errors
    /// The kernel's refusal, with advice.
    pub fn mount(trigger: TriggerPlan) -> Result<AutomountTrigger, super::MountError> {
        let TriggerPlan { mountpoint, options, acts_for_callers, plan } = trigger;
        let threads = plan.threads.max(1);
        let has_journal = plan.journal.as_ref().is_some_and(|journal| journal.has_any());
        let inner = Arc::new_cyclic(|me| Trigger {
            plan,
            acts_for_callers,
            is_up: AtomicBool::new(true),
            has_journal: AtomicBool::new(has_journal),
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
                // INVARIANT: no caller may wait on a mount without a server.
                let _gone = wirefs_fuse::unmount(&mountpoint, true);
                return Err(error.into());
            }
        }
        inner.connect_for_journal();
        Ok(AutomountTrigger { inner, mountpoint })
    }

    /// Returns the mount point.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Reports, also repeatedly, whether the server is up. While it is down, each call fails at once, including held
    /// ones.
    pub fn set_server_up(&self, is_up: bool) {
        let was_up = self.inner.is_up.swap(is_up, Ordering::SeqCst);
        match (was_up, is_up) {
            (true, false) => self.inner.fail_waiting(),
            (false, true) => self.inner.server_up(),
            (true, true) | (false, false) => {}
        }
        self.inner.connect_for_journal();
    }

    /// Reports the server's space, in bytes.
    pub fn set_room(&self, free_bytes: u64, all_bytes: u64) {
        self.inner.room.0.store(free_bytes, Ordering::Relaxed);
        self.inner.room.1.store(all_bytes, Ordering::Relaxed);
    }

    /// Unmounts lazily, and waits until the server has all written data, for at most the time that a call would have
    /// waited.
    pub fn end(self) {
        let _gone = wirefs_fuse::unmount(&self.mountpoint, true);
        let phase = std::mem::take(&mut self.inner.lock().phase);
        match phase {
            Phase::Connected(engine) => {
                let is_settled = match self.inner.is_up.load(Ordering::SeqCst) {
                    true => engine.settle() && engine.settle_journal(),
                    // Replayed when the node is up again, at the next start.
                    false => engine.has_nothing_journaled(),
                };
                engine.release_leases();
                engine.stop();
                engine.save_cache();
                engine.end_journal(is_settled);
            }
            Phase::Connecting(held) => {
                held.into_iter().for_each(|held| held.reply.answer(Answer::Fail(Errno::HostDown)));
            }
            Phase::Closed | Phase::Failed(..) => {}
        }
    }
}

impl FileSystem for Trigger {
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, reading: &Reading<'_>) {
        let mut state = self.lock();
        if let Phase::Connected(engine) = &state.phase {
            let engine = Arc::clone(engine);
            drop(state);
            return match self.is_up.load(Ordering::SeqCst) || is_release(&call) {
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
        let held = Held { caller, call: HeldCall::of(&call), reply };
        match &mut state.phase {
            Phase::Connecting(waiting) if waiting.len() < HELD_MAX => waiting.push(held),
            Phase::Connecting(_) => held.reply.answer(Answer::Fail(Errno::WouldBlock)),
            Phase::Failed(errno, at) if at.elapsed() < FAILURE_TTL => {
                held.reply.answer(Answer::Fail(*errno));
            }
            Phase::Closed | Phase::Failed(..) => {
                state.phase = Phase::Connecting(vec![held]);
                drop(state);
                self.connect();
            }
            // Excluded above, under the same lock.
            Phase::Connected(_) => held.reply.answer(Answer::Fail(Errno::Stale)),
        }
    }

    fn interrupt(&self, call: CallId) -> bool {
        let mut state = self.lock();
        match &mut state.phase {
            Phase::Connected(engine) => {
                let engine = Arc::clone(engine);
                drop(state);
                engine.interrupt(call)
            }
            Phase::Connecting(waiting) => {
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

/// Calls by which the kernel releases an object; they are always forwarded.
fn is_release(call: &Call<'_>) -> bool {
    matches!(call, Call::Forget { .. } | Call::Release { .. } | Call::Releasedir { .. } | Call::Flush { .. })
}

impl Trigger {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a call that needs no server before the connection.
    fn answer_closed(&self, call: &Call<'_>) -> Option<Answer> {
        match call {
            Call::Getattr { .. } => Some(Answer::Attr(self.root(), CLOSED_TTL)),
            Call::Statfs { .. } => Some(Answer::FsStat(self.fs_stat())),
            // `ls -l` reads access control lists.
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

    fn fs_stat(&self) -> FsStat {
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

    /// Connects in a thread, and then forwards the held calls.
    fn connect(&self) {
        let Some(me) = self.me.upgrade() else { return };
        let spawned = std::thread::Builder::new().name("wirefs-trigger".into()).spawn(move || {
            let outcome = me.connect_server();
            me.finished(outcome);
        });
        if spawned.is_err() {
            self.finished(Err(Errno::NoMemory));
        }
    }

    /// Connects if a journal is to be replayed.
    fn connect_for_journal(&self) {
        if !self.has_journal.load(Ordering::SeqCst) || !self.is_up.load(Ordering::SeqCst) {
            return;
        }
        let mut state = self.lock();
        match &state.phase {
            Phase::Failed(_, at) if at.elapsed() < JOURNAL_RETRY => {}
            Phase::Connecting(_) | Phase::Connected(_) => {}
            Phase::Closed | Phase::Failed(..) => {
                state.phase = Phase::Connecting(Vec::new());
                drop(state);
                self.connect();
            }
        }
    }

    fn connect_server(&self) -> Result<Arc<Engine>, Errno> {
        let mut failure = Errno::HostDown;
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(TRY_PAUSE);
            }
            if !self.is_up.load(Ordering::SeqCst) {
                return Err(Errno::HostDown);
            }
            match super::connect(self.plan.clone()) {
                Ok(connected) if connected.attachment().acts_for_callers || !self.acts_for_callers => {
                    let notifier = self.lock().notifier.clone().ok_or(Errno::Io)?;
                    return connected.serve_connected(notifier).map_err(|_| Errno::NoMemory);
                }
                Ok(connected) => {
                    connected.abandon();
                    failure = Errno::AccessDenied;
                }
                Err(error) => {
                    failure = errno_of(&error);
                    report(&error);
                }
            }
        }
        Err(failure)
    }

    fn finished(&self, outcome: Result<Arc<Engine>, Errno>) {
        if outcome.is_ok() {
            // A journal that remains is replayed by `wirefs recover` or at the next start.
            self.has_journal.store(false, Ordering::SeqCst);
        }
        let mut state = self.lock();
        let next = match &outcome {
            Ok(engine) => Phase::Connected(Arc::clone(engine)),
            Err(errno) => Phase::Failed(*errno, Instant::now()),
        };
        let has_ended = !matches!(state.phase, Phase::Connecting(_));
        let waiting = match std::mem::replace(&mut state.phase, next) {
            Phase::Connecting(waiting) => waiting,
            Phase::Closed | Phase::Failed(..) | Phase::Connected(_) => Vec::new(),
        };
        let notifier = state.notifier.clone();
        drop(state);
        match outcome {
            Ok(engine) if has_ended => {
                engine.stop();
                engine.end_journal(true);
            }
            Ok(engine) => {
                // The attributes of the root so far were not the server's.
                if let Some(notifier) = notifier {
                    let _ = notifier.invalidate(&Invalidate::Node { node: ROOT, offset: -1, length: 0 });
                }
                waiting.into_iter().for_each(|held| held.forward(engine.as_ref()));
            }
            Err(errno) => waiting.into_iter().for_each(|held| held.reply.answer(Answer::Fail(errno))),
        }
    }

    /// The server is up again: its failure is over.
    fn server_up(&self) {
        let mut state = self.lock();
        match &state.phase {
            Phase::Connected(engine) => engine.dial_now(),
            Phase::Failed(..) => state.phase = Phase::Closed,
            Phase::Closed | Phase::Connecting(_) => {}
        }
    }

    /// The server is down: held and waiting calls fail.
    fn fail_waiting(&self) {
        let mut state = self.lock();
        match &mut state.phase {
            Phase::Connected(engine) => {
                let engine = Arc::clone(engine);
                drop(state);
                engine.fail_waiting();
            }
            Phase::Connecting(waiting) => {
                let waiting = std::mem::take(waiting);
                drop(state);
                waiting.into_iter().for_each(|held| held.reply.answer(Answer::Fail(Errno::HostDown)));
            }
            Phase::Closed | Phase::Failed(..) => {}
        }
    }
}

/// A server that refuses us is up; other failures count as down.
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

/// Writes one line to standard error. A write error is ignored.
fn report(error: &super::ConnectError) {
    use std::io::Write;
    let _ignored = writeln!(std::io::stderr(), "wirefs: {error}");
}
