//! A slab, its shares, and the slabs that nobody needs at the moment.

use crate::sys::Memory;
use bytes::Bytes;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes in a slab: the size of a large page on the usual machines.
pub const SLAB_BYTES: usize = 2 * 1024 * 1024;
/// Slabs that the process keeps for the next who need one, at most.
pub const FREE_SLABS_MAX: usize = 8;

static FREE: Mutex<Vec<Memory>> = Mutex::new(Vec::new());
/// Bytes of all slabs of the process, the free ones among them.
static MAPPED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Bytes of all shares that live.
static SHARED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes of the process's slabs that are in no share: memory that is held, and of use to nobody at the moment.
///
/// # Cost
/// Two loads. Another thread may be between two steps, so it is off by some shares at most.
pub fn unused_bytes() -> usize {
    MAPPED_BYTES.load(Ordering::Relaxed).saturating_sub(SHARED_BYTES.load(Ordering::Relaxed))
}

fn free() -> MutexGuard<'static, Vec<Memory>> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stretch of memory: shared bytes, then filled ones that are not shared yet, then room.
///
/// INVARIANT: `shared <= filled <= SLAB_BYTES`, and all shares lie below `shared`.
#[derive(Debug)]
pub struct Slab {
    memory: Arc<Held>,
    shared: usize,
    filled: usize,
}

/// The memory of a slab, as long as the slab or a share of it lives.
#[derive(Debug)]
struct Held(Option<Memory>);

impl Held {
    // INVARIANT: the memory is taken out only when the value is dropped.
    fn shared(&self, range: Range<usize>) -> &[u8] {
        self.0.as_ref().map_or(&[], |memory| memory.shared(range))
    }

    /// Only for a slab's room, while the slab is borrowed mutably itself.
    fn exclusive(&self, range: Range<usize>) -> &mut [u8] {
        self.0.as_ref().map_or(&mut [], |memory| memory.exclusive(range))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut free = free();
        if free.len() < FREE_SLABS_MAX {
            free.extend(self.0.take());
        }
        drop(free);
        // What is left is given back to the system here, outside the lock.
        if self.0.take().is_some() {
            MAPPED_BYTES.fetch_sub(SLAB_BYTES, Ordering::Relaxed);
        }
    }
}

/// Shared bytes.
struct Share {
    memory: Arc<Held>,
    range: Range<usize>,
}

impl Share {
    fn new(memory: Arc<Held>, range: Range<usize>) -> Share {
        SHARED_BYTES.fetch_add(range.len(), Ordering::Relaxed);
        Share { memory, range }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        SHARED_BYTES.fetch_sub(self.range.len(), Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for Share {
    fn as_ref(&self) -> &[u8] {
        self.memory.shared(self.range.clone())
    }
}

impl Default for Slab {
    fn default() -> Slab {
        Slab::new()
    }
}

impl Slab {
    /// An empty slab.
    ///
    /// # Cost
    /// None if one is free, else a system call, and a page fault of some 100 µs at the first use.
    pub fn new() -> Slab {
        let kept = free().pop();
        let memory = kept.unwrap_or_else(|| {
            MAPPED_BYTES.fetch_add(SLAB_BYTES, Ordering::Relaxed);
            Memory::map(SLAB_BYTES)
        });
        Slab { memory: Arc::new(Held(Some(memory))), shared: 0, filled: 0 }
    }

    /// Bytes that are filled and not shared yet.
    pub fn pending(&self) -> &[u8] {
        self.memory.shared(self.shared..self.filled)
    }

    /// Bytes of room.
    pub fn room_bytes(&self) -> usize {
        SLAB_BYTES - self.filled
    }

    /// The room behind what is filled; what stands there means nothing.
    pub fn room(&mut self) -> &mut [u8] {
        // No share reaches beyond `shared`, and `pending` borrows the slab.
        self.memory.exclusive(self.filled..SLAB_BYTES)
    }

    /// Notes that the first `count` bytes of the room are filled; no more than there is room for.
    pub fn filled(&mut self, count: usize) {
        self.filled = self.filled.saturating_add(count).min(SLAB_BYTES);
    }

    /// Shares the first `count` of the pending bytes; all of them when there are fewer.
    ///
    /// # Cost
    /// One small allocation; no copy.
    pub fn share(&mut self, count: usize) -> Bytes {
        let end = self.shared.saturating_add(count).min(self.filled);
        let range = self.shared..end;
        self.shared = end;
        Bytes::from_owner(Share::new(Arc::clone(&self.memory), range))
    }

    /// Passes over the first `count` of the pending bytes.
    pub fn skip(&mut self, count: usize) {
        self.shared = self.shared.saturating_add(count).min(self.filled);
    }

    /// Begins anew at the front if nothing is pending and nobody holds a share. Whether it did.
    pub fn rewind(&mut self) -> bool {
        let is_alone = self.shared == self.filled && Arc::get_mut(&mut self.memory).is_some();
        if is_alone {
            (self.shared, self.filled) = (0, 0);
        }
        is_alone
    }
}

#[cfg(test)]
mod tests;
