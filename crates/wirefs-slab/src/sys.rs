//! Memory mappings.
#![expect(unsafe_code, reason = "mapped memory, borrowed in parts that do not overlap")]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ops::Range;
use std::ptr::{self, NonNull};

/// A private anonymous mapping, aligned to its size where possible.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: only this value refers to the mapping, and any thread may use it.
unsafe impl Send for Memory {}
// SAFETY: as above; callers of `shared` and `exclusive` guarantee exclusive writes.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `bytes` bytes, a power of two, and requests huge pages. Aborts the process if there is no memory, as any
    /// allocation does.
    pub(crate) fn map(bytes: usize) -> Memory {
        // Twice the size, so that it contains an aligned part; the rest is unmapped at once.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address chosen by the kernel replaces nothing.
        let mapped =
            unsafe { mmap_anonymous(ptr::null_mut(), 2 * bytes, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let Some(mapped) = mapped.ok().and_then(|mapped| NonNull::new(mapped.cast::<u8>())) else {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; 4096]>());
        };
        let before = mapped.align_offset(bytes).min(bytes);
        // SAFETY: `before <= bytes`, so all three parts are within the mapping.
        let (start, end) = unsafe { (mapped.add(before), mapped.add(before + bytes)) };
        let after = bytes - before;
        for (part, bytes) in [(mapped, before), (end, after)] {
            if bytes > 0 {
                // SAFETY: this part of the new mapping is unused.
                let _kept = unsafe { munmap(part.as_ptr().cast(), bytes) };
            }
        }
        // SAFETY: advice does not change the mapping's contents. Without huge pages it fails, harmlessly.
        let _small = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        Memory { start, bytes }
    }

    fn within(&self, range: Range<usize>) -> (usize, usize) {
        let end = range.end.min(self.bytes);
        (range.start.min(end), end)
    }

    /// Returns a part that no `exclusive` slice overlaps, by the invariant of `Slab`.
    pub(crate) fn shared(&self, range: Range<usize>) -> &[u8] {
        let (start, end) = self.within(range);
        // SAFETY: within the mapping, which lives as long as `self` and is initialized with zeroes. It is not written
        // meanwhile: a slab lends its free space, which is after all filled bytes, only while it is borrowed mutably.
        unsafe { std::slice::from_raw_parts(self.start.add(start).as_ptr(), end - start) }
    }

    /// Returns a part that is not read or written otherwise, by the invariant of `Slab`.
    #[expect(clippy::mut_from_ref, reason = "a slab lends its room only while it is borrowed mutably itself")]
    pub(crate) fn exclusive(&self, range: Range<usize>) -> &mut [u8] {
        let (start, end) = self.within(range);
        // SAFETY: as for `shared`; the free space of a slab overlaps no share and no pending byte, and a slab has one
        // owner.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start).as_ptr(), end - start) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and no slice of it outlives the value.
        let _gone = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
