//! The router of a server process: listeners, and the export that each connection uses.
//!
//! ```text
//!   listener ──► handshake ──► first messages ──► access check ──► server of the export
//! ```
//! A process with one unnamed export passes each connection on at once. With several exports, the first component of
//! the path in Tattach is the export's name, and a data connection belongs to the export that has its session.

mod routing;

use super::listen;
use super::options::PeerRights;
use super::server::Server;
use routing::Refusal;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::{Duration, Instant};
use wirefs_carrier::{Carrier, Closer, Listener, ListenerCloser, PeerInfo};
use wirefs_server::limits::FIRST_ATTACH_MAX;

/// Returns the rights of a peer on an export; `None`: it may not use the export.
pub type AccessCheck = Arc<dyn Fn(&PeerInfo, &str) -> Option<PeerRights> + Send + Sync>;

/// Connections whose first messages have not arrived. With more, the oldest is closed.
pub(super) const UNROUTED_MAX: usize = 256;

/// The name of an export that is alone and has no name.
const UNNAMED: &str = "";

/// The router of one server process. Dropping it stops it.
pub struct ExportRouter {
    shared: Arc<RouterState>,
}

struct RouterState {
    exports: RwLock<BTreeMap<String, Arc<Server>>>,
    access: AccessCheck,
    listeners: Mutex<Vec<ListenerCloser>>,
    unrouted: Mutex<Unrouted>,
    /// How long a connection may take until its first messages.
    first_messages_max: Duration,
}

/// Connections whose first messages have not arrived.
#[derive(Default)]
struct Unrouted {
    begun: u64,
    /// In order, since the numbers grow.
    closers: BTreeMap<u64, (Instant, Closer)>,
    /// A thread closes the connections that are silent.
    is_watched: bool,
    /// The router stops: it takes no more connections.
    is_stopped: bool,
}

impl ExportRouter {
    /// Returns a router without exports and listeners.
    pub fn new(access: AccessCheck) -> ExportRouter {
        ExportRouter::with_patience(access, FIRST_ATTACH_MAX)
    }

    /// Returns a router that closes a connection without first messages after this time.
    pub(super) fn with_patience(access: AccessCheck, first_messages_max: Duration) -> ExportRouter {
        let (exports, listeners, unrouted) = (RwLock::default(), Mutex::default(), Mutex::default());
        let shared = RouterState { exports, access, listeners, unrouted, first_messages_max };
        ExportRouter { shared: Arc::new(shared) }
    }

    /// Returns a router with one export, which has no name.
    pub fn single(server: Server, access: AccessCheck) -> ExportRouter {
        let router = ExportRouter::new(access);
        router.add(UNNAMED, server);
        router
    }

    /// Adds an export.
    pub fn add(&self, name: &str, server: Server) {
        let mut exports = self.shared.exports.write().unwrap_or_else(PoisonError::into_inner);
        exports.insert(name.to_owned(), Arc::new(server));
    }

    /// Removes an export and returns its server, which still runs.
    pub fn remove(&self, name: &str) -> Option<Arc<Server>> {
        self.shared.exports.write().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    /// Returns the exports.
    pub fn servers(&self) -> BTreeMap<String, Arc<Server>> {
        self.shared.exports().clone()
    }

    /// Accepts connections from `listener` until the router stops.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn listen(&self, listener: Listener) -> io::Result<()> {
        // Locked, so that a stop closes this listener too.
        let mut listeners = self.shared.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if self.shared.unrouted().is_stopped {
            return Ok(());
        }
        listeners.push(listener.closer());
        let shared = Arc::clone(&self.shared);
        listen::accept_all(listener, move |carrier| shared.serve(carrier))
    }

    /// Serves one connection in the calling thread until it ends.
    pub fn serve(&self, carrier: Carrier) {
        self.shared.serve(carrier);
    }

    /// Ends the sessions of peers that the access check refuses by now, or gives other rights.
    pub fn review(&self) {
        for (name, server) in self.servers() {
            server.review(&|peer, rights| (self.shared.access)(peer, &name) == Some(rights));
        }
    }

    /// Stops listening, then all exports at once. Returns whether all of it ended in time.
    ///
    /// # Cost
    /// Waits as long as [`Server::stop`].
    pub fn stop(&self) -> bool {
        let closers = {
            let mut listeners = self.shared.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            let mut unrouted = self.shared.unrouted();
            unrouted.is_stopped = true;
            listeners.drain(..).for_each(|listener| listener.close());
            std::mem::take(&mut unrouted.closers)
        };
        closers.values().for_each(|(_, closer)| closer.close());
        let servers = self.servers();
        std::thread::scope(|scope| {
            let stops: Vec<_> = servers.values().map(|server| scope.spawn(move || server.stop())).collect();
            // Each stop is awaited, also after one that did not end in time.
            let ended: Vec<bool> = stops.into_iter().map(|stop| stop.join().unwrap_or(false)).collect();
            ended.into_iter().all(|in_time| in_time)
        })
    }
}

impl Drop for ExportRouter {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for ExportRouter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExportRouter").field("exports", &*self.shared.exports()).finish_non_exhaustive()
    }
}

impl RouterState {
    fn exports(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<Server>>> {
        self.exports.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn unrouted(&self) -> MutexGuard<'_, Unrouted> {
        self.unrouted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Routes a connection and serves it.
    fn serve(self: &Arc<Self>, mut carrier: Carrier) {
        let single = self.exports().get(UNNAMED).cloned();
        let routed = match single {
            Some(server) => self.enter(&carrier, UNNAMED, server),
            None => {
                let Some(number) = self.begin(carrier.closer.clone()) else { return };
                let routed = self.route(&mut carrier);
                self.unrouted().closers.remove(&number);
                routed
            }
        };
        match routed {
            Ok(routed) => routed.server.serve_with(routed.replayed(carrier), routed.rights),
            Err(Refusal::Explained(text)) => routing::refuse(carrier, &text),
            Err(Refusal::Gone) => carrier.closer.close(),
        }
    }

    /// Registers a connection without first messages; `None` if the router stops.
    fn begin(self: &Arc<Self>, closer: Closer) -> Option<u64> {
        let mut unrouted = self.unrouted();
        if unrouted.is_stopped {
            closer.close();
            return None;
        }
        if unrouted.closers.len() >= UNROUTED_MAX
            && let Some((_, (_, oldest))) = unrouted.closers.pop_first()
        {
            oldest.close();
        }
        let number = unrouted.begun;
        unrouted.begun += 1;
        unrouted.closers.insert(number, (Instant::now(), closer));
        if !unrouted.is_watched {
            let router = Arc::downgrade(self);
            let thread = std::thread::Builder::new().name("wirefs-router".into());
            // Without a thread, only the bound of the table ends silent connections.
            unrouted.is_watched = thread.spawn(move || close_silent(&router)).is_ok();
        }
        Some(number)
    }

    /// Closes the connections whose time is over. Returns the time until the next one; `None` if there is none.
    fn close_overdue(&self, now: Instant) -> Option<Duration> {
        let mut unrouted = self.unrouted();
        while let Some(first) = unrouted.closers.first_entry() {
            let due = first.get().0 + self.first_messages_max;
            if due > now {
                return Some(due - now);
            }
            first.remove().1.close();
        }
        unrouted.is_watched = false;
        None
    }
}

/// Closes silent connections until there is none, or the router is gone.
fn close_silent(router: &Weak<RouterState>) {
    while let Some(left) = router.upgrade().and_then(|router| router.close_overdue(Instant::now())) {
        std::thread::sleep(left);
    }
}
