//! Memory mapped from a file; files closed by hand; the power of a disk cut.
#![allow(unsafe_code, reason = "mmap, close, ioctl")]

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd as _;

use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
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

/// Closes `file` and tells what `close` said, which dropping it would not.
pub(crate) fn close(file: File) -> io::Result<()> {
    // SAFETY: the number is that of an open file which nobody else owns any more.
    unsafe { rustix::io::try_close(file.into_raw_fd()) }.map_err(io::Error::from)
}

/// FS_IOC_SHUTDOWN: nothing of the file system comes to its disk any more.
const SHUTDOWN: Opcode = opcode::read::<u32>(b'X', 125);
/// Also its log is left as it is on the disk now.
const NO_LOG_FLUSH: u32 = 2;

/// Ends the file system that this is open in, as if its disk had no power from now on.
pub(crate) fn cut_power(mounted: &File) -> io::Result<()> {
    // SAFETY: this call reads one number of 32 bits, whatever its direction says.
    unsafe { ioctl(mounted, Setter::<SHUTDOWN, u32>::new(NO_LOG_FLUSH)) }.map_err(io::Error::from)
}
