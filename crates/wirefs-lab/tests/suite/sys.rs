//! Memory-mapped files, and `close` with its result.
#![allow(unsafe_code, reason = "mmap, close")]

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd as _;

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

/// Maps the first `length` bytes of `file`, shared and writable, calls `change` with them, and syncs.
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

/// Closes `file` and returns the error of `close`, which drop would ignore.
pub(crate) fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor is open and has no other owner.
    unsafe { rustix::io::try_close(file.into_raw_fd()) }.map_err(io::Error::from)
}
