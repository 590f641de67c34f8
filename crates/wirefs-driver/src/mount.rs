//! The mounting side: the client core between the kernel's requests and a carrier.
//!
//! ```text
//!  /dev/fuse ── FUSE threads ──┐                      ┌── inline, non-blocking ──> carrier
//!                              ├── Client (one lock) ─┤
//!  /dev/fuse <── reader thread ┘                      └── reader thread <───────── carrier
//! ```
//!
//! A warm answer is given by the FUSE thread that read the request. A miss is sent by it, and answered by the thread
//! that reads the carrier; where the server is in this process, the FUSE thread carries the miss out and answers it too. Invalidations wait for the kernel, which may wait for our answers: they have a thread of
//! their own, and so have the answers and frames that must come after them. Another looks after frames that would wait there for
//! too long.

mod clock;
mod data;
mod dropping;
mod ending;
mod engine;
mod front;
mod gate;
mod handshake;
mod invalidation;
mod journal;
mod local;
mod notices;
mod outlet;
mod pause;
mod random;
mod signals;
mod slow;
mod status;
mod store;
mod ticker;
mod user_space;
mod waiting;
mod wire;

pub use gate::{Gate, GatePlan};
pub use handshake::ConnectError;
pub use journal::{
    Brought, FsyncWaits, JournalPlan, JournalStatus, Kept, KeptChange, LeftJournal, LeftState, Progress,
    Recovered, Stays, kept_changes, kept_in, left_journals,
};
pub use local::LocalDial;
pub use slow::Waits;
pub use status::MountStatus;
pub use store::{StorePlan, StoreStatus};
pub use user_space::UserSpaceMount;

use ending::Holder;
use engine::Engine;
use handshake::Attached;
use journal::Journal;
use slow::Slow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Left, Store};
use wirefs_cache::Mode;
use wirefs_carrier::{Carrier, Dial, DialError, PeerInfo};
use wirefs_client::Attachment;
use wirefs_fuse::{MountOptions, Session, SessionOptions, StartError, TableEntry, UnmountError};
use wirefs_op::Errno;
use wirefs_op::message::version::SessionId;

/// Connections that a mount makes to its server, at most.
pub const CONNECTIONS_MAX: usize = 4;

/// What to mount, and how.
#[derive(Clone)]
pub struct MountPlan {
    /// How to reach the server, as often as it takes.
    pub dial: Arc<dyn Dial>,
    /// The directory below the export, without a leading `/`.
    pub path: Vec<u8>,
    /// Who mounts, for the server's log.
    pub user: String,
    /// When to validate, publish, fetch.
    pub mode: Mode,
    /// How long a call may wait for a silent server; `None`: for ever.
    pub deadline: Option<Duration>,
    /// File contents remembered, in bytes, at most.
    pub cache_bytes_max: usize,
    /// Threads that read requests from the kernel.
    pub threads: usize,
    /// Connections to the server, at most: beside the first one those are made by themselves over which contents of files come when
    /// socket buffers limit it. 1: no others.
    pub connections_max: usize,
    /// The user whose files the server user's files are shown as.
    pub uid: u32,
    /// The group likewise.
    pub gid: u32,
    /// Where what is known is kept for the next mount; `None`: nowhere.
    pub store: Option<StorePlan>,
    /// Where the journal is, and whether one is kept; `None`: nowhere.
    pub journal: Option<JournalPlan>,
    /// Told what the making of the mount waits for when that takes longer than 1 s.
    pub tell: fn(Waits),
}

impl MountPlan {
    /// Dials the server, and says so where that takes long.
    fn dial(&self) -> Result<Carrier, DialError> {
        let _slow = Slow::begin(self.tell, Waits::Connection);
        self.dial.dial()
    }
}

