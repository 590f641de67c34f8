//! Reaching a server, and mounting its tree.

use std::path::Path;
use std::sync::Arc;

use wirefs_carrier::{Carrier, PeerInfo};
use wirefs_client::Attachment;
use wirefs_fuse::{MountOptions, Session, SessionOptions, TableEntry};
use wirefs_op::message::version::SessionId;

use super::ending::Holder;
use super::engine::{self, Engine};
use super::handshake::{self, Attached, ConnectError};
use super::journal::{self, Journal, Recovered};
use super::mounted::{MountError, Mounted};
use super::plan::MountPlan;
use super::store::{self, Left, Store};
use super::user_space::UserSpaceMount;
use super::{invalidation, random, ticker, wire};

/// A server that was reached, with its tree attached; nothing is mounted yet.
pub struct Connected {
    pub(super) plan: MountPlan,
    pub(super) engine: Arc<Engine>,
    pub(super) attached: Attached,
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
    pub(super) fn abandon(self) {
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

/// Starts the threads of a mount, except those for the kernel's requests.
pub(super) fn start_threads(
    engine: &engine::Shared,
    attached: Attached,
    plan: MountPlan,
) -> std::io::Result<()> {
    wire::start(engine, attached, plan)?;
    ticker::start(engine)?;
    store::start(engine)?;
    journal::start(engine)?;
    engine.hear();
    Ok(())
}
