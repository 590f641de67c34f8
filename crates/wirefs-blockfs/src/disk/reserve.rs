//! Preallocated disk space: an empty file that is released when a write finds the disk full.

use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::path::Path;

/// The name of the file.
const NAME: &str = "reserve";

/// The reserved space.
#[derive(Debug)]
pub(super) struct Reserve {
    file: File,
    bytes_max: u64,
    bytes: u64,
}

impl Reserve {
    /// Opens the file and preallocates as much as possible.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(super) fn open(directory: &Path, bytes_max: u64) -> io::Result<Reserve> {
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false).open(directory.join(NAME))?;
        let bytes = file.metadata()?.len().min(bytes_max);
        let mut reserve = Reserve { file, bytes_max, bytes };
        reserve.refill(u64::MAX);
        Ok(reserve)
    }

    /// The reserved space, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Releases the space; returns `false` if there was none.
    pub(super) fn release(&mut self) -> bool {
        if self.bytes == 0 || self.file.set_len(0).is_err() {
            return false;
        }
        self.bytes = 0;
        true
    }

    /// Preallocates the space again if enough is free.
    pub(super) fn refill(&mut self, free_bytes: u64) {
        if self.bytes < self.bytes_max && free_bytes > self.bytes_max {
            let set = rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, self.bytes_max);
            // If the file system does not support preallocation, the store works without a reserve.
            self.bytes = if set.is_ok() { self.bytes_max } else { 0 };
            if set.is_err() {
                let _left = self.file.set_len(0);
            }
        }
    }
}
