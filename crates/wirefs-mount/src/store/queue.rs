//! What the store's thread has to do.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use wirefs_cache::CachePiece;
use wirefs_store::disk_cache::CachedPiece;

/// Bytes that wait to be written, at most: what comes beyond is not kept.
const KEEP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// One thing to do.
pub(super) enum Job {
    Load(CachePiece, CachedPiece),
    Keep(CachePiece, Bytes),
}

#[derive(Default)]
struct Waiting {
    /// No more than calls wait for, and what is read ahead for them.
    loads: VecDeque<(CachePiece, CachedPiece)>,
    keeps: VecDeque<(CachePiece, Bytes)>,
    keep_bytes: usize,
    is_stopped: bool,
}

/// The queue.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push_load(&self, piece: CachePiece, stored: CachedPiece) {
        self.lock().loads.push_back((piece, stored));
        self.filled.notify_one();
    }

    pub(super) fn push_keep(&self, piece: CachePiece, data: Bytes) {
        let mut waiting = self.lock();
        if waiting.keep_bytes + data.len() <= KEEP_BYTES_MAX {
            waiting.keep_bytes += data.len();
            waiting.keeps.push_back((piece, data));
            self.filled.notify_one();
        }
    }

    /// Waits for something to do; `None` when stopped and all is done.
    pub(super) fn next(&self) -> Option<Job> {
        let mut waiting = self.lock();
        loop {
            if let Some((piece, stored)) = waiting.loads.pop_front() {
                return Some(Job::Load(piece, stored));
            }
            if let Some((piece, data)) = waiting.keeps.pop_front() {
                waiting.keep_bytes -= data.len();
                return Some(Job::Keep(piece, data));
            }
            if waiting.is_stopped {
                return None;
            }
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing more comes.
    pub(super) fn stop(&self) {
        self.lock().is_stopped = true;
        self.filled.notify_all();
    }
}
