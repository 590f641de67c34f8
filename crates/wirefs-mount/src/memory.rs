//! The resident memory of the process, of which a mount's cache takes the part that nothing else takes.
//!
//! `--cache` bounds the anonymous resident memory. The client core counts names, listings and contents as it changes
//! them. Other memory, such as tables, receive buffers and freed memory that the allocator keeps, is measured.
//! Mounts of one process share it equally.

use super::sys;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Freed memory is returned to the kernel once the process has more than this part of the allowed memory.
const TRIM_PART: (usize, usize) = (7, 8);
/// Memory is returned again once the process has grown by one in so many parts of the allowed memory.
const GROWTH_PARTS: usize = 32;

/// Bytes counted by the cores of all mounts of the process.
static COUNTED: AtomicUsize = AtomicUsize::new(0);
/// Bytes allowed to all mounts of the process.
static ALLOWED: AtomicUsize = AtomicUsize::new(0);
static MOUNTS: AtomicUsize = AtomicUsize::new(0);
/// The resident bytes after the last trim.
static TRIMMED: AtomicUsize = AtomicUsize::new(0);

/// The contribution of one mount to the figures of the process.
pub(super) struct MountMemory {
    counted: usize,
    allowed: usize,
}

impl MountMemory {
    pub(super) fn new(allowed: usize) -> MountMemory {
        ALLOWED.fetch_add(allowed, Ordering::Relaxed);
        MOUNTS.fetch_add(1, Ordering::Relaxed);
        MountMemory { counted: 0, allowed }
    }

    /// Notes the bytes that this mount's core counts. Returns this mount's part of the memory that no core counts;
    /// 0 without a readable `/proc`.
    ///
    /// # Cost
    /// One small file of `/proc`, some ten microseconds.
    pub(super) fn uncounted(&mut self, counted: usize) -> usize {
        COUNTED.fetch_add(counted, Ordering::Relaxed);
        COUNTED.fetch_sub(std::mem::replace(&mut self.counted, counted), Ordering::Relaxed);
        let beside = resident().unwrap_or(0).saturating_sub(COUNTED.load(Ordering::Relaxed));
        beside / MOUNTS.load(Ordering::Relaxed).max(1)
    }
}

impl Drop for MountMemory {
    fn drop(&mut self) {
        COUNTED.fetch_sub(self.counted, Ordering::Relaxed);
        ALLOWED.fetch_sub(self.allowed, Ordering::Relaxed);
        MOUNTS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the anonymous resident bytes of the process.
fn resident() -> Option<usize> {
    anonymous_bytes(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Returns the anonymous resident bytes that a file `/proc/PID/status` states.
fn anonymous_bytes(status: &str) -> Option<usize> {
    let stated = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(stated.trim().strip_suffix(" kB")?.parse::<usize>().ok()? * 1024)
}

/// Returns freed memory to the kernel if the process is near its limit and has grown since the last time, or if it is
/// beyond its limit.
///
/// # Cost
/// One small file of `/proc`. A trim takes some milliseconds, during which allocations in other threads may wait.
pub(super) fn trim() {
    let (Some(resident), allowed) = (resident(), ALLOWED.load(Ordering::Relaxed)) else { return };
    // Memory that the trim did not return counts as trimmed; less memory since then lowers the mark.
    let trimmed = TRIMMED.fetch_min(resident, Ordering::Relaxed).min(resident);
    let is_near =
        resident > allowed / TRIM_PART.1 * TRIM_PART.0 && resident - trimmed >= allowed / GROWTH_PARTS;
    if is_near || (resident > allowed && resident != trimmed) {
        wirefs_slab::release_free();
        sys::trim_allocator();
        TRIMMED.store(self::resident().unwrap_or(resident), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
