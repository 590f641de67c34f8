//! The client core under its lock, and what is done with its outputs.

mod journaling;

use super::MountPlan;
use super::clock::Clock;
use super::data::DataLink;
use super::dropping::{Awaited, Dropped, Errands};
use super::ending::Holder;
use super::handshake::Attached;
use super::journal::{FsyncWaits, Journal, Late};
use super::notices::{Notice, Notices};
use super::outlet::Outlet;
use super::signals::Fate;
use super::status::MountStatus;
use super::store::{Left, Store};
pub(super) use super::waiting::Waiting;
use super::wire;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};
use wirefs_cache::CachePiece;
use wirefs_carrier::{Class, Closer, Dial, InProcessPeer, PeerInfo};
use wirefs_client::call::{Answer, Call, CallId, Caller, Invalidate, ROOT};
use wirefs_client::{Client, Config, DataKey, HostName, Lane, Loaded, Output};
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

pub(super) struct State {
    pub(super) client: Client,
    pub(super) waiting: BTreeMap<CallId, Waiting>,
    /// Callers that got a signal and still wait.
    pub(super) signalled: BTreeMap<CallId, u32>,
    /// Calls whose answers wait for the kernel to forget something first.
    pub(super) delayed: BTreeSet<CallId>,
    pub(super) outlet: Option<Outlet>,
    /// Connections that were taken into use, the present one included.
    pub(super) installed: u64,
    pub(super) closer: Option<Closer>,
    /// Data connections in use.
    pub(super) data: BTreeMap<DataKey, DataLink>,
    /// Those that the core has asked for and nobody makes yet; it asks for few.
    pub(super) wanted_data: Vec<DataKey>,
    pub(super) peer: PeerInfo,
}

impl State {
    /// A data connection is not wanted any more.
    fn end_data(&mut self, key: DataKey) -> Option<DataLink> {
        self.wanted_data.retain(|wanted| *wanted != key);
        self.data.remove(&key)
    }

    /// Calls whose callers may have got a signal since. While the server does not respond, all: of a caller that waits for a page of the kernel's the
    /// signal is not reported.
    pub(super) fn callers_to_watch(&self, now: Time) -> Vec<(CallId, u32)> {
        if !self.client.is_unresponsive(now) {
            return self.signalled.iter().map(|(call, pid)| (*call, *pid)).collect();
        }
        let from_kernel = |(call, waiting): (&CallId, &Waiting)| match waiting {
            Waiting::Kernel { pid, .. } => Some((*call, *pid)),
            Waiting::Own(_) => None,
        };
        self.waiting.iter().filter_map(from_kernel).collect()
    }

    /// Has a call end as the fate of its caller wants it.
    pub(super) fn meet(&mut self, now: Time, call: CallId, fate: Fate) {
        match fate {
            Fate::AskedToEnd => self.client.asked_to_end(now, call),
            Fate::Dies if self.signalled.contains_key(&call) => {
                self.client.abandon(now, call);
            }
            // The kernel writes pages back for callers that have gone.
            Fate::Dies | Fate::Lives => {}
        }
    }

    /// Who waits for this call, which is about to be answered.
    fn end_waiting(&mut self, call: CallId) -> Option<Waiting> {
        self.signalled.remove(&call);
        self.waiting.remove(&call)
    }
}

/// One mount's machinery.
pub(super) struct Engine {
    clock: Clock,
    state: Mutex<State>,
    pub(super) session: SessionId,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) store: Option<Arc<Store>>,
    pub(super) journal: Option<Arc<Journal>>,
    config: Config,
    pub(super) notices: Notices,
    pub(super) dropping: Errands<Dropped>,
    pub(super) awaiting: Errands<Awaited>,
    /// What the server's machine has lost is being done again.
    pub(super) redoes: AtomicBool,
    stopped: AtomicBool,
    pub(super) stop_signal: (Mutex<()>, Condvar),
    /// The server is known to be back: it is dialled at once.
    pub(super) hurries: AtomicBool,
    /// Data connections are wanted that nobody makes yet.
    pub(super) wants_data: AtomicBool,
    own_calls: AtomicU64,
    /// Threads of the kernel's requests that may carry these out themselves, where the server is in this process: one always
    /// goes on reading, for what others wait for may depend on it.
    helpers_max: usize,
}

