//! The queue of the disk cache's thread.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wirefs_cache::CachePiece;
use wirefs_store::disk_cache::CachedPiece;

/// The maximum size of contents that wait to be written; further ones are not cached.
const STORE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A read or a write.
pub(super) enum Job {
    Load(CachePiece, CachedPiece),
    Store(CachePiece, Bytes),
}

#[derive(Default)]
struct Waiter {
    /// Bounded by the waiting calls and their read-ahead.
    loads: VecDeque<(CachePiece, CachedPiece)>,
    stores: VecDeque<(CachePiece, Bytes)>,
    store_bytes: usize,
    is_stopped: bool,
}

/// The queue.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiter>,
    filled: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiter> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push_load(&self, piece: CachePiece, stored: CachedPiece) {
        self.lock().loads.push_back((piece, stored));
        self.filled.notify_one();
    }

    pub(super) fn push_store(&self, piece: CachePiece, data: Bytes) {
        let mut waiting = self.lock();
        if waiting.store_bytes + data.len() <= STORE_BYTES_MAX {
            waiting.store_bytes += data.len();
            waiting.stores.push_back((piece, data));
            self.filled.notify_one();
        }
    }

    /// Waits for the next job; `None` when stopped and empty.
    pub(super) fn next(&self) -> Option<Job> {
        let mut waiting = self.lock();
        loop {
            if let Some((piece, stored)) = waiting.loads.pop_front() {
                return Some(Job::Load(piece, stored));
            }
            if let Some((piece, data)) = waiting.stores.pop_front() {
                waiting.store_bytes -= data.len();
                return Some(Job::Store(piece, data));
            }
            if waiting.is_stopped {
                return None;
            }
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Stops the queue after its pending jobs.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.filled.notify_all();
    }
}
