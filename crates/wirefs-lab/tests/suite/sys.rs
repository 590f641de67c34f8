//! Memory mapped from a file.
#![allow(unsafe_code, reason = "mmap")]

use std::fs::File;

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

/// Maps the first `length` bytes of `file`, shared and writable, lets `change` work there, and syncs.
pub(crate) fn with_mapped<T>(file: &File, length: usize, change: impl FnOnce(&mut [u8]) -> T) -> T {
    // SAFETY: a fresh mapping at an address of the kernel's choice; it is used here alone and unmapped below.
    let address = unsafe {
        mmap(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)
    }
    .unwrap();
    // SAFETY: `length` bytes are mapped readable and writable, and the file is at least that long.
    let made = change(unsafe { std::slice::from_raw_parts_mut(address.cast(), length) });
    // SAFETY: the mapping from above, whole; the slice is gone.
    unsafe { msync(address, length, MsyncFlags::SYNC) }.unwrap();
    // SAFETY: as above, and nothing uses it afterwards.
    unsafe { munmap(address, length) }.unwrap();
    made
}
