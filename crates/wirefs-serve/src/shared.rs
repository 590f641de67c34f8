//! The state that all threads of a server share.

use super::colocated::{self, ColocatedServers};
use super::connection::Connection;
use super::core::{Attach, Core, Effects};
use super::ledgers::{BUSY_LOOK, FoundLedger, Ledgers};
use super::log;
use super::options::{Believers, InProcessExecution, ServeOptions};
use super::pool::{Owner, Pool, Rank, Work};
use super::replies::LockReleases;
use super::watchdog::Watchdog;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_carrier::ListenerCloser;
use wirefs_op::Time;
use wirefs_op::message::version::SessionId;
use wirefs_server::{CloseReason, ConnectionKey, LeaseTerms, ServerInput, Sessions, Tree};

/// The maximum time in which a closed connection sends its queued frames.
pub(super) const FAREWELL_MAX: Duration = Duration::from_secs(1);
/// How long a stop waits for the end of the sessions, after the draining.
const END_MAX: Duration = Duration::from_secs(2);

/// Locks of steps that run one at a time.
#[derive(Default)]
struct StepLocks {
    /// Held during the callback before leasing.
    preparing: Mutex<()>,
    /// Held while a ledger is restored, so that two connections of one session do not both restore it.
    restoring: Mutex<()>,
    /// Held during the start of a listener, and at the beginning of a stop.
    listeners: Mutex<Vec<ListenerCloser>>,
}

pub(super) struct Shared {
    steps: StepLocks,
    pub(super) tree: Arc<dyn Tree>,
    pub(super) options: ServeOptions,
    started: Instant,
    core: Mutex<Core>,
    /// Signaled when work has ended or a connection is closed.
    changed: Condvar,
    /// Whether leases are granted; constant once there are clients.
    leases: AtomicBool,
    /// Whether the tree announces that it is about to block.
    pub(super) says_before_waiting: bool,
    pub(super) pool: Pool,
    pub(super) watchdog: Watchdog,
    pub(super) lock_releases: LockReleases,
    pub(super) colocated: ColocatedServers,
}

impl Shared {
    pub(super) fn new(tree: Arc<dyn Tree>, options: ServeOptions) -> Shared {
        let ledgers = options.ledger.clone().map(|dir| Ledgers::new(dir, options.boot));
        let sessions = with_ledgers(Sessions::new(options.boot), &options);
        Shared {
            steps: StepLocks::default(),
            says_before_waiting: match options.in_process {
                InProcessExecution::CallingThread { before_blocking } => {
                    tree.notify_before_blocking(before_blocking)
                }
                InProcessExecution::Workers => false,
            },
            tree,
            started: Instant::now(),
            core: Mutex::new(Core::new(sessions, ledgers)),
            changed: Condvar::new(),
            leases: AtomicBool::new(false),
            pool: Pool::new(&options),
            watchdog: Watchdog::default(),
            lock_releases: LockReleases::default(),
            colocated: ColocatedServers::new(),
            options,
        }
    }

    /// Subscribes to changes by server programs, and grants leases if the tree reports them. Called before clients
    /// exist.
    pub(super) fn begin_leasing(self: &Arc<Self>) {
        let server = Arc::downgrade(self);
        self.tree.observe(Box::new(move |outside| {
            if let Some(server) = server.upgrade() {
                server.handle(ServerInput::ExternalChange(outside));
            }
        }));
        if let Some(watch) = self.tree.leases() {
            let recovery = self.options.recovery;
            let recovering_until = (!recovery.is_zero()).then(|| self.now() + recovery);
            let sessions = Sessions::leasing(self.options.boot, LeaseTerms { watch, recovering_until });
            let sessions = match self.options.believers.clone().filter(|_| recovering_until.is_some()) {
                Some(believers) => sessions.awaiting_holders(believers),
                None => sessions,
            };
            self.core().sessions = with_ledgers(sessions, &self.options);
            self.leases.store(true, Ordering::Release);
        }
        if let Some(place) = self.options.place {
            colocated::start(self, place);
        }
    }

    /// Calls the callback before leasing: a client is about to get leases, or has gone.
    pub(super) fn prepare_leasing(&self) {
        if let (true, Some(before_leasing)) = (self.leases(), &self.options.before_leasing) {
            // Ordered by this lock, so that the last call has the newest set.
            let _in_turn = self.steps.preparing.lock().unwrap_or_else(PoisonError::into_inner);
            let believers = {
                let core = self.core();
                let is_recovering = core.sessions.is_recovering(self.now());
                Believers { sessions: core.sessions.possible_holders(), is_recovering }
            };
            before_leasing.act(&believers);
        }
    }

