//! Several nodes with one tree: the machine of `wirefs-echo` in running order.
//!
//! ```text
//!   tree ── begin, register, agree ──> CommonStore ──> EchoStore (own packets)
//!    ↑ prepare, go_over                    │ desk: machine, letters
//!    └── checker <──────────────────────── │ ──── driver: the thread that reads letters and keeps time
//!                                       Courier ── pings in the other's name ──> host ──> other node
//! ```
//!
//! Each new block goes to each other node in a letter: an echo request with that node's address as its source, so that the host's
//! reply goes there. The node takes it into packets of its own.

mod checker;
mod desk;
mod driver;
mod errands;
mod open;
mod status;
mod store;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use ring::hkdf::{HKDF_SHA256, Salt};
use rustix::fd::OwnedFd;
use wirefs_echo::Key;
use wirefs_raw::Courier;

use crate::store::EchoStore;
use desk::Desk;
use errands::Errands;

pub use open::JoinError;
pub use status::{NodeReport, NodesStatus};

/// Which node it is, and whom it knows.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Its number, which no other node has.
    pub node: u16,
    /// Addresses of others. One that comes later names all who are there.
    pub peers: Vec<Ipv4Addr>,
    /// What all of them share.
    pub key: Key,
}

/// The shortest secret that a key is made of, in bytes.
pub const KEY_BYTES_MIN: usize = 16;

/// The key of what is in a file; none where that is too short to be a secret.
pub fn key_of(secret: &[u8]) -> Option<Key> {
    if secret.len() < KEY_BYTES_MIN {
        return None;
    }
    let extracted = Salt::new(HKDF_SHA256, b"wirefs-pingfs nodes").extract(secret);
    let mut key = [0; Key::BYTES];
    extracted.expand(&[b"key"], HKDF_SHA256).ok()?.fill(&mut key).ok()?;
    Some(Key(key))
}

/// A block store that has its tree together with those of other nodes. Dropping it is the end of this node.
pub struct CommonStore {
    commons: Arc<Commons>,
    threads: Vec<JoinHandle<()>>,
}

/// What callers, the driver and the checker share. Whoever holds the desk may take the errands, and then the echo store.
pub(crate) struct Commons {
    echo: Arc<EchoStore>,
    courier: Courier,
    begun: Instant,
    desk: Mutex<Desk>,
    /// A turn has begun or ended, or the node has left.
    changed: Condvar,
    errands: Mutex<Errands>,
    /// There is something for the checker to do.
    called: Condvar,
    is_over: AtomicBool,
    /// Readable when the driver should look again at once.
    bell: OwnedFd,
}

impl Commons {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same in a call: who waits for it says so before.
    fn desk_in_call(&self) -> MutexGuard<'_, Desk> {
        self.echo.shared().lock_in_call(&self.desk)
    }

    fn errands(&self) -> MutexGuard<'_, Errands> {
        self.errands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Has the driver look again at once.
    fn ring(&self) {
        // It can only fail when it has been rung very often and not heard: then it is readable anyway.
        let _rung = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn now(&self) -> wirefs_echo::Time {
        wirefs_echo::Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Drop for CommonStore {
    fn drop(&mut self) {
        self.commons.is_over.store(true, Ordering::Release);
        self.commons.ring();
        self.commons.called.notify_all();
        self.commons.changed.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has nothing more to do either.
            let _ended = thread.join();
        }
    }
}

impl std::fmt::Debug for CommonStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommonStore").field("echo", &self.commons.echo).finish_non_exhaustive()
    }
}
