//! A mounted automount trigger. Its decisions are those of [`Automount`]; it holds the calls and the connection.

mod connected;
mod held;

use super::MountPlan;
use super::engine::Engine;
use held::{Held, HeldCall};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wirefs_client::automount::{Automount, CallDecision, FinishedConnection, ServerChange, UnconnectedRoot};
use wirefs_client::call::{Answer, Call, CallId, Caller, Invalidate, ROOT};
use wirefs_fuse::{FileSystem, MountOptions, Notifier, ReaderRole, Reply, Session, SessionOptions};
use wirefs_op::{Errno, Time, Timestamp};

/// The number of attempts to connect before the held calls fail.
const TRIES: usize = 3;
/// The pause between two attempts.
const TRY_PAUSE: Duration = Duration::from_millis(300);

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
    started: Instant,
    /// The server's space as other nodes know it, in bytes: free, total.
    room: (AtomicU64, AtomicU64),
    state: Mutex<State>,
    me: Weak<Trigger>,
}

struct State {
    decisions: Automount,
    notifier: Option<Notifier>,
    held: Vec<Held>,
    /// The connected mount.
    engine: Option<Arc<Engine>>,
}

impl AutomountTrigger {
    /// Mounts the trigger, without a request to a server.
    ///
    /// # Errors
    /// The kernel's refusal, with advice.
    pub fn mount(trigger: TriggerPlan) -> Result<AutomountTrigger, super::MountStartError> {
        let TriggerPlan { mountpoint, options, acts_for_callers, plan } = trigger;
        let threads = plan.threads.max(1);
        let has_journal = plan.journal.as_ref().is_some_and(|journal| journal.has_any());
        let inner = Arc::new_cyclic(|me| Trigger {
            plan,
            acts_for_callers,
            started: Instant::now(),
            room: Default::default(),
            state: Mutex::new(State {
                decisions: Automount::new(has_journal),
                notifier: None,
                held: Vec::new(),
                engine: None,
            }),
            me: Weak::clone(me),
        });
        let device = wirefs_fuse::mount(&mountpoint, &options)?;
        let front = Arc::clone(&inner);
        let session_options = SessionOptions {
            threads,
            posix_acl: acts_for_callers,
            keeps_links: false,
            ..SessionOptions::default()
        };
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
        self.inner.set_server_up(is_up);
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
        let (is_up, held, engine) = {
            let mut state = self.inner.lock();
            state.decisions.end();
            (state.decisions.is_server_up(), std::mem::take(&mut state.held), state.engine.take())
        };
        fail(held, Errno::HostDown);
        if let Some(engine) = engine {
            let is_settled = match is_up {
                true => engine.settle() && engine.settle_journal(),
                // Replayed when the node is up again, at the next start.
                false => engine.has_nothing_journaled(),
            };
            engine.release_leases();
            engine.stop();
            engine.save_cache();
            engine.end_journal(is_settled);
        }
    }
}

impl FileSystem for Trigger {
    fn call(&self, caller: Caller, call: Call<'_>, reply: Reply, reading: &ReaderRole<'_>) {
        let mut state = self.lock();
        let held = state.held.len();
        let decision = state.decisions.call(self.now(), &call, held, || self.unconnected_root());
        match (decision, &state.engine) {
            (CallDecision::Forward, Some(engine)) => {
                let engine = Arc::clone(engine);
                drop(state);
                engine.call(caller, call, reply, reading);
            }
            (CallDecision::Unreachable, Some(engine)) => {
                let engine = Arc::clone(engine);
                drop(state);
                reply.answer(engine.unreachable(&call));
            }
            // INVARIANT: a connected trigger has its engine.
            (CallDecision::Forward | CallDecision::Unreachable, None) => {
                reply.answer(Answer::Fail(Errno::Stale));
            }
            (CallDecision::Answer(answer), _) => {
                drop(state);
                reply.answer(answer);
            }
            (CallDecision::Hold, _) => state.held.push(Held { caller, call: HeldCall::of(&call), reply }),
            (CallDecision::HoldAndConnect, _) => {
                state.held.push(Held { caller, call: HeldCall::of(&call), reply });
                drop(state);
                self.connect();
            }
            (CallDecision::Ignore, _) => {}
        }
    }

    fn interrupt(&self, call: CallId) -> bool {
        let mut state = self.lock();
        if let Some(engine) = &state.engine {
            let engine = Arc::clone(engine);
            drop(state);
            return engine.interrupt(call);
        }
        let found = state.held.iter().position(|held| held.reply.id() == call);
        let held = found.map(|index| state.held.swap_remove(index));
        drop(state);
        let is_known = held.is_some();
        fail(held, Errno::Interrupted);
        is_known
    }
}

/// Fails held calls.
fn fail(held: impl IntoIterator<Item = Held>, errno: Errno) {
    held.into_iter().for_each(|held| held.reply.answer(Answer::Fail(errno)));
}

impl Trigger {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::default() + self.started.elapsed()
    }

    fn unconnected_root(&self) -> UnconnectedRoot {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let secs = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        UnconnectedRoot {
            uid: self.plan.uid,
            gid: self.plan.gid,
            now: Timestamp { secs, nanos: now.subsec_nanos() },
            free_bytes: self.room.0.load(Ordering::Relaxed),
            total_bytes: self.room.1.load(Ordering::Relaxed),
        }
    }

    fn set_server_up(&self, is_up: bool) {
        let mut state = self.lock();
        let change = state.decisions.set_server_up(is_up);
        let (held, engine) = match change {
            ServerChange::None => return,
            ServerChange::FailHeld => (std::mem::take(&mut state.held), None),
            ServerChange::FailWaiting | ServerChange::Redial => (Vec::new(), state.engine.clone()),
        };
        drop(state);
        fail(held, Errno::HostDown);
        match engine {
            Some(engine) if change == ServerChange::Redial => engine.dial_now(),
            Some(engine) => engine.fail_waiting(),
            None => {}
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
        if self.lock().decisions.connects_for_journal(self.now()) {
            self.connect();
        }
    }

    fn connect_server(&self) -> Result<Arc<Engine>, Errno> {
        let mut failure = Errno::HostDown;
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(TRY_PAUSE);
            }
            if !self.lock().decisions.is_server_up() {
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
        let mut state = self.lock();
        let finished =
            state.decisions.finished(self.now(), outcome.as_ref().map(|_| ()).map_err(|errno| *errno));
        let held = std::mem::take(&mut state.held);
        if finished == FinishedConnection::Use {
            state.engine = outcome.as_ref().ok().cloned();
        }
        let notifier = state.notifier.clone();
        drop(state);
        match (finished, outcome) {
            (FinishedConnection::Use, Ok(engine)) => {
                // The attributes of the root so far were not the server's.
                if let Some(notifier) = notifier {
                    let _ = notifier.invalidate(&Invalidate::Node { node: ROOT, offset: -1, length: 0 });
                }
                held.into_iter().for_each(|held| held.forward(engine.as_ref()));
            }
            (_, Ok(engine)) => {
                engine.stop();
                engine.end_journal(true);
                fail(held, Errno::HostDown);
            }
            (_, Err(errno)) => fail(held, errno),
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

/// Logs an error.
fn report(error: &super::ConnectError) {
    crate::log::line(format_args!("{error}"));
}
