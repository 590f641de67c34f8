//! The client core under its lock, and what is done with its outputs.

use super::MountPlan;
use super::handshake::Attached;
use super::notices::{Notice, Notices};
use super::status::MountStatus;
use super::store::{Left, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use wirefs_carrier::{Class, Closer, Outbox, PeerInfo};
use wirefs_client::call::{Answer, Call, CallId, Caller, ROOT};
use wirefs_client::{Client, Config, Lane, Loaded, Output};
use wirefs_fuse::Reply;
use wirefs_op::message::version::SessionId;
use wirefs_op::{Errno, Frame, Time};
use wirefs_store::Snapshot;

/// Ids of our own calls; the kernel's count up from 2.
const OWN_CALLS: u64 = 1 << 63;
/// How long an unmount waits for what is on its way, when callers would have waited for ever.
const SETTLE: Duration = Duration::from_secs(30);

/// How long a mount that takes over what an earlier one knew waits for the server to say that it counts.
const FIRST_SIGN: Duration = Duration::from_secs(2);

/// Who the server is, as far as its carrier tells.
pub(super) fn identity(peer: &PeerInfo) -> Vec<u8> {
    peer.identity.map(|key| key.fingerprint().to_string().into_bytes()).unwrap_or_default()
}

/// Who waits for an answer.
pub(super) enum Waiting {
    Kernel { reply: Reply, pid: u32 },
    Own(mpsc::Sender<Answer>),
}

pub(super) struct State {
    pub(super) client: Client,
    pub(super) waiting: BTreeMap<CallId, Waiting>,
    /// Callers that got a signal and still wait.
    pub(super) signalled: BTreeMap<CallId, u32>,
    /// Calls whose answers wait for the kernel to forget something first.
    pub(super) delayed: BTreeSet<CallId>,
    pub(super) outbox: Option<Outbox>,
    pub(super) closer: Option<Closer>,
    pub(super) peer: PeerInfo,
}

/// One mount's machinery.
pub(super) struct Engine {
    started: Instant,
    state: Mutex<State>,
    pub(super) session: SessionId,
    pub(super) store: Option<Arc<Store>>,
    config: Config,
    pub(super) notices: Notices,
    stopped: AtomicBool,
    pub(super) stop_signal: (Mutex<()>, Condvar),
    own_calls: AtomicU64,
}

/// What is left to do once the lock is free.
#[derive(Default)]
pub(super) struct Work {
    answers: Vec<(Waiting, Answer)>,
    /// What the kernel is told behind the answers.
    notices: Vec<Notice>,
    flush: Option<Outbox>,
    hang_up: Option<Closer>,
}

impl Engine {
    pub(super) fn new(
        plan: &MountPlan,
        session: SessionId,
        attached: &Attached,
        store: Option<Store>,
    ) -> Engine {
        let config = Config {
            mode: plan.mode,
            deadline: plan.deadline,
            uid: plan.uid,
            gid: plan.gid,
            cache_bytes_max: plan.cache_bytes_max,
            name_ttl_max: None,
        };
        // Later than 0, up to which nothing is leased: what came with the tree is.
        let mut client = Client::new(config, attached.attachment.clone(), Time(1));
        if store.is_some() {
            client.use_store();
        }
        Engine {
            started: Instant::now(),
            state: Mutex::new(State {
                client,
                waiting: BTreeMap::new(),
                signalled: BTreeMap::new(),
                delayed: BTreeSet::new(),
                outbox: None,
                closer: None,
                peer: attached.carrier.peer.clone(),
            }),
            session,
            store: store.map(Arc::new),
            config,
            notices: Notices::default(),
            stopped: AtomicBool::new(false),
            stop_signal: (Mutex::new(()), Condvar::new()),
            own_calls: AtomicU64::new(OWN_CALLS),
        }
    }

    pub(super) fn now(&self) -> Time {
        Time(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// INVARIANT: the core does not panic half-way through a change that it could not live with; a poisoned lock is as
    /// good as any, and better than a mount that hangs.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the core and carries out what it asks for.
    pub(super) fn drive<R>(&self, change: impl FnOnce(&mut State, Time) -> R) -> R {
        let mut state = self.lock();
        // Taken under the lock, so that the core never sees time go back.
        let now = self.now();
        let result = change(&mut state, now);
        let work = self.collect(&mut state);
        drop(state);
        work.carry_out(&self.notices);
        result
    }

    fn collect(&self, state: &mut State) -> Work {
        let mut work = Work::default();
        while let Some(output) = state.client.poll() {
            match output {
                Output::Answer(call, answer) => {
                    state.signalled.remove(&call);
                    if let Some(waiting) = state.waiting.remove(&call) {
                        work.answers.push((waiting, answer));
                    }
                }
                Output::AnswerAfter(call, answer) => {
                    state.signalled.remove(&call);
                    if let Some(waiting) = state.waiting.remove(&call) {
                        state.delayed.insert(call);
                        work.notices.push(Notice::Answer(call, waiting, answer));
                    }
                }
                Output::Send(frame, Lane::Changes) => work.send(state, frame, Class::Bulk),
                Output::Send(frame, Lane::Queries) => work.send(state, frame, Class::Urgent),
                Output::SendAfter(frame) if work.notices.is_empty() && self.notices.is_idle() => {
                    work.send(state, frame, Class::Urgent)
                }
                Output::SendAfter(frame) => {
                    if let Some(outbox) = state.outbox.clone() {
                        work.notices.push(Notice::Frame(outbox, frame));
                    }
                }
                Output::Invalidate(what) => work.notices.push(Notice::Invalidate(what)),
                Output::LetGo(parent, name) => work.notices.push(Notice::LetGo(parent, name)),
                Output::Load(piece) => {
                    let loaded = match &self.store {
                        Some(store) => store.load(piece),
                        None => Some(Loaded::Nothing),
                    };
                    if let Some(loaded) = loaded {
                        let now = self.now();
                        state.client.loaded(now, piece, loaded);
                    }
                }
                Output::Keep(piece, data) => {
                    if let Some(store) = &self.store {
                        store.keep(piece, data);
                    }
                }
                Output::HangUp => work.hang_up = state.closer.clone(),
            }
        }
        if work.answers.is_empty() {
            // Before anybody else can find the queue idle.
            work.notices.drain(..).for_each(|notice| self.notices.push(notice));
        }
        work
    }

    /// Makes a call of our own and waits for its answer.
    fn call(&self, call: Call<'_>) -> Result<Answer, Errno> {
        let id = CallId(self.own_calls.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = mpsc::channel();
        self.drive(|state, now| {
            state.waiting.insert(id, Waiting::Own(sender));
            state.client.call(now, id, Caller::default(), call);
        });
        answer.recv().map_err(|_| Errno::Io)
    }

    pub(super) fn sync(&self) -> Result<(), Errno> {
        match self.call(Call::Syncfs { node: ROOT })? {
            Answer::Fail(errno) => Err(errno),
            _ => Ok(()),
        }
    }

    /// Waits until nothing is on its way to the server, within bounds.
    pub(super) fn settle(&self) {
        let until = Instant::now() + self.config.deadline.unwrap_or(SETTLE);
        while Instant::now() < until && !self.lock().client.is_settled() {
            self.pause(Duration::from_millis(5));
        }
    }

    /// Takes over what an earlier mount knew, before anything else is done.
    pub(super) fn take_over(&self, left: Left) {
        let mut state = self.lock();
        let count = left.listings.len() as u64;
        if left.root == state.client.root_id()
            && state.client.import(left.listings)
            && let Some(store) = &self.store
        {
            store.took(count);
        }
    }

    /// Waits for a sign of life from the server, if one is on its way, but not for long.
    pub(super) fn hear(&self) {
        let until = Instant::now() + FIRST_SIGN;
        while Instant::now() < until && !self.lock().client.is_settled() {
            self.pause(Duration::from_millis(1));
        }
    }

    /// The mount is stopped: leaves what it knew for the next one.
    pub(super) fn leave(&self) {
        let Some(store) = &self.store else { return };
        let (snapshot, pieces) = {
            let mut state = self.lock();
            let now = self.now();
            // From here on nothing is taken back that could be answered, and what has no answer is not believed.
            state.client.lost(now);
            let pieces = state.client.pieces().collect();
            let snapshot = self.config.mode.takes_leases().then(|| Snapshot {
                session: self.session,
                root: state.client.root_id(),
                identity: identity(&state.peer),
                listings: state.client.export(),
            });
            (snapshot, pieces)
        };
        store.leave(snapshot.as_ref(), pieces);
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let (lock, signal) = &self.stop_signal;
        drop(lock.lock());
        signal.notify_all();
        self.notices.stop();
        let closer = self.lock().closer.take();
        if let Some(closer) = closer {
            closer.close();
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Waits for a while, or until the mount is stopped.
    pub(super) fn pause(&self, span: Duration) {
        let (lock, signal) = &self.stop_signal;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_stopped() {
            let _ = signal.wait_timeout(guard, span);
        }
    }

    pub(super) fn status(&self, mountpoint: &Path) -> MountStatus {
        let state = self.lock();
        MountStatus {
            mountpoint: mountpoint.to_path_buf(),
            peer: state.peer.clone(),
            mode: self.config.mode,
            deadline: self.config.deadline,
            snapshot: state.client.snapshot(),
            store: self.store.as_ref().map(|store| store.status()),
            up_for: self.started.elapsed(),
        }
    }
}

impl Work {
    fn send(&mut self, state: &State, frame: Frame, class: Class) {
        let Some(outbox) = &state.outbox else { return };
        outbox.push(frame, class);
        if self.flush.is_none() {
            self.flush = Some(outbox.clone());
        }
    }

    fn carry_out(self, notices: &Notices) {
        for (waiting, answer) in self.answers {
            waiting.answer(answer);
        }
        self.notices.into_iter().for_each(|notice| notices.push(notice));
        if let Some(outbox) = self.flush {
            outbox.flush();
        }
        if let Some(closer) = self.hang_up {
            closer.close();
        }
    }
}

impl Waiting {
    pub(super) fn answer(self, answer: Answer) {
        match self {
            Waiting::Kernel { reply, .. } => reply.answer(answer),
            // The one who asked may have gone.
            Waiting::Own(sender) => drop(sender.send(answer)),
        }
    }
}

/// The engine as threads hold it.
pub(super) type Shared = Arc<Engine>;
