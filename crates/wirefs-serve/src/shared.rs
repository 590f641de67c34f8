//! What all threads of one server share.

use super::connection::Connection;
use super::core::{Attach, Core, Effects};
use super::ledgers::{BUSY_LOOK, Ledgers};
use super::log;
use super::neighbours::{self, Neighbourhood};
use super::options::{Believers, ServeOptions};
use super::pool::{Owner, Pool, Rank, Work};
use super::relief::Alarm;
use super::replies::News;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wirefs_carrier::ListenerCloser;
use wirefs_op::Time;
use wirefs_op::message::version::SessionId;
use wirefs_server::{ConnectionKey, Input, Parting, Sessions, Terms, Tree};

/// How long a closed connection may take to send its last words.
pub(super) const FAREWELL_MAX: Duration = Duration::from_secs(1);
/// How long a stop waits for the end of the sessions, beyond the draining.
const END_MAX: Duration = Duration::from_secs(2);

pub(super) struct Shared {
    pub(super) tree: Arc<dyn Tree>,
    pub(super) options: ServeOptions,
    started: Instant,
    core: Mutex<Core>,
    /// Signalled when work has ended or a connection is gone.
    changed: Condvar,
    /// Whether clients may be promised anything; never changes once there are some.
    leases: AtomicBool,
    /// Whether the tree says so before it waits.
    pub(super) says_before_waiting: bool,
    /// Held while that is done which comes before leasing.
    preparing: Mutex<()>,
    pub(super) pool: Pool,
    pub(super) alarm: Alarm,
    pub(super) news: News,
    pub(super) neighbourhood: Neighbourhood,
    /// Held while notes are looked for, so that two connections of one session do not both begin with them.
    recollecting: Mutex<()>,
    listeners: Mutex<Vec<ListenerCloser>>,
}

impl Shared {
    pub(super) fn new(tree: Arc<dyn Tree>, options: ServeOptions) -> Shared {
        let ledgers = options.ledger.clone().map(|dir| Ledgers::new(dir, options.boot));
        let sessions = keeping_notes(Sessions::new(options.boot), &options);
        Shared {
            says_before_waiting: tree.before_waiting(options.before_blocking),
            tree,
            started: Instant::now(),
            core: Mutex::new(Core::new(sessions, ledgers)),
            changed: Condvar::new(),
            leases: AtomicBool::new(false),
            preparing: Mutex::new(()),
            pool: Pool::new(&options),
            alarm: Alarm::default(),
            news: News::default(),
            neighbourhood: Neighbourhood::new(),
            recollecting: Mutex::new(()),
            listeners: Mutex::new(Vec::new()),
            options,
        }
    }

    /// Has the tree tell what changes in it by other ways, and leases what it can tell of. Before there are any clients.
    pub(super) fn begin_leasing(self: &Arc<Self>) {
        let server = Arc::downgrade(self);
        self.tree.observe(Box::new(move |outside| {
            if let Some(server) = server.upgrade() {
                server.handle(Input::Outside(outside));
            }
        }));
        if let Some(watch) = self.tree.leases() {
            let recovery = self.options.recovery;
            let recovering_until = (!recovery.is_zero()).then(|| self.now() + recovery);
            let sessions = Sessions::leasing(self.options.boot, Terms { watch, recovering_until });
            let sessions = match self.options.believers.clone().filter(|_| recovering_until.is_some()) {
                Some(believers) => sessions.awaiting(believers),
                None => sessions,
            };
            self.core().sessions = keeping_notes(sessions, &self.options);
            self.leases.store(true, Ordering::Release);
        }
        if let Some(place) = self.options.place {
            neighbours::start(self, place);
        }
    }

    /// A client is about to be promised something, for all that is known, or is gone.
    pub(super) fn prepare_leasing(&self) {
        if let (true, Some(before_leasing)) = (self.leases(), &self.options.before_leasing) {
            // Who is asked for later is not told earlier: nobody who was added before gets lost.
            let _in_turn = self.preparing.lock().unwrap_or_else(PoisonError::into_inner);
            let believers = {
                let core = self.core();
                let is_recovering = core.sessions.is_recovering(self.now());
                Believers { sessions: core.sessions.believers(), is_recovering }
            };
            before_leasing.act(&believers);
        }
    }

    /// Has the tree let go of what no promise needs any more.
    pub(super) fn tend(&self) {
        if self.leases()
            && let Some(note) = self.tree.tend(&|ids| self.core().sessions.are_known(ids))
        {
            log::line(format_args!("{note}"));
        }
    }

    /// Whether clients may be promised anything.
    pub(super) fn leases(&self) -> bool {
        self.leases.load(Ordering::Acquire)
    }

    pub(super) fn now(&self) -> Time {
        Time::default() + self.started.elapsed()
    }

    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands one input to the core and does what follows from it.
    pub(super) fn handle(self: &Arc<Self>, input: Input) {
        let mut effects = Effects::default();
        self.core().handle(self.now(), input, &mut effects);
        self.perform(effects);
    }

