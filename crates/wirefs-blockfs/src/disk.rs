//! Blocks on a disk: a log in segments, of which the oldest is cleaned first.
//!
//! ```text
//!  0000000007.log   0000000008.log   0000000009.log
//!  [head][block][block][root][free] … [block][root] …   ── each change is appended
//!   └ cleaned: what is still there is copied behind the end, and synced; then the file goes
//! ```
//!
//! What a log says is what its records say one after the other: a crash leaves the records up to some point, and so a state
//! that was there, with its root and all that it reaches. A segment is synced before the next one begins, so that only the
//! last one can be torn; there the first record that is not whole is the end, unless a later one says that it was synced:
//! what was on the disk and is not any more is damage, which no opening passes over. Cleaning from the old end is what makes
//! records that let go of blocks needless once they are the oldest: the blocks are in no file any more. Where the disk is full,
//! segments are cleaned of which most is let go of, wherever they stand, with the records that let go of blocks elsewhere; room
//! for that, and for what a removal writes before it frees anything, is set aside in a file (`reserve`).
//!
//! Why no embedded store of others: what they are made for (any key, ordered scans, transactions) costs a tree of pages and
//! a sync or two with each commit, under a tree that has both already; a log needs one append and no sync.

mod log;
mod record;
mod reserve;
mod segment;
mod sum;
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

/// The largest block of a store that is made, in bytes.
pub const DISK_PAYLOAD_BYTES: usize = 16 * 1024;
/// A segment is followed by the next one when it has so many bytes.
const SEGMENT_BYTES: u64 = 8 << 20;
/// The file that whoever uses the store keeps locked.
const LOCK_NAME: &str = "lock";

/// Why a store on a disk cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DiskFault {
    /// The system would not.
    #[error("{}: {error}", path.display())]
    System {
        /// Of which file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another process has it open.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The store.
        path: PathBuf,
    },
    /// It is not a store, or a damaged one.
    #[error("{}: {what}", path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
}

impl DiskFault {
    fn system(path: &Path) -> impl FnOnce(io::Error) -> DiskFault {
        move |error| DiskFault::System { path: path.to_owned(), error }
    }
}

/// A store in a directory of its own.
///
/// # Guarantee
/// After a crash of the process nothing is missing; after a crash of the machine all is there that was synced, and of the
/// rest what came before some point. What a disk cannot give, or gives otherwise than it was synced, is never taken for
/// something that was not written.
///
/// # Cost
/// One write for each `register`, `switch_root` and `deregister`; where more than half of the log is let go of, at times a
/// segment is copied and synced, and where the disk is full, one for each sixteenth of a segment that is let go of. Memory: about 70 bytes for each block.
#[derive(Debug)]
pub struct DiskStore {
    log: Mutex<Log>,
    payload_bytes: usize,
    /// Bytes that only changes may take that make room.
    reserved_bytes: u64,
    /// Keeps others out for as long as it is open.
    _lock: File,
}

impl DiskStore {
    /// Opens the store in a directory; one that has no log, or is not there, becomes one.
    ///
    /// # Errors
    /// See [`DiskFault`].
    ///
    /// # Cost
    /// Reads what is told of each block, and all of the last segment.
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
        // The rest is for cleaning.
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
            return Err(StoreFault::Broken("a block over the payload"));
        }
        self.log().register(blocks)
    }

    fn retrieve(&self, wanted: &Wanted, deliver: &mut dyn FnMut(BlockId, Result<Bytes, Lost>)) {
        // A hint costs a read of its own here: only what is wanted is read.
        for id in &wanted.ids {
            let place = self.log().place(*id);
            // Read without the lock: a file that is cleaned meanwhile stays open here.
            deliver(*id, place.and_then(|place| place.read()).ok_or(Lost));
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
        let written = self.log().written()?;
        // Others append meanwhile. Segments before this one are synced.
        written.file.sync_data().map_err(|_| {
            // What was to be written may be dropped by the system after it has told of its failure once.
            self.log().give_up();
            StoreFault::Broken("the disk does not take what was written")
        })?;
        self.log().note_synced(&written);
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
