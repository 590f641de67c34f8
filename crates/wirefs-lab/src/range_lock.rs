//! `fcntl` locks of ranges. They belong to the calling process, and closing any descriptor of the file releases them.

use std::ffi::{c_int, c_short};
use std::fs::File;
use std::io;

use crate::sys::fcntl_range;

/// A lock of a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeLock {
    /// Excludes all other locks, not exclusive ones alone.
    pub is_exclusive: bool,
    /// The first byte.
    pub start: i64,
    /// Bytes; 0: to the end of the file, wherever that is.
    pub length: i64,
}

/// A lock that another process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The lock.
    pub lock: RangeLock,
    /// Its process.
    pub process: i32,
}

impl RangeLock {
    /// An exclusive lock of a range.
    pub fn exclusive(start: i64, length: i64) -> RangeLock {
        RangeLock { is_exclusive: true, start, length }
    }

    /// A shared lock of a range.
    pub fn shared(start: i64, length: i64) -> RangeLock {
        RangeLock { is_exclusive: false, start, length }
    }

    /// Takes the lock, and waits for it.
    ///
    /// # Errors
    /// Those of `F_SETLKW`.
    pub fn take(self, file: &File) -> io::Result<()> {
        fcntl_range(file, libc::F_SETLKW, self.raw(self.kind())).map(drop)
    }

    /// Takes the lock if no other process is in its way.
    ///
    /// # Errors
    /// Those of `F_SETLK`: `EAGAIN` or `EACCES` where another process is.
    pub fn try_take(self, file: &File) -> io::Result<()> {
        fcntl_range(file, libc::F_SETLK, self.raw(self.kind())).map(drop)
    }

    /// Releases what this process holds of the range.
    ///
    /// # Errors
    /// Those of `F_SETLK`.
    pub fn release(self, file: &File) -> io::Result<()> {
        fcntl_range(file, libc::F_SETLK, self.raw(libc::F_UNLCK)).map(drop)
    }

    /// The lock of another process that would be in the way of this one, if there is one.
    ///
    /// # Errors
    /// Those of `F_GETLK`.
    pub fn conflict(self, file: &File) -> io::Result<Option<HeldLock>> {
        let found = fcntl_range(file, libc::F_GETLK, self.raw(self.kind()))?;
        let is_exclusive = match c_int::from(found.l_type) {
            libc::F_UNLCK => return Ok(None),
            kind => kind == libc::F_WRLCK,
        };
        let lock = RangeLock { is_exclusive, start: found.l_start, length: found.l_len };
        Ok(Some(HeldLock { lock, process: found.l_pid }))
    }

    fn kind(self) -> c_int {
        if self.is_exclusive { libc::F_WRLCK } else { libc::F_RDLCK }
    }

    fn raw(self, kind: c_int) -> libc::flock {
        // All constants are small and positive.
        let (l_type, l_whence) = (kind as c_short, libc::SEEK_SET as c_short);
        libc::flock { l_type, l_whence, l_start: self.start, l_len: self.length, l_pid: 0 }
    }
}