    /// Lets the tree drop watches that no lease needs.
    pub(super) fn tend(&self) {
        if self.leases()
            && let Some(note) = self.tree.trim_watches(&|ids| self.core().sessions.are_leased(ids))
        {
            log::line(format_args!("{note}"));
        }
    }

    /// Returns whether leases are granted.
    pub(super) fn leases(&self) -> bool {
        self.leases.load(Ordering::Acquire)
    }

    pub(super) fn now(&self) -> Time {
        Time::default() + self.started.elapsed()
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes one input to the sessions, and performs its effects.
    pub(super) fn handle(self: &Arc<Self>, input: ServerInput) {
        let mut effects = Effects::default();
        self.core().handle(self.now(), input, &mut effects);
        self.perform(effects);
    }

    /// Performs effects.
    pub(super) fn perform(self: &Arc<Self>, effects: Effects) {
        for connection in effects.flushes {
            connection.send_queue.flush();
        }
        for task in effects.tasks {
            self.submit(task);
        }
        let mut ended = Vec::new();
        for (connection, why) in effects.closes {
            match &why {
                CloseReason::Fault(fault) => log::peer(format_args!("{}: {fault}", connection.peer.address)),
                CloseReason::Ended => {
                    ended.push(connection);
                    continue;
                }
                _ => {}
            }
            // The last frame has the reason.
            let lingers = matches!(why, CloseReason::Fault(_) | CloseReason::PartyFull);
            self.close_when_sent(connection, lingers);
        }
        for session in effects.ends {
            self.submit_own(Work::End(session, std::mem::take(&mut ended)));
        }
        // Their sessions end when their running requests are done.
        ended.into_iter().for_each(|connection| self.close_when_sent(connection, false));
        if !effects.waits.is_empty() {
            self.colocated.report_waiting(&effects.waits);
        }
        if effects.permits_secondaries {
            self.colocated.permit_secondaries();
        }
        // Attaches that waited for another client; their readers wait with them.
        self.attach_waiting(effects.attaches);
        for log in effects.logs {
            // A ledger that is not closed is invalid after the next boot.
            let _closed = log.close();
        }
        for (id, name) in effects.verifies {
            self.tree.verify(id, name.as_deref(), &mut |outside| {
                self.handle(ServerInput::ExternalChange(outside))
            });
        }
        if effects.stopped {
            self.lock_releases.announce();
        }
        if effects.wakes_clock {
            self.watchdog.wake();
        }
    }

    /// Asks the tree for the roots of pending attaches.
    pub(super) fn attach_waiting(self: &Arc<Self>, attaches: Vec<Attach>) {
        if attaches.is_empty() {
            return;
        }
        for (connection, session, path, before) in attaches {
            self.prepare_leasing();
            let party = self.core().sessions.party(session);
            if let Some(party) = party {
                self.tree.introduce(session, &party);
            }
            let result = self.attach(session, &path, before);
            self.handle(ServerInput::Attached { connection, session, result });
        }
        self.announce();
    }

    /// Restores a session's ledger; called by its reader, before it reads on.
    pub(super) fn restore_session(self: &Arc<Self>, connection: ConnectionKey, session: SessionId) {
        let since = Instant::now();
        let mut is_requested = false;
        loop {
            let guard = self.steps.restoring.lock().unwrap_or_else(PoisonError::into_inner);
            let (place, key) = {
                let core = self.core();
                // The connection has ended, and nobody needs the ledger.
                let Some(asking) = core.connections.get(&connection) else { return };
                let place = core.ledgers.as_ref().filter(|it| !it.has(session)).map(|it| it.place(session));
                (place, asking.peer.identity.as_ref().map(|identity| *identity.raw()))
            };
            let (log, noted) = match place.as_ref().map(|place| (place, place.open(key, since))) {
                Some((_, FoundLedger::Saved(log, noted))) => (Some(Ok(*log)), Some(noted)),
                Some((place, FoundLedger::None)) => (Some(place.create()), None),
                Some((_, FoundLedger::Busy { is_own })) => {
                    drop(guard);
                    // The server that has it may serve a connection whose client is gone.
                    if is_own && !std::mem::replace(&mut is_requested, true) {
                        self.colocated.report_waiting(&[(session, key)]);
                    }
                    std::thread::sleep(BUSY_LOOK);
                    continue;
                }
                Some((_, FoundLedger::Foreign)) => {
                    drop(guard);
                    return self.handle(ServerInput::SessionForeign(connection));
                }
                // The session is known here.
                None => (None, None),
            };
            let mut effects = Effects::default();
            let mut core = self.core();
            if let (Some(log), Some(ledgers)) = (log, &mut core.ledgers) {
                ledgers.insert(session, log);
            }
            core.handle(
                self.now(),
                ServerInput::LedgerLoaded { connection, session, saved: noted },
                &mut effects,
            );
            drop((core, guard));
            return self.perform(effects);
        }
    }

    /// Lets a connection that the sessions closed send its queued frames. `lingers`: and lets the peer read them.
    fn close_when_sent(self: &Arc<Self>, connection: Arc<Connection>, lingers: bool) {
        self.announce();
        if connection.send_queue.queued_bytes() == 0 {
            farewell(&connection, Duration::ZERO, lingers);
        } else {
            self.submit_own(Work::Close(connection, lingers));
        }
    }

    /// Queues work of the server itself.
    pub(super) fn submit_own(self: &Arc<Self>, work: Work) {
        let shared = Arc::clone(self);
        self.pool.submit(Owner::Server, Rank::Quick, work, move || shared.work());
    }

    /// The body of a worker thread.
    pub(super) fn work(self: &Arc<Self>) {
        let another = || {
            let shared = Arc::clone(self);
            move || shared.work()
        };
        self.pool.work(another, |work| match work {
            Work::Task(task) => self.work_through(*task),
            Work::End(session, connections) => {
                self.end(session);
                self.lock_releases.announce();
                connections.into_iter().for_each(|connection| self.close_when_sent(connection, false));
            }
            Work::Close(connection, lingers) => farewell(&connection, FAREWELL_MAX, lingers),
        });
    }

    /// Wakes threads that wait for work to end.
    pub(super) fn announce(&self) {
        self.changed.notify_all();
    }

    /// Waits while `still` holds, at most until `deadline`; `false` if that has passed.
    pub(super) fn wait_while(&self, deadline: Option<Instant>, still: impl Fn(&Core) -> bool) -> bool {
        let mut core = self.core();
        core.watchers += 1;
        let held = loop {
            if !still(&core) {
                break true;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            core = match left {
                None => self.changed.wait(core).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => break false,
                Some(left) => self.changed.wait_timeout(core, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        };
        core.watchers -= 1;
        held
    }

    /// Registers a listener; `false` if the server stops already.
    pub(super) fn add_listener(&self, closer: ListenerCloser) -> bool {
        let mut listeners = self.steps.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if self.core().stopping {
            return false;
        }
        listeners.push(closer);
        true
    }

    /// See [`super::Server::stop`].
    pub(super) fn stop(self: &Arc<Self>) -> bool {
        let listeners = {
            let mut listeners = self.steps.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            self.core().stopping = true;
            std::mem::take(&mut *listeners)
        };
        for listener in listeners {
            listener.close();
        }
        self.handle(ServerInput::Drain);
        let deadline = Instant::now() + self.options.drain_max;
        let is_busy = |core: &Core| core.sessions.jobs() > 0 || core.sessions.is_recalling();
        let drained = self.wait_while(Some(deadline), is_busy);
        self.handle(ServerInput::Stop);
        let deadline = Instant::now() + END_MAX;
        let ended = self.wait_while(Some(deadline), |core| core.sessions.sessions() > 0);
        let settled = self.pool.settle(deadline.saturating_duration_since(Instant::now()));
        self.pool.stop();
        self.watchdog.stop();
        let is_settled = !self.core().sessions.has_leases_out();
        self.colocated.end(is_settled);
        drained && ended && settled
    }
}

/// Closes a connection once its queued frames are sent, or this time is over. `lingers`: so that the peer can read them.
fn farewell(connection: &Connection, timeout: Duration, lingers: bool) {
    if lingers {
        connection.send_queue.finish_lingering(timeout);
    } else {
        connection.send_queue.finish(timeout);
    }
}

fn with_ledgers(sessions: Sessions, options: &ServeOptions) -> Sessions {
    if options.ledger.is_some() { sessions.saving_ledgers() } else { sessions }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}
