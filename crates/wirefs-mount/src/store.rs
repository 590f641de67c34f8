//! What a mount leaves on disk for the next one, and the thread that reads and writes contents there.
//!
//! A piece that the core looks for is found in the index at once, and read by the thread; reading goes before writing. What there is to
//! write is bounded: when the disk is slower than the wire, some of it is not kept.

mod queue;

use super::ending::{Holder, once_it_has_ended};
use super::engine::Shared;
use super::slow::Waits;
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

/// Where a mount keeps what it knows.
#[derive(Clone, Debug)]
pub struct StorePlan {
    /// A directory of this source alone; made if it is not there.
    pub dir: PathBuf,
    /// Bytes of contents, at most.
    pub contents_bytes_max: u64,
}

/// What a mount has on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// The contents.
    pub contents: DiskCacheStats,
    /// Listings that were taken over from an earlier mount.
    pub listings_taken: u64,
}

/// One line for whoever reads the log.
fn tell(line: &str) {
    eprintln!("wirefs: {line}");
}

/// What an earlier mount left.
pub(super) struct Left {
    pub(super) session: SessionId,
    pub(super) root: FileId,
    pub(super) listings: Vec<(FileId, Bytes)>,
}

/// The directory, and the work that is to be done in it.
pub(super) struct Store {
    place: SourceDirectory,
    contents: Mutex<DiskCache>,
    queue: Queue,
    /// Something could not be written: nothing more is.
    is_full: AtomicBool,
    worker: Mutex<Option<JoinHandle<()>>>,
    listings_taken: Mutex<u64>,
}

impl Store {
    /// Opens the directory. Without it a mount works as well: why it cannot be used is told in a line.
    pub(super) fn open(plan: &StorePlan, tell_wait: fn(Waits)) -> Option<Store> {
        let opened = once_it_has_ended(tell_wait, || SourceDirectory::open(&plan.dir));
        let opened = opened.map_err(|error| error.to_string()).and_then(|place| {
            let contents = DiskCache::open(place.dir(), plan.contents_bytes_max);
            contents.map(|contents| (place, contents)).map_err(|error| error.to_string())
        });
        match opened {
            Ok((place, contents)) => {
                let damaged = contents.stats().damaged;
                if damaged > 0 {
                    tell("cached contents were damaged; what was is dropped");
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
                tell(&format!("nothing is kept on disk: {error}"));
                None
            }
        }
    }

    /// Drops contents that are not from the server that is `identity`.
    pub(super) fn meet(&self, identity: &[u8]) {
        if self.place.is_from_server(identity) {
            return;
        }
        let is_cleared = self.contents().clear().and_then(|()| self.place.record_server(identity));
        if let Err(error) = is_cleared {
            tell(&format!("nothing is kept on disk: {error}"));
            self.is_full.store(true, Ordering::SeqCst);
        }
    }

    /// Tells the next mount how far this one is.
    pub(super) fn note(&self, holder: &Holder) {
        // Where that cannot be written, the next mount does without the directory until this process has ended.
        let _unsaid = self.place.write_note(&holder.encode());
    }

    /// Takes what an earlier mount left, if it was left by one of the server that is `identity`.
    pub(super) fn take(&self, identity: &[u8]) -> Option<Left> {
        match self.place.take_snapshot() {
            Ok(LoadedSnapshot::Valid(snapshot)) if snapshot.identity == identity => {
                let Snapshot { session, root, listings, .. } = snapshot;
                Some(Left { session, root, listings })
            }
            Ok(LoadedSnapshot::Valid(_)) => {
                tell("the server has another key than the one whose names were cached; they are dropped");
                None
            }
            Ok(LoadedSnapshot::Damaged) => {
                tell("the cached names were damaged, and are dropped");
                None
            }
            Ok(LoadedSnapshot::None) => None,
            Err(error) => {
                tell(&format!("the cached names cannot be used: {error}"));
                None
            }
        }
    }

    /// Notes how many listings were of use.
    pub(super) fn took(&self, listings: u64) {
        *self.listings_taken.lock().unwrap_or_else(PoisonError::into_inner) = listings;
    }

    /// INVARIANT: the index is changed in steps that leave it whole; what it says is checked by sums.
    fn contents(&self) -> MutexGuard<'_, DiskCache> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for a piece. `None`: the core will be told by the thread.
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

    /// Keeps a piece, unless too much is waiting to be kept.
    pub(super) fn keep(&self, piece: CachePiece, data: Bytes) {
        if !self.is_full.load(Ordering::Relaxed) {
            self.queue.push_keep(piece, data);
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
            tell(&format!("no more contents are cached on disk: {error}"));
        }
    }

    pub(super) fn status(&self) -> StoreStatus {
        let listings_taken = *self.listings_taken.lock().unwrap_or_else(PoisonError::into_inner);
        StoreStatus { contents: self.contents().stats(), listings_taken }
    }

    /// The mount has ended in order: leaves what it knew. Ends the thread, behind what it still has to write.
    pub(super) fn leave(&self, snapshot: Option<&Snapshot>, pieces: Vec<(CachePiece, Bytes)>) {
        self.stop();
        for (piece, data) in pieces {
            self.write(&piece, &data);
        }
        let closed = self.contents().close();
        let put = snapshot.map_or(Ok(()), |snapshot| self.place.put_snapshot(snapshot));
        if let Err(error) = closed.and(put) {
            tell(&format!("the cache could not be written for the next mount: {error}"));
        }
        // The next mount may be made before this process has gone.
        self.place.release();
    }

    /// Ends the thread, behind what it still has to do.
    fn stop(&self) {
        self.queue.stop();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            // It has told what went wrong.
            let _ended = worker.join();
        }
    }
}

/// Starts the thread, where there is a store.
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
                            tell("a piece of cached contents was damaged, and is dropped");
                            Loaded::Missing
                        }
                    };
                    engine.drive(|state, now| state.client.loaded(now, piece, loaded));
                }
                Job::Keep(piece, data) => for_thread.write(&piece, &data),
            }
        }
    })?;
    *store.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
    Ok(())
}
