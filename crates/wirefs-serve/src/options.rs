//! What a server can be told.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wirefs_op::message::version::{BootId, SessionId};

/// What is done each time before a client is promised something, and when one is gone.
#[derive(Clone)]
pub struct BeforeLeasing(Arc<dyn Fn(&Believers) + Send + Sync>);

/// Who may believe what a server has promised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Believers {
    /// All that may, those that are about to be promised something included.
    pub sessions: BTreeSet<SessionId>,
    /// Somebody may still believe what a server before this one has promised.
    pub is_recovering: bool,
}

impl BeforeLeasing {
    /// Has this done, never twice at a time.
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

/// Which directory of this machine a server serves, so that servers of the same one find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServedPlace {
    /// The number of the device that it is on.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
}

/// The name and the limits of one server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Names the run in which what was written but not committed is still there. What lies in the machine's memory
    /// outlives the server's process: so it should stay the same over mere restarts of the process, or clients send
    /// again what was safe. It must differ after each start of the machine, and for another exported directory.
    pub boot: BootId,
    /// Threads for requests, waiting locks not counted. Each session may have two beyond that.
    pub workers_max: usize,
    /// Of these, at most so many for one session.
    pub session_workers_max: usize,
    /// Threads in which locks wait, for all sessions together.
    pub waiters_max: usize,
    /// Of these, at most so many for one session.
    pub session_waiters_max: usize,
    /// How long a stop waits for what is running.
    pub drain_max: Duration,
    /// So long nothing is changed after the start: a server before this one has ended with leases out.
    pub recovery: Duration,
    /// Whom that one had promised something; changes wait no longer than until all of these have come back. `None`: nobody knows.
    pub believers: Option<BTreeSet<SessionId>>,
    /// A directory of this user's alone, for this export alone, in which the numbers of changes outlive the server's process.
    /// `None`: clients whose server is started again do not know what became of the changes under way.
    pub ledger: Option<PathBuf>,
    /// What is served, if other servers on this machine may serve it too. `None`: none do.
    pub place: Option<ServedPlace>,
    /// What to do before anything is leased.
    pub before_leasing: Option<BeforeLeasing>,
    /// Called by a thread that executes an in-process client's request, before it blocks: the mount then has another
    /// thread read the kernel's requests.
    pub before_blocking: fn(),
}

impl ServeOptions {
    /// The usual numbers.
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
            before_blocking: || {},
        }
    }
}