/// Why a mount could not be made, after the server was reached.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel would not mount.
    #[error(transparent)]
    Mount(#[from] wirefs_fuse::MountError),
    /// The kernel would not be served.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No thread could be made.
    #[error("a thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// A server that was reached, with its tree attached; nothing is mounted yet.
pub struct Connected {
    plan: MountPlan,
    engine: Arc<Engine>,
    attached: Attached,
    recovered: Vec<Recovered>,
}

/// Reaches the server and attaches its tree. What an earlier mount of it left in a journal is brought there first.
///
/// # Errors
/// The server cannot be reached, refuses us, or does not have that directory; each says what to do.
///
/// # Cost
/// The carrier's dial and 2 round trips; for a journal that was left, another dial, and what its changes take.
pub fn connect(plan: MountPlan) -> Result<Connected, ConnectError> {
    let store = plan.store.as_ref().and_then(|store| Store::open(store, plan.tell));
    let carrier = plan.dial()?;
    // The session is a secret between the two: it is told to nobody else.
    let identity = engine::identity(&carrier.peer);
    if let Some(store) = &store {
        store.meet(&identity);
    }
    let left = store.as_ref().filter(|_| plan.mode.takes_leases()).and_then(|store| store.take(&identity));
    let (carrier, recovered, stay) = recover(&plan, carrier)?;
    let left = left.filter(|left| !stay.contains(&left.session));
    let (session, attached, left) = attach(&plan, carrier, left)?;
    let is_ahead = plan.mode.allows_optimism();
    let journal = plan.journal.as_ref().filter(|_| is_ahead);
    let journal = journal.and_then(|journal| Journal::begin(journal, session, &attached, plan.tell));
    let engine = Arc::new(Engine::new(&plan, session, &attached, store, journal));
    if let Some(left) = left {
        engine.take_over(left);
    }
    Ok(Connected { plan, engine, attached, recovered })
}

/// Brings to the server what earlier mounts of the plan's source left in journals, and nothing else.
///
/// # Errors
/// The server cannot be reached. What becomes of each journal is in the answer.
///
/// # Cost
/// The carrier's dial, and for each journal another, 3 round trips, and what its changes take.
pub fn recover_left(plan: &MountPlan) -> Result<Vec<Recovered>, ConnectError> {
    let carrier = plan.dial()?;
    let all = plan.journal.as_ref().map(|journal| journal::recover_all(plan, journal, carrier));
    Ok(all.map(|all| all.journals).unwrap_or_default())
}

type AfterRecovery = (Carrier, Vec<Recovered>, Vec<SessionId>);

/// Also a connection that was not used for it, and the sessions that cannot be taken up.
fn recover(plan: &MountPlan, carrier: Carrier) -> Result<AfterRecovery, ConnectError> {
    let Some(journal) = &plan.journal else { return Ok((carrier, Vec::new(), Vec::new())) };
    let all = journal::recover_all(plan, journal, carrier);
    let carrier = all.carrier.map_or_else(|| plan.dial(), Ok)?;
    Ok((carrier, all.journals, all.stay))
}

/// Takes up the session that an earlier mount left; opens another where that is refused.
fn attach(
    plan: &MountPlan,
    carrier: Carrier,
    left: Option<Left>,
) -> Result<(SessionId, Attached, Option<Left>), ConnectError> {
    let carrier = match left {
        Some(left) => match handshake::shake_hands(carrier, left.session, plan) {
            Ok(attached) => return Ok((left.session, attached, Some(left))),
            Err(ConnectError::Refused(_) | ConnectError::Attach { .. }) => plan.dial()?,
            Err(error) => return Err(error),
        },
        None => carrier,
    };
    let session = random::session_id().map_err(ConnectError::Random)?;
    Ok((session, handshake::shake_hands(carrier, session, plan)?, None))
}

impl Connected {
    /// What the server said of the tree.
    pub fn attachment(&self) -> &Attachment {
        &self.attached.attachment
    }

    /// What became of the journals that earlier mounts left.
    pub fn recovered(&self) -> &[Recovered] {
        &self.recovered
    }

    /// Who the server is.
    pub fn peer(&self) -> &PeerInfo {
        &self.attached.carrier.peer
    }

    /// Ends it unmounted: nobody has changed anything.
    fn abandon(self) {
        self.engine.stop();
        self.engine.end_journal(true);
    }

    /// Mounts without the kernel: this process calls the tree itself. The plan has no journal.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn mount_in_user_space(self) -> std::io::Result<UserSpaceMount> {
        UserSpaceMount::start(self)
    }

    /// Mounts. Programs can use the mount once this returns.
    ///
    /// # Errors
    /// The kernel refuses; the text says what to do.
    pub fn mount(
        self,
        mountpoint: &Path,
        options: &MountOptions,
        posix_acl: bool,
    ) -> Result<Mounted, MountError> {
        let Connected { plan, engine, attached, .. } = self;
        // A mount that stands tells of its connections by its status.
        let plan = MountPlan { tell: |_| {}, ..plan };
        let device = wirefs_fuse::mount(mountpoint, options)?;
        if let Some(entry) = TableEntry::at(mountpoint) {
            engine.note(&Holder::Mount(entry));
        }
        let dial = Arc::clone(&plan.dial);
        let session_options = SessionOptions {
            threads: plan.threads.max(1),
            posix_acl,
            // Where listings may be kept, which somebody has to take back.
            spares_opendir: plan.mode.kernel_caches_listings() && attached.attachment.leases.is_some(),
            // A server in this process may take longer than a thread takes to wake; else it says so.
            reads_in_turn: attached
                .carrier
                .sink
                .in_process()
                .is_none_or(|server| server.announces_blocking()),
            ..SessionOptions::default()
        };
        let front = Arc::clone(&engine);
        let started = start_threads(&engine, attached, plan)
            .map_err(MountError::Thread)
            .and_then(|()| Ok(Session::start(device, front, session_options)?))
            .and_then(|session| {
                invalidation::start(&engine, session.notifier())?;
                Ok(session)
            });
        let session = match started {
            Ok(session) => session,
            Err(error) => {
                // INVARIANT: no caller may be left waiting on a mount that nobody serves.
                let _ = wirefs_fuse::unmount(mountpoint, true);
                engine.stop();
                return Err(error);
            }
        };
        Ok(Mounted { engine, session, dial, mountpoint: mountpoint.to_path_buf() })
    }
}

