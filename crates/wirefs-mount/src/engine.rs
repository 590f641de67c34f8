//! The client core behind its lock, and the execution of its outputs.

mod effects;
mod journaling;
mod state;

use effects::Effects;
pub(super) use state::State;

use super::MountPlan;
use super::clock::Clock;
use super::data_connection::DataConnection;
use super::handshake::Attached;
use super::invalidation_queue::InvalidationQueue;
use super::journal::{DeferredAnswer, FsyncWaits, Journal};
use super::memory::MountMemory;
use super::meter::{Meter, PresentWait};
use super::mount_place::MountPlace;
use super::pause::Wakeups;
use super::previous_mount::MountNote;
use super::status::MountStatus;
use super::store::{SavedSession, Store};
use super::task_queue::{AwaitReaders, DropBeforeAnswer, TaskQueue};
use super::unsent::Patience;
use super::waiter::Waiter;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};
use wirefs_carrier::{Dial, PeerInfo};
use wirefs_client::call::{Answer, Call, CallId, Caller, ROOT};
use wirefs_client::{Client, Config, HostName, SYNC_FACTOR};
use wirefs_op::message::version::SessionId;
use wirefs_op::{Errno, Time};
use wirefs_store::Snapshot;

/// The first id of our own calls; the kernel's ids count from 2.
const OWN_CALL_FIRST: u64 = 1 << 63;
/// How long an unmount waits for pending requests if the mount has no deadline.
const SETTLE_MAX: Duration = Duration::from_secs(30);

/// How long a mount with a saved cache waits until the server confirms it.
const FIRST_REPLY_MAX: Duration = Duration::from_secs(2);

/// Returns the server's key fingerprint, empty if its carrier has no keys.
pub(super) fn identity(peer: &PeerInfo) -> Vec<u8> {
    peer.identity.map(|key| key.fingerprint().to_string().into_bytes()).unwrap_or_default()
}

/// The queues of the threads that talk to the kernel, and the place that the kernel gives the mount.
#[derive(Default)]
pub(super) struct KernelSide {
    pub(super) invalidations: InvalidationQueue,
    pub(super) drops: TaskQueue<DropBeforeAnswer>,
    pub(super) awaited_readers: TaskQueue<AwaitReaders>,
    /// Set if links are confined to it.
    pub(super) place: OnceLock<MountPlace>,
}