/// What is left to do once the lock is free.
#[derive(Default)]
pub(super) struct Work {
    answers: Vec<(Waiting, Answer)>,
    /// What the kernel is told behind the answers.
    notices: Vec<Notice>,
    flush: Option<Outlet>,
    /// Data connections that frames wait for.
    flush_data: BTreeMap<DataKey, Outlet>,
    hang_up: Option<Closer>,
    /// Data connections that are not wanted any more.
    closes: Vec<DataLink>,
    /// Those that are dead.
    gives_up: Vec<DataLink>,
    /// Answers that wait for the local disk.
    journaled: Vec<Late>,
}

impl Engine {
    pub(super) fn new(
        plan: &MountPlan,
        session: SessionId,
        attached: &Attached,
        store: Option<Store>,
        journal: Option<Journal>,
    ) -> Engine {
        let (clock, day) = Clock::start();
        let config = Config {
            mode: plan.mode,
            deadline: plan.deadline,
            uid: plan.uid,
            gid: plan.gid,
            cache_bytes_max: plan.cache_bytes_max,
            name_ttl_max: None,
            journal: journal.is_some(),
            day,
            fsync_here: plan.journal.as_ref().is_some_and(|journal| journal.fsync == FsyncWaits::Journal),
            host: HostName::new(rustix::system::uname().nodename().to_bytes()),
        };
        // Later than 0, up to which nothing is leased: what came with the tree is.
        let mut client = Client::new(config, attached.attachment.clone(), Time(1));
        if store.is_some() {
            client.use_store();
        }
        Engine {
            clock,
            state: Mutex::new(State {
                client,
                waiting: BTreeMap::new(),
                signalled: BTreeMap::new(),
                delayed: BTreeSet::new(),
                outlet: None,
                installed: 0,
                closer: None,
                data: BTreeMap::new(),
                wanted_data: Vec::new(),
                peer: attached.carrier.peer.clone(),
            }),
            session,
            dial: Arc::clone(&plan.dial),
            store: store.map(Arc::new),
            journal: journal.map(Arc::new),
            config,
            notices: Notices::default(),
            dropping: Errands::default(),
            awaiting: Errands::default(),
            redoes: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            hurries: AtomicBool::new(false),
            wants_data: AtomicBool::new(false),
            stop_signal: (Mutex::new(()), Condvar::new()),
            own_calls: AtomicU64::new(OWN_CALLS),
            helpers_max: plan.threads.saturating_sub(1),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// INVARIANT: the core does not panic half-way through a change that it could not live with; a poisoned lock is as
    /// good as any, and better than a mount that hangs.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the core and carries out what it asks for.
    pub(super) fn drive<R>(&self, change: impl FnOnce(&mut State, Time) -> R) -> R {
        let (result, work) = self.change(change);
        if let Some(late) = work.carry_out(&self.notices) {
            self.hand_over(late);
        }
        result
    }

    /// The same, in a thread that may wait for the local disk, and that carries out itself what it asks for where the server
    /// is in this process. `hand_over` is called before it waits or takes its time.
    pub(super) fn drive_and_wait<R>(
        &self,
        hand_over: impl Fn(),
        change: impl FnOnce(&mut State, Time) -> R,
    ) -> R {
        let (result, mut work) = self.change(change);
        let here = work.take_here();
        if let Some(late) = work.carry_out(&self.notices) {
            hand_over();
            match &self.journal {
                Some(journal) if journal.sync_to(journal.written()) => self.answer(late),
                _ => self.hand_over(late),
            }
        }
        if let Some(server) = here {
            if !server.announces_blocking() {
                hand_over();
            }
            server.flush(self.helpers_max);
        }
        result
    }

    /// Answers once the journal's thread has seen to it that they may be.
    fn hand_over(&self, late: Vec<Late>) {
        match &self.journal {
            Some(journal) => journal.hand_over(journal.written(), late),
            None => self.answer(late),
        }
    }

    pub(super) fn answer(&self, late: Vec<Late>) {
        for (call, waiting, answer) in late {
            waiting.answer(answer);
            self.lock().delayed.remove(&call);
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut State, Time) -> R) -> (R, Work) {
        let mut state = self.lock();
        // Taken under the lock, so that the core never sees time go back.
        let now = self.now();
        state.client.note_unused_buffers(wirefs_slab::unused_bytes());
        let result = change(&mut state, now);
        let work = self.collect(&mut state);
        drop(state);
        (result, work)
    }

    fn collect(&self, state: &mut State) -> Work {
        let mut work = Work::default();
        while let Some(output) = state.client.poll() {
            match output {
                Output::Answer(call, answer) => {
                    if let Some(waiting) = state.end_waiting(call) {
                        work.answers.push((waiting, answer));
                    }
                }
                Output::AnswerAfter(call, answer) => {
                    if let Some(waiting) = state.end_waiting(call) {
                        state.delayed.insert(call);
                        work.notices.push(Notice::Answer(call, waiting, answer));
                    }
                }
                Output::AnswerDropped(what, call, answer) => self.drop_first(state, what, call, answer),
                Output::AwaitReaders(dir, until) => self.awaiting.push(Awaited { dir, until }),
                Output::Send(frame, Lane::Data(key)) => work.send_data(state, frame, key),
                Output::OpenData(key) => self.want_data(state, key),
                Output::CloseData(key) => work.closes.extend(state.end_data(key)),
                Output::HangUpData(key) => work.gives_up.extend(state.end_data(key)),
                Output::Send(frame, lane) => {
                    self.journal(state, |journal, _| journal.before(&frame));
                    work.send(state, frame, if lane == Lane::Changes { Class::Bulk } else { Class::Urgent });
                }
                Output::SendAfter(frame) if work.notices.is_empty() && self.notices.is_idle() => {
                    work.send(state, frame, Class::Urgent)
                }
                Output::SendAfter(frame) => {
                    work.notices.extend(state.outlet.clone().map(|outlet| Notice::Frame(outlet, frame)));
                }
                Output::Invalidate(what) => work.notices.push(Notice::Invalidate(what)),
                Output::LetGo(node, names) => work.notices.push(Notice::LetGo(node, names)),
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
                Output::Keep(piece, data) => self.keep(piece, data),
                output @ (Output::Journal(..)
                | Output::Refused(..)
                | Output::JournalNote(_)
                | Output::JournalForget(_)
                | Output::JournalAnew(_)) => self.follow_journal(state, output),
                Output::AnswerJournaled(call, answer) => {
                    if let Some(waiting) = state.end_waiting(call) {
                        state.delayed.insert(call);
                        work.journaled.push((call, waiting, answer));
                    }
                }
                Output::HangUp => work.hang_up = state.closer.clone(),
                Output::Blamed(why) => wire::tell_blame(&why),
            }
        }
        self.journal(state, |journal, client| journal.write(|| client.answered_below()));
        // Before anybody else can find the queue idle.
        if work.answers.is_empty() {
            work.notices.drain(..).for_each(|notice| self.notices.push(notice));
        } else if !work.notices.is_empty() {
            self.notices.comes();
        }
        work
    }

    fn keep(&self, piece: CachePiece, data: Bytes) {
        if let Some(store) = &self.store {
            store.keep(piece, data);
        }
    }

    /// The kernel drops something before a call is answered.
    fn drop_first(&self, state: &mut State, what: Invalidate, call: CallId, answer: Answer) {
        if let Some(waiting) = state.end_waiting(call) {
            state.delayed.insert(call);
            self.dropping.push(Dropped { what, call, waiting, answer });
        }
    }

    /// Makes a call of our own and waits for its answer.
    fn call(&self, call: Call<'_>) -> Result<Answer, Errno> {
        let (sender, answer) = mpsc::channel();
        self.make(call, sender);
        answer.recv().map_err(|_| Errno::Io)
    }

    /// Makes a call on behalf of a caller in this process and waits for its answer; [`Call::Forget`] has none.
    pub(super) fn call_as(&self, caller: Caller, call: Call<'_>) -> Result<Answer, Errno> {
        let (sender, answer) = mpsc::channel();
        let id = self.own_call();
        let is_answered = !matches!(call, Call::Forget { .. });
        self.drive_and_wait(
            || {},
            |state, now| {
                if is_answered {
                    state.waiting.insert(id, Waiting::Own(sender));
                }
                state.client.call(now, id, caller, call);
            },
        );
        if is_answered { answer.recv().map_err(|_| Errno::Io) } else { Ok(Answer::Done) }
    }

    fn own_call(&self) -> CallId {
        CallId(self.own_calls.fetch_add(1, Ordering::Relaxed))
    }

    fn make(&self, call: Call<'_>, sender: mpsc::Sender<Answer>) {
        let id = self.own_call();
        self.drive(|state, now| {
            state.waiting.insert(id, Waiting::Own(sender));
            state.client.call(now, id, Caller::default(), call);
        });
    }

    pub(super) fn sync(&self) -> Result<(), Errno> {
        match self.call(Call::Syncfs { node: ROOT })? {
            Answer::Fail(errno) => Err(errno),
            _ => Ok(()),
        }
    }

    /// Waits until nothing is on its way to the server, within bounds; false: not all came.
    pub(super) fn settle(&self) -> bool {
        let until = Instant::now() + self.config.deadline.unwrap_or(SETTLE);
        while !self.lock().client.is_settled() {
            if Instant::now() >= until || self.is_stopped() {
                return false;
            }
            self.pause(Duration::from_millis(5));
        }
        true
    }

    /// Waits, within bounds, until the server's disk has all that the journal holds; false: not all came.
    pub(super) fn settle_journal(&self) -> bool {
        let Some(journal) = &self.journal else { return true };
        let answered = self.lock().client.answered_below();
        if journal.is_done_below(0) {
            return true;
        }
        let (sender, answer) = mpsc::channel();
        self.make(Call::Syncfs { node: ROOT }, sender);
        let patience = self.config.deadline.unwrap_or(SETTLE);
        matches!(answer.recv_timeout(patience), Ok(answer) if !matches!(answer, Answer::Fail(_)))
            && journal.is_done_below(answered)
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

    /// The mount has ended: others need not ask it before they change something.
    pub(super) fn rest(&self) {
        self.drive(|state, now| state.client.rest(now));
    }

    /// Tells the next mount of the same source how far this one is.
    pub(super) fn note(&self, holder: &Holder) {
        if let Some(store) = &self.store {
            store.note(holder);
        }
        if let Some(journal) = &self.journal {
            journal.note_holder(holder);
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

    /// The mount is stopped: ends its journal, of which nothing is needed when all is settled.
    pub(super) fn end_journal(&self, is_settled: bool) {
        if let Some(journal) = &self.journal {
            journal.end(!is_settled);
        }
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let (lock, signal) = &self.stop_signal;
        drop(lock.lock());
        signal.notify_all();
        self.notices.stop();
        self.dropping.stop();
        self.awaiting.stop();
        let (closer, data) = {
            let mut state = self.lock();
            (state.closer.take(), std::mem::take(&mut state.data))
        };
        if let Some(closer) = closer {
            closer.close();
        }
        data.values().for_each(DataLink::close);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(super) fn status(&self, mountpoint: &Path) -> MountStatus {
        let state = self.lock();
        MountStatus {
            mountpoint: mountpoint.to_path_buf(),
            peer: state.peer.clone(),
            paths: Vec::new(),
            mode: self.config.mode,
            deadline: self.config.deadline,
            snapshot: state.client.snapshot(),
            store: self.store.as_ref().map(|store| store.status()),
            journal: self.journal.as_ref().map(|journal| journal.status(state.client.answered_below())),
            up_for: self.clock.elapsed(),
        }
    }
}

impl Work {
    fn send(&mut self, state: &State, frame: Frame, class: Class) {
        let Some(outlet) = &state.outlet else { return };
        outlet.push(frame, class);
        if self.flush.is_none() {
            self.flush = Some(outlet.clone());
        }
    }

    fn send_data(&mut self, state: &State, frame: Frame, key: DataKey) {
        // Whoever finds it gone tells the core so, which asks again.
        let Some(link) = state.data.get(&key) else { return };
        link.outlet.push(frame, Class::Urgent);
        self.flush_data.entry(key).or_insert_with(|| link.outlet.clone());
    }

    /// The server of this process that frames wait for, if they do.
    fn take_here(&mut self) -> Option<Arc<dyn InProcessPeer>> {
        let here = Arc::clone(self.flush.as_ref()?.here()?);
        self.flush = None;
        Some(here)
    }

    /// Hands back what waits for the local disk, if anything does.
    #[must_use]
    fn carry_out(self, notices: &Notices) -> Option<Vec<Late>> {
        for (waiting, answer) in self.answers {
            waiting.answer(answer);
        }
        if !self.notices.is_empty() {
            self.notices.into_iter().for_each(|notice| notices.push(notice));
            notices.came();
        }
        if let Some(outlet) = self.flush {
            outlet.flush();
        }
        self.flush_data.values().for_each(Outlet::flush);
        self.closes.iter().for_each(DataLink::close);
        self.gives_up.iter().for_each(DataLink::give_up);
        if let Some(closer) = self.hang_up {
            closer.abort();
        }
        Some(self.journaled).filter(|late| !late.is_empty())
    }
}

/// The engine as threads hold it.
pub(super) type Shared = Arc<Engine>;
