//! Reaching a server, and mounting its tree.

use std::path::Path;
use std::sync::Arc;

use wirefs_carrier::{Carrier, PeerInfo};
use wirefs_client::Attachment;
use wirefs_fuse::{MountOptions, Session, SessionOptions, TableEntry};
use wirefs_op::message::version::SessionId;

use super::engine::{self, Engine};
use super::handshake::{self, Attached, ConnectError};
use super::journal::{self, Journal, JournalRecovery};
use super::mount_place::MountPlace;
use super::mounted::{MountStartError, Mounted};
use super::plan::MountPlan;
use super::previous_mount::MountNote;
use super::store::{self, SavedSession, Store};
use super::user_space::UserSpaceMount;
use super::{invalidation, random, ticker, wire};

/// An attached server, not mounted yet.
pub struct Connected {
    pub(super) plan: MountPlan,
    pub(super) engine: Arc<Engine>,
    pub(super) attached: Attached,
    recovered: Vec<JournalRecovery>,
}

/// Connects to the server and attaches its tree, after replaying the journals that earlier mounts saved.
///
/// # Errors
/// The server cannot be reached, refuses us, or does not have the directory; each text says what to do.
///
/// # Cost
/// The carrier's dial and 2 round trips; for each journal another dial, and the replay.
pub fn connect(plan: MountPlan) -> Result<Connected, ConnectError> {
    let store = plan.store.as_ref().and_then(|store| Store::open(store, plan.tell));
    let carrier = plan.dial()?;
    // The session id is a secret, and only the server that issued it may get it.
    let identity = engine::identity(&carrier.peer);
    if let Some(store) = &store {
        store.meet(&identity);
    }
    let saved =
        store.as_ref().filter(|_| plan.mode.takes_leases()).and_then(|store| store.take_saved(&identity));
    let (carrier, recovered, stay) = recover(&plan, carrier)?;
    let saved = saved.filter(|saved| !stay.contains(&saved.session));
    let (session, attached, saved) = attach(&plan, carrier, saved)?;
    let is_ahead = plan.mode.allows_optimism();
    let journal = plan.journal.as_ref().filter(|_| is_ahead);
    let journal = journal.and_then(|journal| Journal::begin(journal, session, &attached, plan.tell));
    let engine = Arc::new(Engine::new(&plan, session, &attached, store, journal));
    if let Some(saved) = saved {
        engine.import_cache(saved);
    }
    Ok(Connected { plan, engine, attached, recovered })
}

/// Replays the journals that earlier mounts of the plan's source saved.
///
/// # Errors
/// The server cannot be reached. The outcome of each journal is in the result.
///
/// # Cost
/// The carrier's dial; for each journal another dial, 3 round trips, and the replay.
pub fn recover_journals(plan: &MountPlan) -> Result<Vec<JournalRecovery>, ConnectError> {
    let carrier = plan.dial()?;
    let all = plan.journal.as_ref().map(|journal| journal::recover_all(plan, journal, carrier));
    Ok(all.map(|all| all.journals).unwrap_or_default())
}

type AfterRecovery = (Carrier, Vec<JournalRecovery>, Vec<SessionId>);

/// Also returns an unused connection, and the sessions that must not be resumed.
fn recover(plan: &MountPlan, carrier: Carrier) -> Result<AfterRecovery, ConnectError> {
    let Some(journal) = &plan.journal else { return Ok((carrier, Vec::new(), Vec::new())) };
    let all = journal::recover_all(plan, journal, carrier);
    let carrier = all.carrier.map_or_else(|| plan.dial(), Ok)?;
    Ok((carrier, all.journals, all.stay))
}

/// Resumes the session of an earlier mount, or opens a new one if the server refuses.
fn attach(
    plan: &MountPlan,
    carrier: Carrier,
    saved: Option<SavedSession>,
) -> Result<(SessionId, Attached, Option<SavedSession>), ConnectError> {
    let carrier = match saved {
        Some(saved) => match handshake::shake_hands(carrier, saved.session, plan) {
            Ok(attached) => return Ok((saved.session, attached, Some(saved))),
            Err(ConnectError::Refused(_) | ConnectError::Attach { .. }) => plan.dial()?,
            Err(error) => return Err(error),
        },
        None => carrier,
    };
    let session = random::session_id().map_err(ConnectError::Random)?;
    Ok((session, handshake::shake_hands(carrier, session, plan)?, None))
}

impl Connected {
    /// Returns the server's description of the tree.
    pub fn attachment(&self) -> &Attachment {
        &self.attached.attachment
    }

    /// Returns the outcomes of the journals that earlier mounts saved.
    pub fn recovered(&self) -> &[JournalRecovery] {
        &self.recovered
    }

    /// Returns the server's identity.
    pub fn peer(&self) -> &PeerInfo {
        &self.attached.carrier.peer
    }

    /// Ends the session without a mount: no change was made.
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
    /// The kernel's refusal, with advice.
    pub fn mount(
        self,
        mountpoint: &Path,
        options: &MountOptions,
        posix_acl: bool,
    ) -> Result<Mounted, MountStartError> {
        let Connected { plan, engine, attached, .. } = self;
        // Once mounted, the status reports the connection.
        let plan = MountPlan { tell: |_| {}, ..plan };
        let device = wirefs_fuse::mount(mountpoint, options)?;
        if let Some(entry) = TableEntry::at(mountpoint) {
            if let Ok(place) = MountPlace::new(mountpoint, &entry) {
                engine.mounted_at(place);
            }
            engine.note(&MountNote::Mount(entry));
        }
        let dial = Arc::clone(&plan.dial);
        let session_options = SessionOptions {
            threads: plan.threads.max(1),
            posix_acl,
            // Only where the kernel may cache listings, and the server recalls them.
            no_opendir: plan.mode.kernel_caches_listings() && attached.attachment.leases.is_some(),
            // After a rename, the target of a link may lead out that did not before.
            keeps_links: !plan.confines_links,
            // An in-process server may take longer than the wake-up of another thread, unless it announces that.
            single_reader: attached
                .carrier
                .sink
                .in_process()
                .is_none_or(|server| server.announces_blocking()),
            ..SessionOptions::default()
        };
        let front = Arc::clone(&engine);
        let started = start_threads(&engine, attached, plan)
            .map_err(MountStartError::Thread)
            .and_then(|()| Ok(Session::start(device, front, session_options)?))
            .and_then(|session| {
                invalidation::start(&engine, session.notifier())?;
                Ok(session)
            });
        let session = match started {
            Ok(session) => session,
            Err(error) => {
                // INVARIANT: no caller may wait on a mount without a server.
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
    engine.await_first_reply();
    Ok(())
}
