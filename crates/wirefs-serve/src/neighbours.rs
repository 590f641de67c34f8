//! Other servers of the same directory on this machine: over ssh each connection has a server of its own.
//!
//! They find each other by a socket in the kernel's abstract name space, which the directory's device and inode name. It
//! belongs to one process at a time and is free when that ends, however it ends; it is no file, so it asks for no place that
//! all users could write to.
//!
//! ```text
//!   first: has the name, may have somebody who is alone          second: connects, and lets nobody attach
//!       ◄── connects: it wants to begin ────────────────────────────
//!       ◄── word[8]: the client of this session waits here ──────────  (if it is one of ours, come by another way, it ends here)
//!       ─── 'g': nobody is alone here any more ─────────────────────►   lets them attach
//!       ◄── word[8] 0, end: it has ended, and nobody believes anything of it
//!       ◄── end: it has ended; its clients may believe their leases for a while
//!   end ───────────────────────────────────────────────────────────►   takes the name, or connects to who was faster
//! ```

mod first;
mod second;

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
use wirefs_op::message::version::SessionId;
use wirefs_server::{Input, Neighbours};

/// How often it is tried to get the name or to reach who has it, before it counts as unknown who there is.
const TRIES_MAX: u32 = 20;
/// How long to wait before the next try.
const TRY_AGAIN: Duration = Duration::from_millis(25);
/// Sessions of which a first server hears that they wait elsewhere, at most.
const WAITING_MAX: usize = 256;

/// What another thread has for the one that speaks with neighbours.
#[derive(Debug, Default)]
struct Mail {
    /// Sessions whose clients wait here.
    waiting: Vec<u64>,
    /// Nobody is alone here any more.
    gives_way: bool,
    /// The server ends; whether nobody may believe anything of it.
    ending: Option<bool>,
}

/// The way to the thread that speaks with neighbours.
#[derive(Debug)]
pub(super) struct Neighbourhood {
    mail: Mutex<Mail>,
    wake: Option<(UnixStream, UnixStream)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How this server stands to the others.
enum Role {
    First(first::First),
    Second(second::Second),
}

impl Neighbourhood {
    /// Nobody to speak with.
    pub(super) fn new() -> Neighbourhood {
        let wake = UnixStream::pair().and_then(|(near, far)| {
            near.set_nonblocking(true)?;
            far.set_nonblocking(true)?;
            Ok((near, far))
        });
        Neighbourhood { mail: Mutex::default(), wake: wake.ok(), thread: Mutex::new(None) }
    }

    /// Clients of these sessions wait for who was here first.
    pub(super) fn waits(&self, sessions: &[SessionId]) {
        self.post(|mail| {
            let room = WAITING_MAX.saturating_sub(mail.waiting.len());
            mail.waiting.extend(sessions.iter().map(word_of).take(room));
        });
    }

    /// Nobody is alone here any more.
    pub(super) fn gives_way(&self) {
        self.post(|mail| mail.gives_way = true);
    }

    /// Ends it. `is_settled`: nobody may believe anything of this server any more.
    pub(super) fn end(&self, is_settled: bool) {
        self.post(|mail| mail.ending = Some(is_settled));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // One that has panicked has said so itself.
            let _ended = thread.join();
        }
    }

    fn post(&self, write: impl FnOnce(&mut Mail)) {
        write(&mut self.mail.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some((near, _)) = &self.wake {
            // A full socket wakes as well.
            let _woken = (&mut &*near).write(&[1]);
        }
    }

    fn collect(&self) -> Mail {
        if let Some((_, far)) = &self.wake {
            let _drained = (&mut &*far).read(&mut [0; 64]);
        }
        let mut mail = self.mail.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = mail.ending;
        let mail = std::mem::take(&mut *mail);
        Mail { ending, ..mail }
    }

    /// Waits until one of these can be read, there is mail, or the time has come. Says which can be read.
    fn wait(&self, sources: &[BorrowedFd<'_>], until: Option<Instant>) -> Vec<bool> {
        let far = self.wake.iter().map(|(_, far)| PollFd::new(far, PollFlags::IN));
        let sources = sources.iter().map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = far.chain(sources).collect();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // Interrupted, it looks at all.
        let _count = poll(&mut fds, left.as_ref());
        fds.iter().skip(usize::from(self.wake.is_some())).map(|fd| !fd.revents().is_empty()).collect()
    }
}

/// Looks who is there, before anybody may attach, and speaks with them from then on.
pub(super) fn start(shared: &Arc<Shared>, place: ServedPlace) {
    if let Err(error) = try_start(shared, place) {
        log::line(format_args!("cannot tell whether other servers serve this directory: {error}"));
        shared.handle(Input::Neighbours(Neighbours::There));
    }
}

fn try_start(shared: &Arc<Shared>, place: ServedPlace) -> io::Result<()> {
    if shared.neighbourhood.wake.is_none() {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let role = find(place)?;
    // What the thread hears comes after that.
    shared.handle(Input::Neighbours(match &role {
        Role::First(_) => Neighbours::None,
        Role::Second(_) => Neighbours::Unknown,
    }));
    let there = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("wirefs-neighbours".into());
    let thread = thread.spawn(move || run(&there, place, role))?;
    *shared.neighbourhood.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    Ok(())
}

fn run(shared: &Arc<Shared>, place: ServedPlace, mut role: Role) {
    loop {
        let before = match role {
            Role::First(first) => return first.run(shared),
            Role::Second(second) => match second.run(shared) {
                Some(second) => second,
                None => return,
            },
        };
        // Who was first is gone.
        role = match find(place) {
            Ok(Role::First(first)) => Role::First(first.after_another(shared)),
            Ok(Role::Second(second)) => Role::Second(second.after(before)),
            Err(_) => return second::let_on(shared),
        };
    }
}

/// Takes the name, or connects to who has it.
fn find(place: ServedPlace) -> io::Result<Role> {
    let name = format!("wirefs/serves/{:x}/{:x}", place.device, place.inode);
    let address = SocketAddr::from_abstract_name(name)?;
    let mut error = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES_MAX {
        match UnixListener::bind_addr(&address) {
            Ok(listener) => return first::First::new(listener).map(Role::First),
            Err(other) if other.kind() != io::ErrorKind::AddrInUse => return Err(other),
            Err(_) => {}
        }
        match UnixStream::connect_addr(&address) {
            Ok(stream) => return second::Second::new(stream).map(Role::Second),
            // It may be gone meanwhile.
            Err(refused) => error = refused,
        }
        std::thread::sleep(TRY_AGAIN);
    }
    Err(error)
}

/// A number by which a session is known again, and from which its id is not found; never 0. Ids are secrets.
fn word_of(session: &SessionId) -> u64 {
    let mut hasher = DefaultHasher::new();
    session.hash(&mut hasher);
    hasher.finish().max(1)
}
