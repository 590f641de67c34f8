//! A replicated store: one tree on several nodes, each with all blocks.
//!
//! ```text
//!   tree ── begin, register, agree ──> ReplicatedStore ──> EchoStore (own packets)
//!    ↑ prepare, switch_to                    │ replica: state machine, control channel
//!    └── checker <───────────────────────── │ ──── control loop: the thread that reads control packets and ticks
//!                                       EchoRelay ── pings with the other's source address ──> host ──> other node
//! ```
//!
//! Each new block is sent to each other node: an echo request carries that node's address as its source, so
//! the host's reply goes there. The receiving node stores the block in packets of its own.

mod background;
mod checker;
mod control_loop;
mod local_replica;
mod open;
mod replicated_store;
mod status;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use ring::hkdf::{HKDF_SHA256, Salt};
use rustix::fd::OwnedFd;
use wirefs_echo::EchoKey;
use wirefs_raw::EchoRelay;

use crate::store::EchoStore;
use background::BackgroundTasks;
use local_replica::LocalReplica;

pub use open::JoinError;
pub use status::{NodeReport, NodesStatus};

/// Configuration of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The number of the node, unique among all nodes.
    pub node: u16,
    /// Addresses of other nodes. A node that joins later names all current ones.
    pub peers: Vec<Ipv4Addr>,
    /// The shared key of all nodes.
    pub key: EchoKey,
}

/// The shortest secret for a key in bytes.
pub const KEY_BYTES_MIN: usize = 16;

/// Derives the key from the contents of a key file; `None` if they are too short.
pub fn key_of(secret: &[u8]) -> Option<EchoKey> {
    if secret.len() < KEY_BYTES_MIN {
        return None;
    }
    let extracted = Salt::new(HKDF_SHA256, b"wirefs-pingfs nodes").extract(secret);
    let mut key = [0; EchoKey::BYTES];
    extracted.expand(&[b"key"], HKDF_SHA256).ok()?.fill(&mut key).ok()?;
    Some(EchoKey(key))
}

/// A block store that shares its tree with other nodes. Dropping it ends this node.
pub struct ReplicatedStore {
    shared: Arc<NodeShared>,
    threads: Vec<JoinHandle<()>>,
}

/// State shared by callers, the control loop and the checker. Lock order: replica, tasks, echo store.
pub(crate) struct NodeShared {
    echo: Arc<EchoStore>,
    relay: EchoRelay,
    begun: Instant,
    replica: Mutex<LocalReplica>,
    /// Signals that a transaction began or ended, or the node left.
    changed: Condvar,
    tasks: Mutex<BackgroundTasks>,
    /// Signals a task for the checker.
    task_added: Condvar,
    is_over: AtomicBool,
    /// Readable when the control loop should run at once.
    wakeup: OwnedFd,
}

impl NodeShared {
    fn replica(&self) -> MutexGuard<'_, LocalReplica> {
        self.replica.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the replica in a call, and announces a wait.
    fn replica_for_call(&self) -> MutexGuard<'_, LocalReplica> {
        self.echo.shared().lock_mutex_for_call(&self.replica)
    }

    fn tasks(&self) -> MutexGuard<'_, BackgroundTasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Wakes the control loop.
    fn wake(&self) {
        // A write fails only if the counter is full, and then the descriptor is readable anyway.
        let _rung = rustix::io::write(&self.wakeup, &1u64.to_ne_bytes());
    }

    fn now(&self) -> wirefs_echo::Time {
        wirefs_echo::Time(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Drop for ReplicatedStore {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.wake();
        self.shared.task_added.notify_all();
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked needs no cleanup either.
            let _ended = thread.join();
        }
    }
}

impl std::fmt::Debug for ReplicatedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplicatedStore").field("echo", &self.shared.echo).finish_non_exhaustive()
    }
}
