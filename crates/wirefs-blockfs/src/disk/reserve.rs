//! Room on the disk that nobody else can take: a file of no content, given up piece by piece when a write finds none.

use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::path::Path;

/// The name of the file.
const NAME: &str = "reserve";

/// The room that is set aside.
#[derive(Debug)]
pub(super) struct Reserve {
    file: File,
    bytes_max: u64,
    bytes: u64,
}

impl Reserve {
    /// Sets room aside, as far as there is some.
    ///
    /// # Errors
    /// There can be no file.
    pub(super) fn open(directory: &Path, bytes_max: u64) -> io::Result<Reserve> {
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false).open(directory.join(NAME))?;
        let bytes = file.metadata()?.len().min(bytes_max);
        let mut reserve = Reserve { file, bytes_max, bytes };
        reserve.refill(u64::MAX);
        Ok(reserve)
    }

    /// Bytes that are set aside now.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives all of it up; false when there was nothing.
    pub(super) fn release(&mut self) -> bool {
        if self.bytes == 0 || self.file.set_len(0).is_err() {
            return false;
        }
        self.bytes = 0;
        true
    }

    /// Sets room aside again, where so much is free that nobody misses it.
    pub(super) fn refill(&mut self, free_bytes: u64) {
        if self.bytes < self.bytes_max && free_bytes > self.bytes_max {
            let set = rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, self.bytes_max);
            // Where the system cannot, the disk has to do without: what is left over counts as nothing then.
            self.bytes = if set.is_ok() { self.bytes_max } else { 0 };
            if set.is_err() {
                let _left = self.file.set_len(0);
            }
        }
    }
}