/// The shared state of one mount.
pub(super) struct Engine {
    pub(super) meter: Arc<Meter>,
    state: Mutex<State>,
    pub(super) session: SessionId,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) store: Option<Arc<Store>>,
    pub(super) journal: Option<Arc<Journal>>,
    config: Config,
    pub(super) kernel: KernelSide,
    /// The journal is being replayed after a reboot of the server's machine.
    pub(super) is_replaying: AtomicBool,
    pub(super) wakeups: Wakeups,
    own_calls: AtomicU64,
    /// The number of FUSE threads that may execute requests of an in-process server: one thread must always read,
    /// because the others may depend on the next request.
    helpers_max: usize,
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
            confines_links: plan.confines_links,
            journal: journal.is_some(),
            day,
            fsync_here: plan.journal.as_ref().is_some_and(|journal| journal.fsync == FsyncWaits::Journal),
            host: HostName::new(rustix::system::uname().nodename().to_bytes()),
        };
        // Later than 0, at which nothing is leased: the attachment's attributes are leased.
        let mut client = Client::new(config, attached.attachment.clone(), Time(1));
        if store.is_some() {
            client.use_store();
        }
        Engine {
            meter: Arc::new(Meter::new(clock)),
            state: Mutex::new(State {
                client,
                memory: MountMemory::new(plan.cache_bytes_max),
                waiting: BTreeMap::new(),
                signaled: BTreeMap::new(),
                delayed: BTreeSet::new(),
                sink: None,
                installed: 0,
                closer: None,
                data: BTreeMap::new(),
                wanted_data: Vec::new(),
                peer: attached.carrier.peer.clone(),
                dial_error: None,
            }),
            session,
            dial: Arc::clone(&plan.dial),
            store: store.map(Arc::new),
            journal: journal.map(Arc::new),
            config,
            kernel: KernelSide::default(),
            is_replaying: AtomicBool::new(false),
            wakeups: Wakeups::default(),
            own_calls: AtomicU64::new(OWN_CALL_FIRST),
            helpers_max: plan.threads.saturating_sub(1),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.meter.clock.now()
    }

    /// INVARIANT: a panic in the core leaves a usable state, so a poisoned lock is used: a mount must not hang.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the core, and executes its outputs.
    pub(super) fn drive<R>(&self, change: impl FnOnce(&mut State, Time) -> R) -> R {
        let (result, effects) = self.change(change);
        if let Some(late) = effects.execute(&self.kernel) {
            self.answer_when_durable(late);
        }
        result
    }

    /// Like [`drive`](Self::drive), in a thread that may wait for the local disk, and that executes requests of an
    /// in-process server. `hand_over` is called before it blocks.
    pub(super) fn drive_and_wait<R>(
        &self,
        hand_over: impl Fn(),
        change: impl FnOnce(&mut State, Time) -> R,
    ) -> R {
        let (result, mut effects) = self.change(change);
        let in_process = effects.take_in_process();
        if let Some(late) = effects.execute(&self.kernel) {
            hand_over();
            match &self.journal {
                Some(journal) if journal.sync_to(journal.written()) => self.answer(late),
                _ => self.answer_when_durable(late),
            }
        }
        if let Some(server) = in_process {
            if !server.announces_blocking() {
                hand_over();
            }
            server.flush(self.helpers_max);
        }
        result
    }

    /// Sends answers once they are durable in the journal.
    fn answer_when_durable(&self, late: Vec<DeferredAnswer>) {
        match &self.journal {
            Some(journal) => journal.hand_over(journal.written(), late),
            None => self.answer(late),
        }
    }

    pub(super) fn answer(&self, late: Vec<DeferredAnswer>) {
        for (call, waiting, answer) in late {
            waiting.answer(answer);
            self.lock().delayed.remove(&call);
        }
    }

    fn change<R>(&self, change: impl FnOnce(&mut State, Time) -> R) -> (R, Effects) {
        let mut state = self.lock();
        // Taken under the lock, so that the core never sees time go back.
        let now = self.now();
        let result = change(&mut state, now);
        state.measure_memory();
        let effects = self.collect(&mut state);
        drop(state);
        (result, effects)
    }

    /// Makes a call of our own, and waits for its answer.
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
                    state.waiting.insert(id, Waiter::Own(sender));
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
            state.waiting.insert(id, Waiter::Own(sender));
            state.client.call(now, id, Caller::default(), call);
        });
    }

    pub(super) fn sync(&self) -> Result<(), Errno> {
        match self.call(Call::Syncfs { node: ROOT })? {
            Answer::Fail(errno) => Err(errno),
            _ => Ok(()),
        }
    }

    /// Waits until the server has answered all requests. Returns false if it has answered no change for as long as a call
    /// may wait.
    pub(super) fn settle(&self) -> bool {
        let mut patience = Patience::new(self.config.deadline.unwrap_or(SETTLE_MAX), Instant::now());
        loop {
            let answered = {
                let state = self.lock();
                if state.client.is_settled() {
                    return true;
                }
                state.client.answered_below()
            };
            if patience.has_ended(Instant::now(), answered) || self.is_stopped() {
                return false;
            }
            self.pause(Duration::from_millis(5));
        }
    }

    /// Waits, within limits, until the server has all journaled changes on stable storage; `false` if it has not.
    pub(super) fn settle_journal(&self) -> bool {
        let Some(journal) = &self.journal else { return true };
        let answered = self.lock().client.answered_below();
        if journal.is_done_below(0) {
            return true;
        }
        let (sender, answer) = mpsc::channel();
        self.make(Call::Syncfs { node: ROOT }, sender);
        // As each sync (S-166). One that waits for an unreachable server ends by itself, at the deadline.
        let patience = self.config.deadline.map_or(SETTLE_MAX, |deadline| deadline * SYNC_FACTOR);
        matches!(answer.recv_timeout(patience), Ok(answer) if !matches!(answer, Answer::Fail(_)))
            && journal.is_done_below(answered)
    }

    /// Imports the saved cache of an earlier mount, before anything else.
    pub(super) fn import_cache(&self, saved: SavedSession) {
        let mut state = self.lock();
        let count = saved.listings.len() as u64;
        if saved.root == state.client.root_id()
            && state.client.import(saved.listings)
            && let Some(store) = &self.store
        {
            store.note_imported(count);
        }
    }

    /// Waits briefly for the server's first reply, if one is pending.
    pub(super) fn await_first_reply(&self) {
        let until = Instant::now() + FIRST_REPLY_MAX;
        while Instant::now() < until && !self.lock().client.is_settled() {
            self.pause(Duration::from_millis(1));
        }
    }

    /// Tells the core that the mount has ended: it releases its leases.
    pub(super) fn release_leases(&self) {
        self.drive(|state, now| state.client.rest(now));
    }

    /// Updates the note for the next mount of the same source.
    pub(super) fn note(&self, holder: &MountNote) {
        if let Some(store) = &self.store {
            store.note(holder);
        }
        if let Some(journal) = &self.journal {
            journal.note_holder(holder);
        }
    }

    /// Notes where the mount is, if links are confined to it.
    pub(super) fn mounted_at(&self, place: MountPlace) {
        if self.config.confines_links {
            self.lock().client.mounted_at(place.mountpoint().as_os_str().as_bytes());
            // INVARIANT: mounted once.
            let _first = self.kernel.place.set(place);
        }
    }

    /// Saves the cache of a stopped mount for the next one.
    pub(super) fn save_cache(&self) {
        let Some(store) = &self.store else { return };
        let (snapshot, pieces) = {
            let mut state = self.lock();
            let now = self.now();
            // No recall can be answered from here on, so nothing without a reply is saved.
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
        store.save(snapshot.as_ref(), pieces);
    }

    /// Ends the journal of a stopped mount: removes it if the server has everything, otherwise logs what it keeps.
    pub(super) fn end_journal(&self, is_settled: bool) {
        if let Some(journal) = &self.journal {
            journal.end(!is_settled);
        }
    }

    pub(super) fn stop(&self) {
        self.wakeups.stop();
        self.kernel.invalidations.stop();
        self.kernel.drops.stop();
        self.kernel.awaited_readers.stop();
        let (closer, data) = {
            let mut state = self.lock();
            (state.closer.take(), std::mem::take(&mut state.data))
        };
        if let Some(closer) = closer {
            closer.close();
        }
        data.values().for_each(DataConnection::close);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.wakeups.is_stopped()
    }

    /// Returns the calls without an answer, the longest first.
    pub(super) fn present_waits(&self) -> Vec<PresentWait> {
        let state = self.lock();
        let measured = |(call, waiter): (&CallId, &Waiter)| {
            waiter.measured().map(|measured| measured.present(&state.client, *call))
        };
        let mut waits: Vec<PresentWait> = state.waiting.iter().filter_map(measured).collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.since));
        waits
    }

    pub(super) fn status(&self, mountpoint: &Path) -> MountStatus {
        let state = self.lock();
        MountStatus {
            mountpoint: mountpoint.to_path_buf(),
            peer: state.peer.clone(),
            dial_error: state.dial_error.clone(),
            paths: Vec::new(),
            mode: self.config.mode,
            deadline: self.config.deadline,
            snapshot: state.client.snapshot(),
            store: self.store.as_ref().map(|store| store.status()),
            journal: self.journal.as_ref().map(|journal| journal.status(state.client.answered_below())),
            up_for: self.meter.clock.elapsed(),
        }
    }
}

/// The engine as threads share it.
pub(super) type Shared = Arc<Engine>;
