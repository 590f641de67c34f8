//! The disk cache of a mount, and the thread that reads and writes contents there.
//!
//! The core's request for a piece is looked up in the index at once, and read by the thread; reads go before writes.
//! The queue of writes is bounded: if the disk is slower than the network, some contents are not cached.

mod queue;

use super::engine::Shared;
use super::previous_mount::{MountNote, wait_for_previous};
use super::slow_step::MountStep;
use crate::log;
use bytes::Bytes;
use queue::{Job, Queue};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use wirefs_cache::CachePiece;
use wirefs_client::Loaded;
use wirefs_op::FileId;
use wirefs_op::message::version::SessionId;
use wirefs_store::disk_cache::CacheLookup;
use wirefs_store::{DiskCache, DiskCacheStats, LoadedSnapshot, Snapshot, SourceDirectory};

/// The disk cache of a mount.
#[derive(Clone, Debug)]
pub struct StorePlan {
    /// A directory of this source alone; created if absent.
    pub dir: PathBuf,
    /// The maximum size of cached contents, in bytes.
    pub contents_bytes_max: u64,
}

/// The state of the disk cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// The cached contents.
    pub contents: DiskCacheStats,
    /// Listings that were imported from an earlier mount.
    pub listings_taken: u64,
}

/// Writes one line to standard error.
fn report(line: &str) {
    log::line(format_args!("{line}"));
}

/// The saved state of an earlier mount.
pub(super) struct SavedSession {
    pub(super) session: SessionId,
    pub(super) root: FileId,
    pub(super) listings: Vec<(FileId, Bytes)>,
}

/// The directory, and the queue of its thread.
pub(super) struct Store {
    place: SourceDirectory,
    contents: Mutex<DiskCache>,
    queue: Queue,
    /// A write has failed: no more are made.
    is_full: AtomicBool,
    worker: Mutex<Option<JoinHandle<()>>>,
    listings_taken: Mutex<u64>,
}

impl Store {
    /// Opens the directory. If that fails, reports the reason; the mount works without it.
    pub(super) fn open(plan: &StorePlan, tell_wait: fn(MountStep)) -> Option<Store> {
        let opened = wait_for_previous(tell_wait, || SourceDirectory::open(&plan.dir));
        let opened = opened.map_err(|error| error.to_string()).and_then(|place| {
            let contents = DiskCache::open(place.dir(), plan.contents_bytes_max);
            contents.map(|contents| (place, contents)).map_err(|error| error.to_string())
        });
        match opened {
            Ok((place, contents)) => {
                let damaged = contents.stats().damaged;
                if damaged > 0 {
                    report("cached contents were damaged; what was is dropped");
                }
                Some(Store {
                    place,
                    contents: Mutex::new(contents),
                    queue: Queue::default(),
                    is_full: AtomicBool::new(false),
                    worker: Mutex::new(None),
                    listings_taken: Mutex::new(0),
                })
            }
            Err(error) => {
                report(&format!("nothing is kept on disk: {error}"));
                None
            }
        }
    }

    /// Drops contents of a server with another key.
    pub(super) fn meet(&self, identity: &[u8]) {
        if self.place.is_from_server(identity) {
            return;
        }
        let is_cleared = self.contents().clear().and_then(|()| self.place.record_server(identity));
        if let Err(error) = is_cleared {
            report(&format!("nothing is kept on disk: {error}"));
            self.is_full.store(true, Ordering::SeqCst);
        }
    }

    /// Updates the note for the next mount.
    pub(super) fn note(&self, holder: &MountNote) {
        // Without the note, the next mount works without the directory until this process has ended.
        let _unsaid = self.place.write_note(&holder.encode());
    }