    /// Does what the core has decided.
    pub(super) fn perform(self: &Arc<Self>, effects: Effects) {
        for connection in effects.flushes {
            connection.outbox.flush();
        }
        for task in effects.tasks {
            self.submit(task);
        }
        let mut ended = Vec::new();
        for (connection, why) in effects.closes {
            match &why {
                Parting::Fault(fault) => log::line(format_args!("{}: {fault}", connection.peer.address)),
                Parting::Ended => {
                    ended.push(connection);
                    continue;
                }
                _ => {}
            }
            self.send_off(connection);
        }
        for session in effects.ends {
            self.house(Work::End(session, std::mem::take(&mut ended)));
        }
        // Their sessions end when what is still carried out for them is done.
        ended.into_iter().for_each(|connection| self.send_off(connection));
        if !effects.waits.is_empty() {
            self.neighbourhood.waits(&effects.waits);
        }
        if effects.gives_way {
            self.neighbourhood.gives_way();
        }
        // Those that had to wait for somebody else; their readers wait with them.
        self.let_in(effects.attaches);
        for log in effects.logs {
            // One that is not ended in order is not believed after the next boot.
            let _closed = log.close();
        }
        for (id, name) in effects.verifies {
            self.tree.verify(id, name.as_deref(), &mut |outside| self.handle(Input::Outside(outside)));
        }
        if effects.stopped {
            self.news.tell();
        }
        if effects.hurries {
            self.alarm.ring();
        }
    }

    /// Asks the tree for those who want to attach.
    pub(super) fn let_in(self: &Arc<Self>, attaches: Vec<Attach>) {
        if attaches.is_empty() {
            return;
        }
        for (connection, session, path, before) in attaches {
            self.prepare_leasing();
            let result = self.attach(session, &path, before);
            self.handle(Input::Attached { connection, session, result });
        }
        self.announce();
    }

    /// Looks for what was noted of a session before; only a reader does, before it reads on.
    pub(super) fn recollect(self: &Arc<Self>, connection: ConnectionKey, session: SessionId) {
        let since = Instant::now();
        let mut is_asked_for = false;
        loop {
            let looking = self.recollecting.lock().unwrap_or_else(PoisonError::into_inner);
            let place =
                self.core().ledgers.as_ref().filter(|it| !it.has(session)).map(|it| it.place(session));
            let Some(found) = place.as_ref().map_or(Some(None), |place| place.look(since)) else {
                drop(looking);
                // The server that has it may serve a connection still at whose other end nobody is any more.
                if !std::mem::replace(&mut is_asked_for, true) {
                    self.neighbourhood.waits(&[session]);
                }
                std::thread::sleep(BUSY_LOOK);
                continue;
            };
            let (log, noted) = match (found, &place) {
                (Some((log, noted)), _) => (Some(Ok(log)), Some(Box::new(noted))),
                (None, Some(place)) => (Some(place.create()), None),
                // The session is here.
                (None, None) => (None, None),
            };
            let mut effects = Effects::default();
            let mut core = self.core();
            if let (Some(log), Some(ledgers)) = (log, &mut core.ledgers) {
                ledgers.keep(session, log);
            }
            core.handle(self.now(), Input::Noted { connection, session, noted }, &mut effects);
            drop((core, looking));
            return self.perform(effects);
        }
    }

    /// Lets a connection that the core has closed send what it holds.
    fn send_off(self: &Arc<Self>, connection: Arc<Connection>) {
        self.announce();
        if connection.outbox.queued_bytes() == 0 {
            connection.outbox.close();
        } else {
            self.house(Work::Close(connection));
        }
    }

    /// Has the pool do something of the server's own.
    pub(super) fn house(self: &Arc<Self>, work: Work) {
        let shared = Arc::clone(self);
        self.pool.submit(Owner::House, Rank::Quick, work, move || shared.work());
    }

    /// What a worker thread does.
    pub(super) fn work(self: &Arc<Self>) {
        let another = || {
            let shared = Arc::clone(self);
            move || shared.work()
        };
        self.pool.work(another, |work| match work {
            Work::Task(task) => self.work_through(*task),
            Work::End(session, connections) => {
                self.end(session);
                self.news.tell();
                connections.into_iter().for_each(|connection| self.send_off(connection));
            }
            Work::Close(connection) => {
                connection.outbox.finish(FAREWELL_MAX);
            }
        });
    }

    /// Wakes whoever waits for work to end.
    pub(super) fn announce(&self) {
        self.changed.notify_all();
    }

    /// Waits while `still`, at most until `deadline`; false when that has passed.
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

    /// Remembers how to end a listener; false when the server stops already.
    pub(super) fn add_listener(&self, closer: ListenerCloser) -> bool {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if self.core().stopping {
            return false;
        }
        listeners.push(closer);
        true
    }

    /// See [`super::Server::stop`].
    pub(super) fn stop(self: &Arc<Self>) -> bool {
        let listeners = {
            let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            self.core().stopping = true;
            std::mem::take(&mut *listeners)
        };
        for listener in listeners {
            listener.close();
        }
        self.handle(Input::Drain);
        let deadline = Instant::now() + self.options.drain_max;
        let is_busy = |core: &Core| core.sessions.jobs() > 0 || core.sessions.is_recalling();
        let drained = self.wait_while(Some(deadline), is_busy);
        self.handle(Input::Stop);
        let deadline = Instant::now() + END_MAX;
        let ended = self.wait_while(Some(deadline), |core| core.sessions.sessions() > 0);
        let settled = self.pool.settle(deadline.saturating_duration_since(Instant::now()));
        self.pool.stop();
        self.alarm.stop();
        let is_settled = !self.core().sessions.are_leases_out();
        self.neighbourhood.end(is_settled);
        drained && ended && settled
    }
}

fn keeping_notes(sessions: Sessions, options: &ServeOptions) -> Sessions {
    if options.ledger.is_some() { sessions.keeping_notes() } else { sessions }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}
