//! Mapping a file into memory, for one test.
#![allow(unsafe_code, reason = "mmap")]

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use std::fs::File;

/// Maps the first `length` bytes of `file` shared and writable, applies `change` and syncs.
pub(crate) fn change_mapped(file: &File, length: usize, change: impl FnOnce(&mut [u8])) {
    // SAFETY: a new mapping at an address of the kernel's choice; it is used only here and unmapped below.
    let address = unsafe {
        mmap(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)
    }
    .unwrap();
    // SAFETY: `length` bytes are mapped readable and writable, and the file is at least that long.
    change(unsafe { std::slice::from_raw_parts_mut(address.cast(), length) });
    // SAFETY: the whole mapping from above; the slice is no longer in use.
    unsafe { msync(address, length, MsyncFlags::SYNC) }.unwrap();
    // SAFETY: as above, and no later use.
    unsafe { munmap(address, length) }.unwrap();
}
