//! Memory mappings.
#![expect(unsafe_code, reason = "memory that is mapped, and lent in parts that do not overlap")]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ops::Range;
use std::ptr::{self, NonNull};

/// A private mapping of zeroes at first, aligned to its size where the kernel can do that.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the value alone; no thread is special to it.
unsafe impl Send for Memory {}
// SAFETY: as above; who may read and write which part is for the callers of `shared` and `exclusive`.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `bytes` bytes, a power of two, and asks for large pages. Ends the process when there is no memory, as any
    /// allocation does.
    pub(crate) fn map(bytes: usize) -> Memory {
        // Twice as much, so that an aligned part is in it; the rest goes back at once.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping where the kernel finds room replaces nothing.
        let mapped =
            unsafe { mmap_anonymous(ptr::null_mut(), 2 * bytes, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let Some(mapped) = mapped.ok().and_then(|mapped| NonNull::new(mapped.cast::<u8>())) else {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; 4096]>());
        };
        let before = mapped.align_offset(bytes).min(bytes);
        // SAFETY: `before <= bytes`, so all three parts lie within the mapping.
        let (start, end) = unsafe { (mapped.add(before), mapped.add(before + bytes)) };
        let after = bytes - before;
        for (part, bytes) in [(mapped, before), (end, after)] {
            if bytes > 0 {
                // SAFETY: this part of the new mapping is not used by anybody.
                let _kept = unsafe { munmap(part.as_ptr().cast(), bytes) };
            }
        }
        // SAFETY: advice about the new mapping changes nothing that can be seen. Without large pages it fails.
        let _small = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        Memory { start, bytes }
    }

    fn within(&self, range: Range<usize>) -> (usize, usize) {
        let end = range.end.min(self.bytes);
        (range.start.min(end), end)
    }

    /// A part that no `exclusive` slice overlaps, by the invariant of `Slab`.
    pub(crate) fn shared(&self, range: Range<usize>) -> &[u8] {
        let (start, end) = self.within(range);
        // SAFETY: within the mapping, which lives as long as `self` and is initialised, with zeroes at first. Nobody
        // writes there: a slab lends its room, which lies behind all that is filled, only while it is borrowed mutably.
        unsafe { std::slice::from_raw_parts(self.start.add(start).as_ptr(), end - start) }
    }

    /// A part that nobody else reads or writes, by the invariant of `Slab`.
    #[expect(clippy::mut_from_ref, reason = "a slab lends its room only while it is borrowed mutably itself")]
    pub(crate) fn exclusive(&self, range: Range<usize>) -> &mut [u8] {
        let (start, end) = self.within(range);
        // SAFETY: as for `shared`; the room of a slab overlaps no share and no pending byte, and a slab has one owner.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start).as_ptr(), end - start) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no slice of it outlives the value.
        let _gone = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
