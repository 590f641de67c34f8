//! Options of a server.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wirefs_op::message::version::{BootId, SessionId};

/// A callback that runs before a client gets leases, and after a client has gone.
#[derive(Clone)]
pub struct BeforeLeasing(Arc<dyn Fn(&Believers) + Send + Sync>);

/// The sessions that may use leases of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Believers {
    /// All sessions with leases, and those that are about to get some.
    pub sessions: BTreeSet<SessionId>,
    /// Sessions of an earlier server process may still use its leases.
    pub is_recovering: bool,
}

impl BeforeLeasing {
    /// Wraps a callback. Calls never overlap.
    pub fn new(act: Box<dyn Fn(&Believers) + Send + Sync>) -> BeforeLeasing {
        BeforeLeasing(Arc::from(act))
    }

    pub(super) fn act(&self, believers: &Believers) {
        (self.0)(believers);
    }
}

impl std::fmt::Debug for BeforeLeasing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BeforeLeasing").finish_non_exhaustive()
    }
}

/// The identity of a served directory on this machine, by which servers of the same directory find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServedPlace {
    /// The device number of its file system.
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
}

/// The rights of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerRights {
    /// Its changes fail with `EROFS`.
    pub read_only: bool,
}

/// The threads that execute the requests of an in-process client.
#[derive(Clone, Copy, Debug)]
pub enum InProcessExecution {
    /// The thread that sent the request.
    CallingThread {
        /// Called by this thread before it blocks: the mount then has another thread read the kernel's requests.
        before_blocking: fn(),
    },
    /// The server's workers, for a tree that waits for a network: so the client has many requests in progress.
    Workers,
}

/// The identity and the limits of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Identifies the time during which unstable writes survive. They are in the machine's memory, which outlives the
    /// server's process. So it should stay the same over restarts of the process, or clients send safe data again. It
    /// must differ after each boot of the machine, and for another exported directory.
    pub boot: BootId,
    /// The maximum number of worker threads, not counting waiting locks. Each session may have two more.
    pub workers_max: usize,
    /// The maximum number of worker threads for one session.
    pub session_workers_max: usize,
    /// The maximum number of threads in which locks wait.
    pub waiters_max: usize,
    /// The maximum number of those threads for one session.
    pub session_waiters_max: usize,
    /// How long a stop waits for running requests.
    pub drain_max: Duration,
    /// The grace period after the start, in which no change is made; needed after a server process that ended with
    /// leases.
    pub recovery: Duration,
    /// The sessions with leases of that process: the grace period ends early once all have returned. `None`: unknown.
    pub believers: Option<BTreeSet<SessionId>>,
    /// A private directory of this user and export for the ledgers, which then outlive the server's process. `None`:
    /// after a restart, clients do not learn the outcome of pending changes.
    pub ledger: Option<PathBuf>,
    /// The served directory, if other servers on this machine may serve it too.
    pub place: Option<ServedPlace>,
    /// Runs before leases are granted.
    pub before_leasing: Option<BeforeLeasing>,
    /// The threads that execute the requests of an in-process client.
    pub in_process: InProcessExecution,
}

impl ServeOptions {
    /// Creates options with the default limits.
    pub fn new(boot: BootId) -> ServeOptions {
        ServeOptions {
            boot,
            workers_max: 64,
            session_workers_max: 16,
            waiters_max: 512,
            session_waiters_max: 128,
            drain_max: Duration::from_secs(5),
            recovery: Duration::ZERO,
            believers: None,
            ledger: None,
            place: None,
            before_leasing: None,
            in_process: InProcessExecution::CallingThread { before_blocking: || {} },
        }
    }
}