/// Starts the threads that a mount has apart from those that speak with the kernel.
fn start_threads(engine: &engine::Shared, attached: Attached, plan: MountPlan) -> std::io::Result<()> {
    wire::start(engine, attached, plan)?;
    ticker::start(engine)?;
    store::start(engine)?;
    journal::start(engine)?;
    engine.hear();
    Ok(())
}

/// Ends a mount that nobody calls any more: sends its changes, at most as long as a caller would have waited.
fn end(engine: &Engine) {
    let is_settled = engine.settle() && engine.settle_journal();
    engine.rest();
    engine.stop();
    engine.leave();
    engine.end_journal(is_settled);
}

/// A mount that is served.
pub struct Mounted {
    engine: Arc<Engine>,
    session: Session,
    dial: Arc<dyn Dial>,
    mountpoint: PathBuf,
}

/// Asks and commands a mount from other threads than the one that waits for its end.
#[derive(Clone)]
pub struct MountControl {
    engine: Arc<Engine>,
    dial: Arc<dyn Dial>,
    mountpoint: PathBuf,
}

impl Mounted {
    /// A handle for other threads.
    pub fn control(&self) -> MountControl {
        let dial = Arc::clone(&self.dial);
        MountControl { engine: Arc::clone(&self.engine), dial, mountpoint: self.mountpoint.clone() }
    }

    /// Waits until it is unmounted, then until what was on its way is at the server, at most as long as a caller would
    /// have waited.
    pub fn wait(self) {
        self.session.until_gone();
        self.engine.note(&Holder::Ending);
        let _ = self.session.join();
        end(&self.engine);
    }
}

impl MountControl {
    /// What it has done and is doing.
    pub fn status(&self) -> MountStatus {
        MountStatus { paths: self.dial.paths(), ..self.engine.status(&self.mountpoint) }
    }

    /// Waits until everything is on the server's stable storage.
    ///
    /// # Errors
    /// As `syncfs`.
    pub fn sync(&self) -> Result<(), Errno> {
        self.engine.sync()
    }

    /// Unmounts; `lazy` takes it out of sight at once, whoever still uses it.
    ///
    /// # Errors
    /// It is busy, or gone.
    pub fn unmount(&self, lazy: bool) -> Result<(), UnmountError> {
        wirefs_fuse::unmount(&self.mountpoint, lazy)
    }
}
