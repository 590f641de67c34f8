//! Slabs, their shares, and the list of free slabs.

use crate::sys::Memory;
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes in a slab: the size of a huge page on common machines.
pub const SLAB_BYTES: usize = 2 * 1024 * 1024;
/// Free slabs that the process keeps for reuse.
pub const FREE_SLABS_MAX: usize = 8;

static FREE: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// Unmaps all free slabs.
pub fn release_free() {
    // The lock is not held while they are unmapped.
    let released = std::mem::take(&mut *free());
    drop(released);
}

fn free() -> MutexGuard<'static, Vec<Memory>> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A memory area: shared bytes, then filled bytes that are not shared yet, then free space.
///
/// INVARIANT: `shared <= filled <= SLAB_BYTES`, and all shares are below `shared`.
#[derive(Debug)]
pub struct Slab {
    memory: Arc<SlabMemory>,
    shared: usize,
    filled: usize,
}

/// The memory of a slab; lives as long as the slab or a share of it.
#[derive(Debug)]
struct SlabMemory(Option<Memory>);

impl SlabMemory {
    // INVARIANT: the memory is taken only on drop.
    fn shared(&self, range: Range<usize>) -> &[u8] {
        self.0.as_ref().map_or(&[], |memory| memory.shared(range))
    }

    /// Only for a slab's free space, while the slab is borrowed mutably.
    fn exclusive(&self, range: Range<usize>) -> &mut [u8] {
        self.0.as_ref().map_or(&mut [], |memory| memory.exclusive(range))
    }
}

impl Drop for SlabMemory {
    fn drop(&mut self) {
        let mut free = free();
        if free.len() < FREE_SLABS_MAX {
            free.extend(self.0.take());
        }
        drop(free);
        // Excess memory is unmapped here, outside the lock.
        self.0.take();
    }
}

/// Shared bytes.
struct Share {
    memory: Arc<SlabMemory>,
    range: Range<usize>,
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
    /// Returns an empty slab.
    ///
    /// # Cost
    /// None if a free slab exists, else a system call, and a page fault of about 100 µs at the first use.
    pub fn new() -> Slab {
        let reused = free().pop();
        let memory = reused.unwrap_or_else(|| Memory::map(SLAB_BYTES));
        Slab { memory: Arc::new(SlabMemory(Some(memory))), shared: 0, filled: 0 }
    }

    /// Returns the bytes that are filled and not shared yet.
    pub fn pending(&self) -> &[u8] {
        self.memory.shared(self.shared..self.filled)
    }

    /// Returns the bytes of free space.
    pub fn room_bytes(&self) -> usize {
        SLAB_BYTES - self.filled
    }

    /// Returns the free space after the filled bytes; its contents are arbitrary.
    pub fn room(&mut self) -> &mut [u8] {
        // No share reaches beyond `shared`, and `pending` borrows the slab.
        self.memory.exclusive(self.filled..SLAB_BYTES)
    }

    /// Marks the first `count` bytes of the free space as filled; at most all of it.
    pub fn filled(&mut self, count: usize) {
        self.filled = self.filled.saturating_add(count).min(SLAB_BYTES);
    }

    /// Shares the first `count` pending bytes, or all if there are fewer.
    ///
    /// # Cost
    /// One small allocation; no copy.
    pub fn share(&mut self, count: usize) -> Bytes {
        let end = self.shared.saturating_add(count).min(self.filled);
        let range = self.shared..end;
        self.shared = end;
        Bytes::from_owner(Share { memory: Arc::clone(&self.memory), range })
    }

    /// Skips the first `count` pending bytes.
    pub fn skip(&mut self, count: usize) {
        self.shared = self.shared.saturating_add(count).min(self.filled);
    }

    /// Makes the whole slab free space, if nothing is pending and no share exists. Returns whether it did.
    pub fn rewind(&mut self) -> bool {
        let is_unshared = self.shared == self.filled && Arc::get_mut(&mut self.memory).is_some();
        if is_unshared {
            (self.shared, self.filled) = (0, 0);
        }
        is_unshared
    }
}

#[cfg(test)]
mod tests;
