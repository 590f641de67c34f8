//! Other servers of the same directory on the same machine: over ssh each connection has a server of its own.
//!
//! They meet at a socket in the kernel's abstract namespace, named by the directory's device and inode. One process
//! at a time can bind that name, and its end frees the name. No file is needed, and so no directory that all users can
//! write to.
//!
//! ```text
//!   primary: has bound the name                          secondary: connects, and admits no clients yet
//!       ◄── connection: wants to admit clients ────────────────────
//!       ◄── hash[8]: the client of this session and key waits here ─  (a session of the primary ends there)
//!       ─── 'g': there is no exclusive session ────────────────────►   admits clients
//!       ◄── hash[8] 0, end: it has ended, and its leases too
//!       ◄── end: it has ended; its clients may use their leases until they expire
//!   end ──────────────────────────────────────────────────────────►   binds the name, or connects to the new primary
//! ```

mod primary;
mod secondary;

use super::core::SessionOwner;
use super::log;
use super::options::ServedPlace;
use super::shared::Shared;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wirefs_server::{Colocation, ServerInput};

/// The number of attempts to bind the name or to connect to its owner. After that the other servers are unknown.
const TRIES_MAX: u32 = 20;
/// The pause between two attempts.
const TRY_AGAIN: Duration = Duration::from_millis(25);
/// The maximum number of sessions that a secondary reports as waiting.
const WAITING_MAX: usize = 256;

/// Requests of other threads to the thread that talks to co-located servers.
#[derive(Debug, Default)]
struct Requests {
    /// The hashes of sessions whose clients wait at this server.
    waiting: Vec<u64>,
    /// This server has no exclusive session.
    permits_secondaries: bool,
    /// The server ends; whether all its leases have ended.
    ending: Option<bool>,
}

/// The handle of the thread that talks to co-located servers.
#[derive(Debug)]
pub(super) struct ColocatedServers {
    requests: Mutex<Requests>,
    wake: Option<(UnixStream, UnixStream)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// This server's role among the co-located ones.
enum Role {
    Primary(primary::Primary),
    Secondary(secondary::Secondary),
}

impl ColocatedServers {
    /// Creates a handle without a thread.
    pub(super) fn new() -> ColocatedServers {
        let wake = UnixStream::pair().and_then(|(near, far)| {
            near.set_nonblocking(true)?;
            far.set_nonblocking(true)?;
            Ok((near, far))
        });
        ColocatedServers { requests: Mutex::default(), wake: wake.ok(), thread: Mutex::new(None) }
    }

    /// Reports sessions whose clients wait for the primary.
    pub(super) fn report_waiting(&self, sessions: &[SessionOwner]) {
        self.request(|requests| {
            let room = WAITING_MAX.saturating_sub(requests.waiting.len());
            requests.waiting.extend(sessions.iter().map(session_hash).take(room));
        });
    }

    /// Lets secondaries admit clients.
    pub(super) fn permit_secondaries(&self) {
        self.request(|requests| requests.permits_secondaries = true);
    }

    /// Ends the thread. `is_settled`: all leases of this server have ended.
    pub(super) fn end(&self, is_settled: bool) {
        self.request(|requests| requests.ending = Some(is_settled));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic has been printed already.
            let _ended = thread.join();
        }
    }

    fn request(&self, write: impl FnOnce(&mut Requests)) {
        write(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some((near, _)) = &self.wake {
            // A full socket wakes the thread as well.
            let _woken = (&mut &*near).write(&[1]);
        }
    }

    fn take_requests(&self) -> Requests {
        if let Some((_, far)) = &self.wake {
            let _drained = (&mut &*far).read(&mut [0; 64]);
        }
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = requests.ending;
        let requests = std::mem::take(&mut *requests);
        Requests { ending, ..requests }
    }

    /// Waits until a source is readable, a request is pending, or the time has come. Returns which sources are
    /// readable.
    fn wait(&self, sources: &[BorrowedFd<'_>], until: Option<Instant>) -> Vec<bool> {
        let far = self.wake.iter().map(|(_, far)| PollFd::new(far, PollFlags::IN));
        let sources = sources.iter().map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = far.chain(sources).collect();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // After an interrupt the caller checks everything.
        let _count = poll(&mut fds, left.as_ref());
        fds.iter().skip(usize::from(self.wake.is_some())).map(|fd| !fd.revents().is_empty()).collect()
    }
}

/// Finds the co-located servers before any client may attach, and starts the thread that talks to them.
pub(super) fn start(shared: &Arc<Shared>, place: ServedPlace) {
    if let Err(error) = try_start(shared, place) {
        log::line(format_args!("cannot tell whether other servers serve this directory: {error}"));
        shared.handle(ServerInput::Colocation(Colocation::Present));
    }
}

fn try_start(shared: &Arc<Shared>, place: ServedPlace) -> io::Result<()> {
    if shared.colocated.wake.is_none() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let role = find(place)?;
    // Before the inputs of the thread.
    shared.handle(ServerInput::Colocation(match &role {
        Role::Primary(_) => Colocation::None,
        Role::Secondary(_) => Colocation::Unknown,
    }));
    let there = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("wirefs-colocated".into());
    let thread = thread.spawn(move || run(&there, place, role))?;
    *shared.colocated.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    Ok(())
}

fn run(shared: &Arc<Shared>, place: ServedPlace, mut role: Role) {
    loop {
        let before = match role {
            Role::Primary(primary) => return primary.run(shared),
            Role::Secondary(secondary) => match secondary.run(shared) {
                Some(secondary) => secondary,
                None => return,
            },
        };
        // The primary has ended.
        role = match find(place) {
            Ok(Role::Primary(primary)) => Role::Primary(primary.after_another(shared)),
            Ok(Role::Secondary(secondary)) => Role::Secondary(secondary.after(before)),
            Err(_) => return secondary::admit_clients(shared),
        };
    }
}

/// Binds the name, or connects to its owner.
fn find(place: ServedPlace) -> io::Result<Role> {
    let name = format!("wirefs/serves/{:x}/{:x}", place.device, place.inode);
    let address = SocketAddr::from_abstract_name(name)?;
    let mut error = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES_MAX {
        match UnixListener::bind_addr(&address) {
            Ok(listener) => return primary::Primary::new(listener).map(Role::Primary),
            Err(other) if other.kind() != io::ErrorKind::AddrInUse => return Err(other),
            Err(_) => {}
        }
        match UnixStream::connect_addr(&address) {
            Ok(stream) => return secondary::Secondary::new(stream).map(Role::Secondary),
            // The owner may have ended meanwhile.
            Err(refused) => error = refused,
        }
        std::thread::sleep(TRY_AGAIN);
    }
    Err(error)
}

/// Returns a number that identifies a session of one key without revealing its id, which is a secret; never 0. A client
/// with another key than the session's owner thus never ends it.
fn session_hash((session, owner): &SessionOwner) -> u64 {
    let mut hasher = DefaultHasher::new();
    session.hash(&mut hasher);
    if let Some(key) = owner {
        key.hash(&mut hasher);
    }
    hasher.finish().max(1)
}
