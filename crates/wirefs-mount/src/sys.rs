//! The write-out of a file range, and the allocator's freed memory.

#![expect(unsafe_code, reason = "calls without safe wrappers in rustix; each block states why it is sound")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Starts the write-out of a range of a file, without waiting. A no-op on file systems that do not support it.
///
/// The next `fdatasync` of this file reports write errors.
///
/// # Errors
/// Those of `sync_file_range(2)`.
pub(crate) fn begin_writing(file: &File, bytes: Range<u64>) -> io::Result<()> {
    let place = |byte: u64| libc::off64_t::try_from(byte).map_err(|_| io::ErrorKind::InvalidInput);
    let (from, count) = (place(bytes.start)?, place(bytes.end.saturating_sub(bytes.start))?);
    // SAFETY: no memory is passed, and the file stays open during the call.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), from, count, libc::SYNC_FILE_RANGE_WRITE) };
    match result {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE | libc::EINTR)
                ) =>
            {
                Ok(())
            }
            error => Err(error),
        },
    }
}

/// Returns freed memory of the allocator to the kernel. Allocators other than that of glibc return it themselves.
pub(crate) fn trim_allocator() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: no memory is passed, and the allocator locks its arenas itself.
        let _released = unsafe { libc::malloc_trim(0) };
    }
}
