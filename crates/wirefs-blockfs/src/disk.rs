//! A block store on a disk: a segmented log with a cleaner.
//!
//! ```text
//!  0000000007.log   0000000008.log   0000000009.log
//!  [head][block][block][root][free] … [block][root] …   ── each change is appended
//!   └ cleaned: live blocks are copied to the end of the log and synced; then the file is removed
//! ```
//!
//! The state is the result of replaying all records in order. After a crash, the log holds a prefix of the
//! records, hence a consistent earlier state with its root and all reachable blocks. A segment is synced
//! before the next one begins, so only the last one can be torn. There, the first incomplete record is the
//! end of the log, unless a later root record states that this part was synced. Then the record is damaged,
//! and opening the store fails.
//!
//! The cleaner usually cleans the oldest segment. Free records in the oldest segment are obsolete, since no
//! segment holds those blocks anymore. When the disk is full, it cleans the segments with the least live
//! data and copies their free records. A preallocated file (`reserve`) provides space for cleaning, and for
//! removals, which write before they free.
//!
//! An embedded key-value store would add a page tree and one or two syncs per commit below a tree that
//! already is copy-on-write. A log needs one append and no sync.
//!
//! # Source
//! Rosenblum and Ousterhout, "The design and implementation of a log-structured file system" (1992): segments
//! and cleaning.

mod log;
mod record;
mod reserve;
mod segment;
#[cfg(test)]
mod tests;
mod usage;

use bytes::Bytes;
use log::Log;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wirefs_blocks::id::BlockId;
use wirefs_blocks::store::{BlockStore, Lost, Room, StoreFault, Wanted};

/// The maximum size of a block in a new store, in bytes.
pub const DISK_PAYLOAD_BYTES: usize = 16 * 1024;
/// The size at which a segment is closed and the next one begins, in bytes.
const SEGMENT_BYTES: u64 = 8 << 20;
/// The lock file. The process that uses the store holds a lock on it.
const LOCK_NAME: &str = "lock";

/// The reason for which a store on a disk cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DiskFault {
    /// A system call failed.
    #[error("{}: {error}", path.display())]
    System {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Another process has the store open.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The directory of the store.
        path: PathBuf,
    },
    /// The directory holds no store, or a damaged one.
    #[error("{}: {what}", path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// The kind of damage.
        what: &'static str,
    },
}

impl DiskFault {
    fn system(path: &Path) -> impl FnOnce(io::Error) -> DiskFault {
        move |error| DiskFault::System { path: path.to_owned(), error }
    }
}

/// A block store in a directory of its own.
///
/// # Guarantee
/// A crash of the process loses nothing. A crash of the machine loses no synced data, and of unsynced data
/// only the last records. Synced data that the disk does not return, or returns damaged, is reported as
/// damage and never treated as an incomplete write.
///
/// # Cost
/// One write for each `register`, `switch_root` and `deregister`. When more than half of the log is dead, some of these
/// calls also copy and sync a segment. On a full disk, each sixteenth of a segment that is freed costs the copy of one
/// segment. Memory: about 70 bytes for each block.
#[derive(Debug)]
pub struct DiskStore {
    log: Mutex<Log>,
    payload_bytes: usize,
    /// The space, in bytes, that is reserved for changes that free space.
    reserved_bytes: u64,
    /// Keeps other processes out while the store is open.
    _lock: File,
}

impl DiskStore {
    /// Opens the store in a directory; creates it if the directory is missing or has no log.
    ///
    /// # Errors
    /// See [`DiskFault`].
    ///
    /// # Cost
    /// Reads the record heads of all segments, and the last segment completely.
    pub fn open(directory: &Path) -> Result<DiskStore, DiskFault> {
        DiskStore::open_with(directory, SEGMENT_BYTES)
    }

    fn open_with(directory: &Path, segment_bytes: u64) -> Result<DiskStore, DiskFault> {
        std::fs::create_dir_all(directory).map_err(DiskFault::system(directory))?;
        let path = directory.join(LOCK_NAME);
        let mut options = File::options();
        let lock = options.write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(DiskFault::system(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(DiskFault::InUse { path: directory.to_owned() });
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(DiskFault::system(&path)(error)),
        }
        let log = Log::open(directory, DISK_PAYLOAD_BYTES, segment_bytes)?;
        let payload_bytes = log.payload_bytes();
        // One further segment is reserved for cleaning.
        let reserved_bytes = (log::RESERVED_SEGMENTS - 1) * segment_bytes;
        Ok(DiskStore { log: Mutex::new(log), payload_bytes, reserved_bytes, _lock: lock })
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        self.log().close();
    }
}

impl BlockStore for DiskStore {
    fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    fn register(&self, blocks: &[(BlockId, Bytes)]) -> Result<(), StoreFault> {
        if blocks.iter().any(|(_, bytes)| bytes.len() > self.payload_bytes) {
            return Err(StoreFault::Broken("a block larger than the payload"));
        }
        self.log().register(blocks)
    }

    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>)) {
        // Each block costs a read of its own, so hints would cost extra.
        for id in &wanted.ids {
            let reader = self.log().reader(*id);
            // Reads without the lock: a segment that is cleaned meanwhile stays open here.
            deliver(*id, reader.and_then(|reader| reader.read()).ok_or(Lost));
        }
    }

    fn deregister(&self, ids: &[BlockId]) {
        let mut log = self.log();
        log.deregister(ids);
        log.clean_some();
    }

    fn registered(&self, after: Option<BlockId>, count_max: usize) -> Vec<BlockId> {
        self.log().registered(after, count_max)
    }

    fn root(&self) -> Result<Option<BlockId>, StoreFault> {
        Ok(self.log().root())
    }

    fn switch_root(&self, root: BlockId) -> Result<(), StoreFault> {
        self.log().switch_root(root)
    }

    fn sync(&self) -> Result<(), StoreFault> {
        let active = self.log().active_segment()?;
        // Other threads append meanwhile. Earlier segments are already synced.
        active.file.sync_data().map_err(|_| {
            // After a failed sync, the kernel may drop the dirty pages, and a second sync would succeed.
            self.log().mark_broken();
            StoreFault::Broken("syncing to the disk failed")
        })?;
        self.log().note_synced(&active);
        Ok(())
    }

    fn room(&self) -> Room {
        let (all, free) = self.log().room_bytes();
        let payload = self.payload_bytes as u64;
        Room {
            blocks: all / payload,
            blocks_free: free / payload,
            blocks_reserved: self.reserved_bytes / payload,
        }
    }
}