    /// Takes the saved state of an earlier mount of the server with this key.
    pub(super) fn take_saved(&self, identity: &[u8]) -> Option<SavedSession> {
        match self.place.take_snapshot() {
            Ok(LoadedSnapshot::Valid(snapshot)) if snapshot.identity == identity => {
                let Snapshot { session, root, listings, .. } = snapshot;
                Some(SavedSession { session, root, listings })
            }
            Ok(LoadedSnapshot::Valid(_)) => {
                report("the server has another key than the one whose names were cached; they are dropped");
                None
            }
            Ok(LoadedSnapshot::Damaged) => {
                report("the cached names were damaged, and are dropped");
                None
            }
            Ok(LoadedSnapshot::None) => None,
            Err(error) => {
                report(&format!("the cached names cannot be used: {error}"));
                None
            }
        }
    }

    /// Notes the number of imported listings.
    pub(super) fn note_imported(&self, listings: u64) {
        *self.listings_taken.lock().unwrap_or_else(PoisonError::into_inner) = listings;
    }

    /// INVARIANT: each step leaves a consistent index, and checksums verify its contents.
    fn contents(&self) -> MutexGuard<'_, DiskCache> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up a piece. `None`: the thread will pass it to the core.
    pub(super) fn load(&self, piece: CachePiece) -> Option<Loaded> {
        match self.contents().find(&piece) {
            CacheLookup::Hit(stored) => {
                self.queue.push_load(piece, stored);
                None
            }
            CacheLookup::Miss => Some(Loaded::Missing),
            CacheLookup::VersionMiss => Some(Loaded::Nothing),
        }
    }

    /// Stores a piece, unless too much waits to be written.
    pub(super) fn store(&self, piece: CachePiece, data: Bytes) {
        if !self.is_full.load(Ordering::Relaxed) {
            self.queue.push_store(piece, data);
        }
    }

    fn write(&self, piece: &CachePiece, data: &Bytes) {
        if self.is_full.load(Ordering::Relaxed) {
            return;
        }
        let reserved = self.contents().reserve(piece);
        let written = reserved.and_then(|reserved| match reserved {
            Some(reserved) => reserved.write(piece, data).map(|()| self.contents().insert(piece, &reserved)),
            None => Ok(()),
        });
        if let Err(error) = written {
            self.is_full.store(true, Ordering::Relaxed);
            report(&format!("no more contents are cached on disk: {error}"));
        }
    }

    pub(super) fn status(&self) -> StoreStatus {
        let listings_taken = *self.listings_taken.lock().unwrap_or_else(PoisonError::into_inner);
        StoreStatus { contents: self.contents().stats(), listings_taken }
    }

    /// Saves the state of an ended mount, and ends the thread after its pending writes.
    pub(super) fn save(&self, snapshot: Option<&Snapshot>, pieces: Vec<(CachePiece, Bytes)>) {
        self.stop();
        for (piece, data) in pieces {
            self.write(&piece, &data);
        }
        let closed = self.contents().close();
        let put = snapshot.map_or(Ok(()), |snapshot| self.place.put_snapshot(snapshot));
        if let Err(error) = closed.and(put) {
            report(&format!("the cache could not be written for the next mount: {error}"));
        }
        // The next mount may start before this process has exited.
        self.place.release();
    }

    /// Ends the thread after its pending work.
    fn stop(&self) {
        self.queue.stop();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            // Errors have been reported.
            let _ended = worker.join();
        }
    }
}

/// Starts the thread, if there is a disk cache.
pub(super) fn start(engine: &Shared) -> io::Result<()> {
    let Some(store) = engine.store.clone() else { return Ok(()) };
    let engine = Shared::clone(engine);
    let for_thread = store.clone();
    let worker = std::thread::Builder::new().name("wirefs-store".into()).spawn(move || {
        while let Some(job) = for_thread.queue.next() {
            match job {
                Job::Load(piece, stored) => {
                    let loaded = match stored.read(&piece) {
                        Some(data) => {
                            for_thread.contents().count_hit();
                            Loaded::Data(data)
                        }
                        None => {
                            for_thread.contents().evict_damaged(&piece);
                            report("a piece of cached contents was damaged, and is dropped");
                            Loaded::Missing
                        }
                    };
                    engine.drive(|state, now| state.client.loaded(now, piece, loaded));
                }
                Job::Store(piece, data) => for_thread.write(&piece, &data),
            }
        }
    })?;
    *store.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
    Ok(())
}
